//! Bases that are made from the entities of large markets, in real time and with the buffer of the deployed function.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use common::aws::{Environment, Patience};
use common::clock::{Clock, SystemClock};
use common::ids::{Id8, ListingId};
use common::records::PublicListing;
use common::resources::{PARTITION_KEY, Resources, Table};
use common::store::Attributes;
use dynoxide::{Database, ImportOptions, Item};
use local::aws::open_tables;
use local::demo::{LargeMarket, placed_uuid};
use local::meter::CostMeter;
use market::{ENTITY_PARTITIONS, Write, entity_row};
use replica::base::{Compacted, RebuildLimits};
use serde::{Deserialize, Serialize};
use terminal::{Output, number_table};

use crate::cli::ScaleOptions;
use crate::figures::{Figures, bar, megabytes, number, text};
use crate::process::{Memory, Stopwatch};
use crate::stack::{AwsProcess, StreamStore, add_listings};

/// The name of the subcommand.
const SUBCOMMAND: &str = "rebuild";

/// More rows than a page of 1 MB has, for [`CostMeter::with_page_limit`].
const MAX_PAGE_ROWS: i32 = 15_000;

/// The number of listings that are removed for each that is live.
const REMOVED_PER_LIVE: u64 = 2;

/// The number of rows that are stored at a time.
const CHUNK_ROWS: u64 = 20_000;
/// The bytes on disk that a row takes besides its content: its keys once more, its entry in the index, and free space.
const ROW_OVERHEAD_BYTES: u64 = 250;
/// The bytes of a record in the objects of the bucket, once in a sorted run and once in a part.
const OBJECT_BYTES: u64 = 150;

/// The number of listings by which the partitions of the entities are found. It is large enough for each to have some.
const MAX_SAMPLES: usize = 512;
/// The number of live listings that come through the feed, so that the log has begun.
const FED_LISTINGS: u64 = 1;

/// The figures of a market of one size.
#[derive(Debug, Serialize)]
struct CompactionFigures {
    /// The number of live listings.
    size: u64,
    removed: u64,
    /// The size of the tables on disk.
    table_bytes: u64,
    rebuilt: Rebuilt,
    pace: Pace,
}

/// How long reading takes at the pace of a deployed function.
#[derive(Debug, Serialize)]
struct Pace {
    read_units_per_second: u32,
    seconds: f64,
    /// Runs in all, the one that writes the base included.
    runs: u64,
}

/// What all runs together have made and taken.
#[derive(Debug, Serialize, Deserialize)]
struct Rebuilt {
    runs: Vec<RebuildRun>,
    /// The records of the base.
    records: u64,
    /// The parts of the base.
    parts: usize,
    /// The objects that were put, those of sorted runs included.
    objects: u64,
    object_bytes: u64,
    /// The most memory that the process ever had resident, the program itself included.
    peak_bytes: u64,
}

/// What one run took.
#[derive(Debug, Serialize, Deserialize)]
struct RebuildRun {
    cpu_ms: f64,
    wall_ms: f64,
    read_units: f64,
}

/// Stores the entities of `size` live listings and of twice as many removed ones, and makes a base from them.
pub(super) async fn measure(size: u64, options: &ScaleOptions) -> Result<Figures, String> {
    let market = LargeMarket::new(size, SystemClock::new().now());
    // It is removed when this function ends, whether that succeeds or not.
    let folder = tempfile::tempdir().map_err(text)?;
    let aws = AwsProcess::start_in(folder.path()).await?;
    add_listings(aws.admin()?.stores(), &market, size..size + FED_LISTINGS, &SystemClock::new()).await?;
    aws.stop().await?;

    let database = open_tables(Some(folder.path())).map_err(text)?;
    require_disk(folder.path(), &market)?;
    fill(&database, &market, REMOVED_PER_LIVE)?;
    let table_bytes = database.db_size_bytes().map_err(text)?;
    drop(database);

    let aws = AwsProcess::start_in(folder.path()).await?;
    let read_units = options.read_units.unwrap_or(u32::MAX).to_string();
    let rebuilt: Rebuilt = aws.run_child(&[SUBCOMMAND, &read_units]).await?;
    aws.stop().await?;
    folder.close().map_err(text)?;
    let live = size + FED_LISTINGS;
    if rebuilt.records != live {
        return Err(format!("the base has {} records, but there are {live}", rebuilt.records));
    }
    let read_units = rebuilt.runs.iter().map(|run| run.read_units).sum();
    let pace = Pace::new(read_units, RebuildLimits::default());
    let removed = size * REMOVED_PER_LIVE;
    let figures = CompactionFigures { size, removed, table_bytes, rebuilt, pace };
    Figures::new(&figures, figures.text(read_units))
}

