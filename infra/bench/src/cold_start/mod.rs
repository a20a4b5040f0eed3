//! Measures how soon a function answers after its process was started, compared with programs that do no more than
//! Lambda and the AWS SDK require.

mod binaries;
mod events;
mod instance;
pub(crate) mod refusals;
mod report;
mod runtime_api;

use std::path::Path;
use std::sync::Arc;

use base::{Compaction, RebuildLimits};
use indicatif::{MultiProgress, ProgressBar};
use market::Log;
use objects::Objects;
use platform::aws::{Environment, Patience, required};
use platform::resources::BASE_BUCKET_VARIABLE;
use types::clock::{Clock, SystemClock};
use types::records::{PublicItem, PublicListing};

use crate::aws_side::AwsProcess;
use crate::cli::ColdStartOptions;
use crate::machine::Machine;
use crate::market::{GeneratedMarket, fill};
use crate::output::{Output, bar, text};
use binaries::{Binaries, PROGRAMS};
use events::Events;
use instance::StartTimes;
use report::{ColdStartReport, ProgramReport};

/// Starts every program several times. The programs take turns, so that whatever else the machine does affects all of
/// them alike.
pub(crate) async fn run(options: &ColdStartOptions) -> Result<(), String> {
    let binaries = Binaries::build()?;
    let bars = MultiProgress::new();
    let aws = AwsProcess::start().await?;
    let market = GeneratedMarket::new(options.items, SystemClock::new().now());
    prepare(&aws, &market, &bars).await?;
    let events = Events::new(&aws, &market).await?;

    let mut reports: Vec<_> =
        PROGRAMS.iter().map(|name| ProgramReport::new(name, &binaries)).collect::<Result<_, _>>()?;
    let starting = bar(&bars, "starting programs", options.starts * PROGRAMS.len() as u64);
    for _ in 0..options.starts {
        for report in &mut reports {
            report.add(&start(report.name, binaries.path(report.name)?, &aws, &events, 0).await?);
            starting.inc(1);
        }
    }
    for report in &mut reports {
        report.warm(start(report.name, binaries.path(report.name)?, &aws, &events, options.requests).await?);
    }
    bars.clear().map_err(text)?;
    let report =
        ColdStartReport { machine: Machine::this(), items: options.items, starts: options.starts, programs: reports };
    let output = Output::from_json_flag(options.json);
    output.part(|| report.table());
    output.whole(&report)
}

async fn start(
    name: &'static str,
    path: &Path,
    aws: &AwsProcess,
    events: &Events,
    requests: usize,
) -> Result<StartTimes, String> {
    let started = instance::start(path, aws, &events.for_program(name), requests, &[200, 404]).await;
    started.map_err(|error| format!("{name}: {error}"))
}

/// Stores the market and packs it as `compact` does.
async fn prepare(aws: &AwsProcess, market: &GeneratedMarket, bars: &MultiProgress) -> Result<(), String> {
    let filling: ProgressBar = bar(bars, "filling the tables", market.size() * 2);
    let admin = aws.admin()?;
    fill(&admin, market, &filling).await?;
    filling.finish_and_clear();
    let stores = admin.stores();
    let lookup = |name: &str| aws.variables.get(name);
    let environment = Environment::read(&lookup).map_err(text)?;
    let [bucket] = required(&lookup, [BASE_BUCKET_VARIABLE]).map_err(text)?;
    let objects = Objects::new(objects::client(&environment, Patience::Bulk), bucket, Patience::Bulk);
    pack::<PublicItem>(&stores, &objects).await?;
    pack::<PublicListing>(&stores, &objects).await
}

async fn pack<R: base::Columnar>(stores: &feed::Stores, objects: &Objects) -> Result<(), String> {
    let (log, clock) = (Log::<R>::new(stores.market.clone()), Arc::new(SystemClock::new()));
    let compaction = Compaction::new(log, objects.clone(), clock).with_limits(RebuildLimits::at_once());
    compaction.run().await.map(drop).map_err(text)
}
