//! Measures what it costs to ask the read model questions, and what the same questions cost when DynamoDB answers them in
//! the usual way.

mod ask;
mod subject;
pub(crate) mod usual;

use std::time::{Duration, Instant};

use common::clock::{Clock, SystemClock};
use common::records::{PublicItem, PublicListing};
use local::demo::LargeMarket;
use serde::Serialize;
use terminal::{Output, number_table};

use crate::cli::{ReadModelOptions, ReplicaStream};
use crate::figures::{Percentiles, bar, number};
use crate::process::Machine;
use crate::stack::{AwsProcess, fill, pack};
use ask::{IndexTimes, MeasuredFunction, RequestTimes, Warm};
use subject::{CatalogSubject, Depth, ListingsSubject, QuestionKind, Subject};
use usual::{Cost, UsualSide};

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
    market: &LargeMarket,
    stream: ReplicaStream,
) -> Result<Vec<KindTimes>, String> {
    match stream {
        ReplicaStream::Listings => times::<ListingsSubject>(aws, market).await,
        ReplicaStream::Catalog => times::<CatalogSubject>(aws, market).await,
    }
}

async fn times<S: Subject>(aws: &AwsProcess, market: &LargeMarket) -> Result<Vec<KindTimes>, String> {
    let kinds = S::kinds(market);
    let indexed = ask::index::<S>(aws, &kinds).await?;
    let times = kinds.into_iter().zip(indexed).map(|(kind, indexed)| KindTimes {
        kind: kind.name,
        total: indexed.totals.into_iter().max().unwrap_or_default(),
        cpu: indexed.answered.into_iter().map(|at| at.cpu).collect(),
    });
    Ok(times.collect())
}

/// Everything that was measured.
#[derive(Debug, Serialize)]
struct ReadModelReport {
    machine: Machine,
    markets: Vec<MarketReport>,
}

/// What was measured of a market of one size.
#[derive(Debug, Serialize)]
struct MarketReport {
    /// The number of items, which is also the number of listings.
    records: u64,
    /// How long it took to store them in our tables and in those of the usual way, side by side.
    fill_seconds: f64,
    streams: Vec<StreamReport>,
}

/// What was measured of one replica.
#[derive(Debug, Serialize)]
struct StreamReport {
    stream: ReplicaStream,
    warm: Vec<WarmReport>,
    kinds: Vec<KindReport>,
}

/// What was measured of one request, repeated under one condition.
#[derive(Debug, Serialize)]
struct WarmReport {
    when: &'static str,
    #[serde(flatten)]
    warm: Warm,
}

/// What was measured of one kind of question.
#[derive(Debug, Serialize)]
struct KindReport {
    kind: String,
    /// The largest total of its questions.
    total: usize,
    index: Vec<IndexTimes>,
    request: Vec<RequestTimes>,
    /// What the middle page of one question costs in the usual way.
    usual: Cost,
}

/// A market of one size, in our tables and in those of the usual way.
struct Bench {
    market: LargeMarket,
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
    Ok(output.whole(&report)?)
}

/// Stores a market of this size in both ways and measures it. Each part is printed as soon as it is known.
async fn measure(size: u64, output: Output) -> Result<MarketReport, String> {
    let began = Instant::now();
    let bench = Bench::start(size).await?;
    let fill_seconds = began.elapsed().as_secs_f64();
    output.part(|| format!("{size} items and as many listings, stored in {} s", number(fill_seconds)));
    let mut report = MarketReport { records: size, fill_seconds, streams: Vec::new() };
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
        let market = LargeMarket::new(size, SystemClock::new().now());
        let (bar, admin) = (bar("filling both tables", size * 4), aws.admin()?);
        let ((), usual) = tokio::try_join!(fill(&admin, &market, &bar), UsualSide::start(&market, &bar))?;
        drop(bar);
        pack::<PublicListing>(&aws.environment()?).await?;
        pack::<PublicItem>(&aws.environment()?).await?;
        Ok(Self { market, aws, usual })
    }

    /// Asks a replica's index, then its function, then DynamoDB.
    async fn ask<S: Subject>(&self) -> Result<StreamReport, String> {
        let kinds = S::kinds(&self.market);
        let indexed = ask::index::<S>(&self.aws, &kinds).await?;
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

    /// Asks for the middle page of one question of a kind in the usual way. The answer must be the same as ours.
    async fn ask_usual<S: Subject>(&self, kind: &QuestionKind<S::Query>, totals: &[usize]) -> Result<Cost, String> {
        let middle = kind.queries.len() / 2;
        let asked = kind.queries.get(middle).zip(totals.get(middle));
        let (query, total) = asked.ok_or_else(|| format!("{}: there is no question", kind.name))?;
        let paging = Depth::Middle.paging(*total);
        let asked = self.usual.ask(&S::plan(query), paging).await;
        let (records, counted, cost) = asked.map_err(|error| format!("{}: {error}", kind.name))?;
        let expected = paging.take().min(total.saturating_sub(paging.skip()));
        if (counted, records.len()) != (*total, expected) {
            return Err(format!("{}: the usual way counts {counted}, the replica {total}", kind.name));
        }
        Ok(cost)
    }
}

