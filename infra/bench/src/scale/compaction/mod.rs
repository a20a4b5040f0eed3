//! Bases that are made from the entities of large markets, under the limits of the deployed function, in real time.

mod entities;
mod report;
mod runs;
mod tables;
mod watch;

use local::aws::open_tables;
use types::clock::{Clock, SystemClock};

use super::figures::Figures;
use crate::aws_side::AwsProcess;
use crate::cli::ScaleOptions;
use crate::market::GeneratedMarket;
use crate::output::text;
use entities::EntityFormat;
use report::CompactionFigures;
use tables::{REMOVED_PER_LIVE, feed_samples, fill, require_disk, rows};

pub(crate) use runs::rebuild;

/// Stores the entities of `size` live listings and of twice as many removed ones, and makes a base from them.
pub(super) async fn measure(size: u64, options: &ScaleOptions) -> Result<Figures, String> {
    let market = GeneratedMarket::new(size, SystemClock::new().now());
    // It is removed when this function ends, whether that succeeds or not.
    let folder = tempfile::tempdir().map_err(text)?;
    let aws = AwsProcess::start_in(folder.path()).await?;
    let samples = Box::pin(feed_samples(&aws, &market)).await?;
    aws.stop().await?;

    let database = open_tables(Some(folder.path())).map_err(text)?;
    let format = EntityFormat::learn(&rows(&database)?, &samples)?;
    require_disk(folder.path(), &format, &market)?;
    fill(&database, &format, &market)?;
    let table_bytes = database.db_size_bytes().map_err(text)?;
    drop(database);

    let aws = AwsProcess::start_in(folder.path()).await?;
    let rebuilt = runs::in_own_process(&aws, options).await?;
    aws.stop().await?;
    folder.close().map_err(text)?;
    let live = size + samples.iter().filter(|sample| sample.is_live).count() as u64;
    if rebuilt.records != live {
        return Err(format!("the base has {} records, but there are {live}", rebuilt.records));
    }
    let memory_mb = options.compact_memory_mb;
    CompactionFigures { size, removed: size * REMOVED_PER_LIVE, table_bytes, memory_mb, rebuilt }.finish()
}
