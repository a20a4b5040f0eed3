//! Measures what it costs to load the read model, keep it in memory and ask it questions, and what the same questions
//! cost when DynamoDB answers them in the usual way.

mod catalog;
pub(crate) mod cold;
mod index;
mod listings;
mod load;
mod report;
mod request;
mod samples;
mod subject;
pub(crate) mod usual;

use std::time::{Duration, Instant};

use indicatif::MultiProgress;
use serde::Serialize;
use types::clock::{Clock, SystemClock};

use crate::aws_side::AwsProcess;
use crate::cli::ReadModelOptions;
use crate::machine::Machine;
use crate::market::{GeneratedMarket, fill};
use crate::output::{Output, bar, text};
use crate::percentiles::Percentiles;
use catalog::CatalogSubject;
use cold::{ReplicaStream, Work};
use listings::ListingsSubject;
pub(crate) use load::Load;
use report::{ColdReport, KindReport, MarketReport, ReadModelReport, StreamReport, UsualReport, WarmReport};
use request::MeasuredFunction;
use subject::{Depth, QuestionKind, Subject};
use usual::UsualSide;

/// Above this size, the usual way is asked for one page of each kind instead of three.
const MAX_SIZE_FOR_ALL_PAGES: u64 = 100_000;

/// Above this size, no replica is built from the entities, because the embedded DynamoDB takes minutes to return them.
/// The compaction has to wait for that once anyway.
const MAX_SIZE_FOR_ENTITIES: u64 = 100_000;

/// What a page of one kind of question takes in an index.
#[derive(Debug, Serialize)]
pub(crate) struct KindTimes {
    pub(crate) kind: String,
    /// The largest total of its questions.
    pub(crate) total: usize,
    /// CPU time of the first, the middle and the last page.
    pub(crate) cpu: Vec<Percentiles>,
}

/// Asks the index of a replica every kind of question.
pub(crate) async fn ask_index(
    aws: &AwsProcess,
    market: &GeneratedMarket,
    stream: ReplicaStream,
) -> Result<Vec<KindTimes>, String> {
    match stream {
        ReplicaStream::Listings => times::<ListingsSubject>(aws, market).await,
        ReplicaStream::Catalog => times::<CatalogSubject>(aws, market).await,
    }
}

async fn times<S: Subject>(aws: &AwsProcess, market: &GeneratedMarket) -> Result<Vec<KindTimes>, String> {
    let kinds = S::kinds(market);
    let indexed = index::measure::<S>(aws, &kinds).await?;
    let times = kinds.into_iter().zip(indexed).map(|(kind, indexed)| KindTimes {
        kind: kind.name,
        total: indexed.totals.into_iter().max().unwrap_or_default(),
        cpu: indexed.answered.into_iter().map(|at| at.cpu).collect(),
    });
    Ok(times.collect())
}

/// A market of one size, in our tables and in those of the usual way.
struct Bench {
    market: GeneratedMarket,
    aws: AwsProcess,
    usual: UsualSide,
}

/// Measures every size and prints the results.
pub(crate) async fn run(options: &ReadModelOptions) -> Result<(), String> {
    let output = Output::from_json_flag(options.json);
    let mut report = ReadModelReport { machine: Machine::this(), markets: Vec::new() };
    output.part(|| report.machine.to_string());
    for &size in &options.sizes {
        report.markets.push(measure(size, output).await?);
    }
    output.whole(&report)
}

/// Stores a market of this size in both ways and measures it. Each part is printed as soon as it is known.
async fn measure(size: u64, output: Output) -> Result<MarketReport, String> {
    let began = Instant::now();
    let bench = Bench::start(size).await?;
    let fill_seconds = began.elapsed().as_secs_f64();
    let mut report = MarketReport { records: size, fill_seconds, cold: Vec::new(), streams: Vec::new() };
    if size <= MAX_SIZE_FOR_ENTITIES {
        report.cold.extend(bench.cold(Work::Entities, 1).await?);
    }
    report.cold.extend(bench.cold(Work::Compaction, 1).await?);
    report.cold.extend(bench.cold(Work::Base, 3).await?);
    output.part(|| report.cold_table());
    for stream in [bench.ask::<ListingsSubject>().await?, bench.ask::<CatalogSubject>().await?] {
        output.part(|| stream.kinds_table());
        output.part(|| stream.warm_table());
        report.streams.push(stream);
    }
    Ok(report)
}

