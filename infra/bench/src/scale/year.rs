//! A year of sales on simulated time: what compaction writes, reads and costs, and whether a start still answers right.

use std::time::Duration;

use base::{Compacted, Compaction};
use feed::{Applier, Message};
use local::aws::limits::{Limits, Report};
use serde::Serialize;
use types::records::PublicListing;

use super::figures::Figures;
use super::fill::{StreamStore, apply, apply_listings};
use super::price::{MILLION_READ_UNITS, dollars};
use super::simulation::{Simulation, ask};
use crate::market::GeneratedMarket;
use crate::output::{megabytes, number, table, text};

/// The largest market whose year is simulated.
const MAX_LIVE: u64 = 20_000;
const DAYS: u64 = 365;
/// The percentage of live listings that are sold on a day. As many new ones come.
const SOLD_PERCENT_PER_DAY: u64 = 1;
const DAY: Duration = Duration::from_hours(24);
/// On AWS, `compact` runs each minute. Here it runs once a day; the runs that find nothing to do are computed.
const RUNS_PER_DAY: f64 = 1_440.0;
/// What a run reads that finds nothing to do: where the stream stands.
const IDLE_UNITS: f64 = 1.0;

/// What the runs of one kind have done.
#[derive(Debug, Default, Serialize)]
struct RunTotals {
    runs: u64,
    read_units: f64,
    write_units: f64,
    gets: u64,
    puts: u64,
    written_bytes: u64,
    dollars: f64,
}

/// The runs of a year.
#[derive(Debug, Default, Serialize)]
struct Year {
    live: u64,
    sold: u64,
    idle: RunTotals,
    deltas: RunTotals,
    folds: RunTotals,
    rebuilds: RunTotals,
    idle_dollars_of_all_minutes: f64,
}

impl RunTotals {
    fn add(&mut self, report: &Report) {
        let units = report.total();
        self.runs += 1;
        self.read_units += units.read;
        self.write_units += units.write;
        self.gets += report.objects.gets;
        self.puts += report.objects.puts;
        self.written_bytes += report.objects.written_bytes;
        self.dollars += dollars(report);
    }

    fn row(&self, name: &str) -> [String; 8] {
        [
            name.to_owned(),
            self.runs.to_string(),
            number(self.read_units),
            number(self.write_units),
            self.gets.to_string(),
            self.puts.to_string(),
            megabytes(self.written_bytes),
            format!("{:.4}", self.dollars),
        ]
    }
}

impl Year {
    fn count(&mut self, compacted: Compacted, report: &Report) {
        let runs = match compacted {
            Compacted::Idle { .. } | Compacted::Overtaken => &mut self.idle,
            Compacted::Extended { .. } => &mut self.deltas,
            Compacted::Written { from_entities: false, .. } => &mut self.folds,
            Compacted::Reading { .. } | Compacted::Written { from_entities: true, .. } => &mut self.rebuilds,
        };
        runs.add(report);
    }

    fn text(&self) -> String {
        let header = ["a year", "runs", "read units", "write units", "GETs", "PUTs", "MB written", "dollars"];
        let kinds = [
            ("nothing to do", &self.idle),
            ("delta", &self.deltas),
            ("fold", &self.folds),
            ("from the entities", &self.rebuilds),
        ];
        let table = table(header, kinds.map(|(name, runs)| runs.row(name)));
        let Self { live, sold, idle_dollars_of_all_minutes: idle, .. } = self;
        format!(
            "{live} live listings (at most {MAX_LIVE}), of which {SOLD_PERCENT_PER_DAY} % are sold and replaced on \
             each of {DAYS} days: {sold} tombstones. A run a day; on AWS there is one a minute, and those that find \
             nothing to do cost {idle:.2} dollars a year. Rows do not expire here.\n\n{table}"
        )
    }
}

/// Simulates a year with a market of this size.
pub(super) async fn measure(size: u64) -> Result<Figures, String> {
    let live = size.min(MAX_LIVE);
    let simulation = Simulation::start().await?;
    let market = GeneratedMarket::new(live, simulation.now());
    let store = StreamStore::<PublicListing>::open(&simulation.environment()?);
    let compaction = Compaction::new(store.log, store.objects, simulation.clock.clone());
    let limiter = simulation.aws.limits();
    limiter.set(Limits::unlimited());
    apply_listings(simulation.admin.stores(), &market, 0..live, simulation.now()).await?;
    let (mut applier, per_day) = (Applier::new(simulation.admin.stores()), live * SOLD_PERCENT_PER_DAY / 100);
    let mut year = Year { live, ..Year::default() };
    for day in 0..DAYS {
        let sold = day * per_day..(day + 1) * per_day;
        let messages = sold.filter_map(|number| sale(&market, number)).flatten().collect();
        apply(&mut applier, messages, simulation.now()).await?;
        year.sold += per_day;
        limiter.take_report();
        let compacted = compaction.run().await.map_err(text)?;
        year.count(compacted, &limiter.take_report());
        simulation.clock.skip(DAY);
    }
    year.idle_dollars_of_all_minutes = DAYS as f64 * RUNS_PER_DAY * IDLE_UNITS * MILLION_READ_UNITS / 1e6;
    check(&simulation, live).await?;
    Figures::new(&year, year.text())
}

/// Returns the messages of a sale: the listing with this number is sold, and another one comes.
fn sale(market: &GeneratedMarket, number: u64) -> Option<[Message; 2]> {
    let sold = Message::ListingEnded(market.listing(number)?.id, 2);
    Some([sold, Message::Listing(market.listing(market.size() + number)?, 1)])
}

/// Starts an instance, which must find what is live.
async fn check(simulation: &Simulation, live: u64) -> Result<(), String> {
    let keys = simulation.keys(1).await?;
    let mut instance = simulation.cold_listings()?;
    instance.init().await.map_err(text)?;
    let key = keys.first().ok_or("there is no key")?;
    match ask(&instance, key).await? {
        Some(found) if found == live => Ok(()),
        found => Err(format!("after a year there are {found:?} of {live} listings")),
    }
}