/// Says how much space the tables and the bases need. Fails if there is less.
fn require_disk(folder: &Path, market: &LargeMarket) -> Result<(), String> {
    let bytes_of = |number: u64| {
        let row = entity(market, number, 0..1 + REMOVED_PER_LIVE, REMOVED_PER_LIVE)?;
        serde_json::to_string(&row).map(|row| row.len() as u64).map_err(text)
    };
    let live = bytes_of(0)? + ROW_OVERHEAD_BYTES + OBJECT_BYTES;
    let needed = market.size() * (live + REMOVED_PER_LIVE * (bytes_of(1)? + ROW_OVERHEAD_BYTES));
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

/// Stores the entities of a market: its listings, and after each of them some removed ones. They are put into the tables
/// below the API, in the order in which they are stored, because the feed would take hours.
pub(super) fn fill(database: &Database, market: &LargeMarket, removed_per_live: u64) -> Result<(), String> {
    let rows = market.size() * (1 + removed_per_live);
    let (bar, table) =
        (bar("filling the entities", rows), Resources::new(Resources::DEFAULT_STACK).table(Table::Market));
    database.enable_bulk_loading().map_err(text)?;
    for (partition, share) in shares(market, rows)? {
        for begin in share.clone().step_by(CHUNK_ROWS as usize) {
            let numbers = begin..(begin + CHUNK_ROWS).min(share.end);
            let made = numbers.map(|number| {
                let mut row = entity(market, number, share.clone(), removed_per_live)?;
                row.insert(PARTITION_KEY.to_owned(), dynoxide::AttributeValue::S(partition.clone()));
                Ok(row)
            });
            let made = made.collect::<Result<Vec<Item>, String>>()?;
            let count = made.len() as u64;
            database.import_items(&table, made, ImportOptions::default()).map_err(text)?;
            bar.advance(count);
        }
    }
    database.disable_bulk_loading().map_err(text)
}

/// Divides the numbers of rows evenly among the partitions of the entities, in the order of their keys.
fn shares(market: &LargeMarket, rows: u64) -> Result<Vec<(String, Range<u64>)>, String> {
    let listings = (0..market.size()).map_while(|number| market.listing(number));
    let mut partitions = BTreeSet::new();
    for listing in listings.take(MAX_SAMPLES) {
        let row = entity_row(&Write::listing(listing, 1).map_err(text)?, market.now());
        partitions.extend(Attributes(&row).text(PARTITION_KEY).map(ToOwned::to_owned));
    }
    let count = partitions.len() as u64;
    if count != u64::from(ENTITY_PARTITIONS) {
        return Err(format!("the entities are in {ENTITY_PARTITIONS} partitions, but the listings in {count}"));
    }
    let begin = |number: u64| rows * number / count;
    Ok(partitions.into_iter().zip(0..).map(|(name, number)| (name, begin(number)..begin(number + 1))).collect())
}

/// Makes the row of the entity with this number. The ids of a share are in the order of its numbers.
fn entity(market: &LargeMarket, number: u64, share: Range<u64>, removed_per_live: u64) -> Result<Item, String> {
    let uuid = placed_uuid(number, number - share.start, share.end - share.start);
    let (id, id8) = (ListingId::from(uuid), Id8::from_bits(uuid.as_fields().0));
    let write = if number.is_multiple_of(1 + removed_per_live) {
        let listing = market.listing(number / (1 + removed_per_live)).ok_or("the market has no such listing")?;
        Write::listing(PublicListing { id, id8, ..listing }, 1).map_err(text)?
    } else {
        Write::removal(id, 2)
    };
    entity_row(&write, market.now()).into_iter().map(|(name, value)| Ok((name, embedded(value)?))).collect()
}

/// Turns a value of the SDK into one of the embedded DynamoDB.
fn embedded(value: AttributeValue) -> Result<dynoxide::AttributeValue, String> {
    match value {
        AttributeValue::S(text) => Ok(dynoxide::AttributeValue::S(text)),
        AttributeValue::N(number) => Ok(dynoxide::AttributeValue::N(number)),
        AttributeValue::Bool(flag) => Ok(dynoxide::AttributeValue::BOOL(flag)),
        other => Err(format!("an entity has a value of another type: {other:?}")),
    }
}

/// Runs as the process that makes the base.
pub(crate) async fn run(read_units: u32) -> Result<(), String> {
    let limits = RebuildLimits { read_units_per_second: read_units, ..RebuildLimits::default() };
    let rebuilt = run_until_written(limits).await?;
    Ok(Output::Json.whole(&rebuilt)?)
}

/// Lets run after run do its part until the base is in place.
async fn run_until_written(limits: RebuildLimits) -> Result<Rebuilt, String> {
    let meter = CostMeter::with_page_limit(MAX_PAGE_ROWS);
    let environment = Environment::read(&|name| std::env::var(name).ok()).map_err(text)?;
    let environment = environment.watched_by(meter.interceptor());
    let compaction = StreamStore::<PublicListing>::open(&environment, Patience::Bulk).compaction(limits);
    let (mut runs, mut objects, mut object_bytes) = (Vec::new(), 0, 0);
    loop {
        let stopwatch = Stopwatch::start();
        let outcome = compaction.run().await.map_err(text)?;
        let (spent, bill) = (stopwatch.spent(), meter.take());
        objects += bill.objects;
        object_bytes += bill.object_bytes;
        runs.push(RebuildRun {
            cpu_ms: spent.cpu.as_secs_f64() * 1e3,
            wall_ms: spent.wall.as_secs_f64() * 1e3,
            read_units: bill.read_units,
        });
        match outcome {
            Compacted::Reading { .. } => {}
            Compacted::Written { records, parts, from_entities: true } => {
                let peak_bytes = Memory::now().peak;
                return Ok(Rebuilt { runs, records, parts, objects, object_bytes, peak_bytes });
            }
            other => return Err(format!("a run did something else: {other:?}")),
        }
    }
}

impl CompactionFigures {
    fn text(&self, read_units: f64) -> String {
        format!("{}\n\n{}\n\n{}", self.introduction(), self.runs(), self.summary(read_units))
    }

    fn introduction(&self) -> String {
        let Self { size, removed, table_bytes, .. } = self;
        let gigabytes = number(*table_bytes as f64 / 1e9);
        format!(
            "A base from the entities of {size} live and {removed} removed listings, which take {gigabytes} GB in the \
             embedded tables."
        )
    }

    fn runs(&self) -> String {
        let rows = self.rebuilt.runs.iter().zip(1..).map(|(run, place)| {
            let [cpu, wall] = [run.cpu_ms, run.wall_ms].map(|millis| number(millis / 1e3));
            [place.to_string(), cpu, wall, number(run.read_units)]
        });
        number_table(["run", "CPU s", "wall s", "read units"], rows)
    }

    fn summary(&self, read_units: f64) -> String {
        let pace = &self.pace;
        let Rebuilt { records, parts, objects, object_bytes, peak_bytes, .. } = &self.rebuilt;
        format!(
            "{records} records in {parts} parts. {objects} objects of {} MB were put. The process had at most {} MB of \
             memory.\nAt {} read units a second these {} take {} minutes in {} runs.",
            megabytes(*object_bytes),
            megabytes(*peak_bytes),
            pace.read_units_per_second,
            number(read_units),
            number(pace.seconds / 60.0),
            pace.runs
        )
    }
}

impl Pace {
    /// Computes the pace at these limits. A run that has read for more than half of its time leaves the writing to the
    /// next one.
    fn new(read_units: f64, limits: RebuildLimits) -> Self {
        let RebuildLimits { read_units_per_second, slice, .. } = limits;
        let seconds = read_units / f64::from(read_units_per_second);
        let reading = Duration::try_from_secs_f64(seconds).unwrap_or_default().as_millis();
        let slice = slice.as_millis().max(1);
        let last = if reading % slice > slice / 2 { 2 } else { 1 };
        Self { read_units_per_second, seconds, runs: (reading / slice + last) as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_reads_for_long_leaves_the_writing_to_another() {
        let limits = RebuildLimits { read_units_per_second: 100, slice: Duration::from_mins(5) };
        let runs = |seconds: f64| Pace::new(seconds * 100.0, limits).runs;
        assert_eq!([0.0, 149.0, 151.0, 300.0, 449.0, 451.0, 600.0].map(runs), [1, 1, 2, 2, 2, 3, 3]);
    }
}