/// Asks for the first page again and again: within a second of the last look at the log, and a second later.
async fn warm(function: &mut MeasuredFunction) -> Result<Vec<WarmReport>, String> {
    let conditions = [("within a second", Duration::ZERO), ("a second later", Duration::from_secs(1))];
    let mut reports = Vec::with_capacity(conditions.len());
    for (when, after) in conditions {
        reports.push(WarmReport { when, warm: function.repeat("page_size=100", after).await? });
    }
    Ok(reports)
}

impl StreamReport {
    /// Formats every kind of question, with the first, middle and last page side by side.
    fn kinds_table(&self) -> String {
        let header = [
            self.stream.as_str(),
            "total",
            "index p50",
            "p99 first",
            "middle",
            "last",
            "request p50",
            "p99 first",
            "middle",
            "last",
            "usual ms",
            "calls",
            "read units",
            "times ours",
        ];
        let rows = self.kinds.iter().map(KindReport::row);
        format!("{}\n{}", number_table(header, rows), self.worst())
    }

    /// Formats a line about the slowest kinds.
    fn worst(&self) -> String {
        let index = self.kinds.iter().flat_map(|kind| kind.index.iter().map(|at| (&at.cpu, &kind.kind)));
        let request = self.kinds.iter().flat_map(|kind| kind.request.iter().map(|at| (&at.cpu, &kind.kind)));
        let line = |what: &str, worst: Option<(&Percentiles, &String)>| {
            worst.map_or_else(String::new, |(cpu, kind)| format!("{what} {} µs ({kind})", number(cpu.p99_us)))
        };
        format!(
            "CPU µs, pages of 100. Worst p99: {}, {}.",
            line("index", worst_of(index)),
            line("whole request", worst_of(request)),
        )
    }

    /// Formats what warm requests take, and their store calls.
    fn warm_table(&self) -> String {
        let header = ["warm request", "CPU µs p50", "p99", "wall µs p50", "body", "calls", "read units", "write units"];
        let rows = self.warm.iter().map(|WarmReport { when, warm }| {
            let each = |sum: f64| number(sum / warm.cpu.samples as f64);
            let calls: Vec<_> =
                warm.bill.calls.iter().map(|(name, calls)| format!("{} {name}", each(*calls as f64))).collect();
            [
                (*when).to_owned(),
                number(warm.cpu.p50_us),
                number(warm.cpu.p99_us),
                number(warm.wall.p50_us),
                warm.body_bytes.to_string(),
                calls.join(", "),
                each(warm.bill.read_units),
                each(warm.bill.write_units),
            ]
        });
        number_table(header, rows)
    }
}

impl KindReport {
    fn row(&self) -> [String; 14] {
        let at = |place: usize| self.index.get(place).map(|at| at.cpu).unwrap_or_default();
        let request = |place: usize| self.request.get(place).map(|at| at.cpu).unwrap_or_default();
        let ours = self.request.get(1).map(|at| at.wall.p50_us / 1e3).unwrap_or_default();
        [
            self.kind.clone(),
            self.total.to_string(),
            number(at(1).p50_us),
            number(at(0).p99_us),
            number(at(1).p99_us),
            number(at(2).p99_us),
            number(request(1).p50_us),
            number(request(0).p99_us),
            number(request(1).p99_us),
            number(request(2).p99_us),
            number(self.usual.wall_ms),
            self.usual.calls.to_string(),
            number(self.usual.read_units),
            number(self.usual.wall_ms / ours),
        ]
    }
}

fn worst_of<'a>(all: impl Iterator<Item = (&'a Percentiles, &'a String)>) -> Option<(&'a Percentiles, &'a String)> {
    all.max_by(|(a, _), (b, _)| a.p99_us.total_cmp(&b.p99_us))
}