impl Bench {
    async fn start(size: u64) -> Result<Self, String> {
        let aws = AwsProcess::start().await?;
        let market = GeneratedMarket::new(size, SystemClock::new().now());
        let bars = MultiProgress::new();
        let [ours, theirs] = ["filling the tables", "filling the usual tables"].map(|what| bar(&bars, what, size * 2));
        let admin = aws.admin()?;
        let ((), usual) = tokio::try_join!(fill(&admin, &market, &ours), UsualSide::start(&market, &theirs))?;
        bars.clear().map_err(text)?;
        Ok(Self { market, aws, usual })
    }

    /// Does this work for each stream. The best of `tries` tries counts.
    async fn cold(&self, work: Work, tries: usize) -> Result<Vec<ColdReport>, String> {
        let mut loads = Vec::with_capacity(ReplicaStream::ALL.len());
        for stream in ReplicaStream::ALL {
            loads.push(ColdReport { stream, work, load: cold::best(&self.aws, stream, work, tries).await? });
        }
        Ok(loads)
    }

    /// Asks a replica's index, then its function, then DynamoDB.
    async fn ask<S: Subject>(&self) -> Result<StreamReport, String> {
        let kinds = S::kinds(&self.market);
        let indexed = index::measure::<S>(&self.aws, &kinds).await?;
        let mut function = MeasuredFunction::new::<S>(&self.aws).await?;
        let mut reports = Vec::with_capacity(kinds.len());
        for (kind, indexed) in kinds.iter().zip(indexed) {
            let request = function.ask::<S>(kind, &indexed.totals).await?;
            let usual = self.ask_usual::<S>(kind, &indexed.totals).await?;
            let total = indexed.totals.iter().copied().max().unwrap_or_default();
            reports.push(KindReport { kind: kind.name.clone(), total, index: indexed.answered, request, usual });
        }
        let warm = warm(&mut function).await?;
        Ok(StreamReport { stream: S::STREAM, kinds: reports, warm })
    }

    /// Asks one question of a kind in the usual way. The answer must be the same as ours.
    async fn ask_usual<S: Subject>(
        &self,
        kind: &QuestionKind<S::Query>,
        totals: &[usize],
    ) -> Result<Vec<UsualReport>, String> {
        let middle = kind.queries.len() / 2;
        let Some((query, total)) = kind.queries.get(middle).zip(totals.get(middle)) else { return Ok(Vec::new()) };
        let is_asked = |depth: &Depth| *depth == Depth::Middle || self.market.size() <= MAX_SIZE_FOR_ALL_PAGES;
        let mut reports = Vec::new();
        for depth in Depth::ALL.into_iter().filter(is_asked) {
            let paging = depth.paging(*total);
            let asked = self.usual.asker.ask(&S::plan(query), paging).await;
            let (records, counted, cost) = asked.map_err(|error| format!("{}: {error}", kind.name))?;
            let expected = paging.take().min(total.saturating_sub(paging.skip()));
            if (counted, records.len()) != (*total, expected) {
                return Err(format!("{}: the usual way counts {counted}, the replica {total}", kind.name));
            }
            reports.push(UsualReport { depth, cost });
        }
        Ok(reports)
    }
}

/// Asks for the first page again and again: within a second of the last look at the log, a second later, and
/// compressed.
async fn warm(function: &mut MeasuredFunction) -> Result<Vec<WarmReport>, String> {
    let (at_once, later) = (Duration::ZERO, Duration::from_secs(1));
    let conditions = [("within a second", at_once, false), ("a second later", later, false), ("gzip", at_once, true)];
    let mut reports = Vec::with_capacity(conditions.len());
    for (when, after, gzip) in conditions {
        reports.push(WarmReport { when, warm: function.repeat("page_size=100", after, gzip).await? });
    }
    Ok(reports)
}
