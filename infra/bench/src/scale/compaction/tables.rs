//! Tables with the entities of a large market. They are filled below the API, in the order in which they are stored,
//! because the feed would take hours.

use std::ops::Range;
use std::path::Path;

use dynoxide::actions::scan::ScanRequest;
use dynoxide::{Database, ImportOptions, Item};
use feed::{Applier, Message};
use indicatif::MultiProgress;
use platform::resources::{Resources, Table};
use types::ids::{Id8, ListingId};
use types::records::PublicListing;

use super::entities::{EntityFormat, EntityTexts, Sample, data};
use crate::aws_side::AwsProcess;
use crate::market::{GeneratedMarket, placed_uuid};
use crate::output::{bar, number, text};
use crate::scale::fill::{apply, apply_listings};

/// The number of listings that are removed for each that is live.
pub(super) const REMOVED_PER_LIVE: u64 = 2;
/// The number of listings that the form of a row is learnt from. It is large enough for every partition to have some.
const SAMPLES: u64 = 512;
/// The number of rows that are stored at a time.
const CHUNK_ROWS: u64 = 20_000;
/// The bytes on disk that a row takes besides its content: its keys once more, its entry in the index, and free space.
const ROW_OVERHEAD_BYTES: u64 = 250;
/// The bytes of a record in the objects of the bucket, once in a sorted run and once in a part.
const OBJECT_BYTES: u64 = 150;

/// Feeds listings, and removes every other one again.
pub(super) async fn feed_samples(aws: &AwsProcess, market: &GeneratedMarket) -> Result<Vec<Sample>, String> {
    let sample = |number: u64| Some(Sample { listing: market.listing(number)?, is_live: number.is_multiple_of(2) });
    let samples: Vec<Sample> = (0..SAMPLES).filter_map(sample).collect();
    let (admin, now) = (aws.admin()?, market.now());
    apply_listings(admin.stores(), market, 0..SAMPLES, now).await?;
    let removed = samples.iter().filter(|sample| !sample.is_live);
    let removals = removed.map(|sample| Message::ListingEnded(sample.listing.id, 2)).collect();
    apply(&mut Applier::new(admin.stores()), removals, now).await?;
    Ok(samples)
}

/// Returns all rows of the market table, which must be few.
pub(super) fn rows(database: &Database) -> Result<Vec<Item>, String> {
    let page = database.scan(ScanRequest { table_name: market_table(), ..ScanRequest::default() }).map_err(text)?;
    match page.last_evaluated_key {
        None => Ok(page.items.unwrap_or_default()),
        Some(_) => Err("there are more rows to learn from than fit in a page".to_owned()),
    }
}

/// Says how much space the tables and the bases need. Fails if there is less.
pub(super) fn require_disk(folder: &Path, format: &EntityFormat, market: &GeneratedMarket) -> Result<(), String> {
    let [live, removed] = format.examples().map(|row| serde_json::to_string(row).map(|row| row.len() as u64));
    let removed = removed.map_err(text)? + ROW_OVERHEAD_BYTES;
    let live = live.map_err(text)? + ROW_OVERHEAD_BYTES + OBJECT_BYTES;
    let needed = market.size() * (live + REMOVED_PER_LIVE * removed);
    let disk = rustix::fs::statvfs(folder).map_err(text)?;
    let free = disk.f_bavail * disk.f_frsize;
    let gigabytes = |bytes: u64| number(bytes as f64 / 1e9);
    let (needed_gb, free_gb) = (gigabytes(needed), gigabytes(free));
    let wanted = format!("{needed_gb} GB are needed in {}, where {free_gb} GB are free", folder.display());
    if needed > free {
        return Err(format!("{wanted}: set TMPDIR to a folder that has more"));
    }
    eprintln!("bench: {wanted}");
    Ok(())
}

/// Stores the entities of a market: its listings, and after each of them some removed ones.
pub(super) fn fill(database: &Database, format: &EntityFormat, market: &GeneratedMarket) -> Result<(), String> {
    let rows = market.size() * (1 + REMOVED_PER_LIVE);
    let (bars, table) = (MultiProgress::new(), market_table());
    let bar = bar(&bars, "filling the entities", rows);
    database.enable_bulk_loading().map_err(text)?;
    for (partition, share) in format.shares(rows)? {
        for begin in share.clone().step_by(CHUNK_ROWS as usize) {
            let numbers = begin..(begin + CHUNK_ROWS).min(share.end);
            let made = numbers.map(|number| row(format, market, partition, &share, number));
            let made = made.collect::<Result<Vec<Item>, String>>()?;
            let count = made.len() as u64;
            database.import_items(&table, made, ImportOptions::default()).map_err(text)?;
            bar.inc(count);
        }
    }
    bars.clear().map_err(text)?;
    database.disable_bulk_loading().map_err(text)
}

/// Makes the row with this number, which is in this share of a partition.
fn row(
    format: &EntityFormat,
    market: &GeneratedMarket,
    partition: &str,
    share: &Range<u64>,
    number: u64,
) -> Result<Item, String> {
    let uuid = placed_uuid(number, number - share.start, share.end - share.start);
    let (id, id8) = (ListingId::from(uuid), Id8::from_bits(uuid.as_fields().0));
    let is_live = number.is_multiple_of(1 + REMOVED_PER_LIVE);
    let data = if is_live {
        let listing = market.listing(number / (1 + REMOVED_PER_LIVE)).ok_or("the market has no such listing")?;
        data(&PublicListing { id, id8, ..listing })?
    } else {
        String::new()
    };
    Ok(format.row(&EntityTexts { partition: partition.to_owned(), id: id.to_string(), data }, is_live))
}

fn market_table() -> String {
    Resources::new(Resources::DEFAULT_STACK).table(Table::Market)
}
