//! Measures what `listings` and `catalog` cost by the number of their records: the CPU time and the memory of a start, and
//! the CPU time of whole warm requests. These go through the function's own handler: request in, key write through the
//! real SDK, answer from the replica, JSON body out.

use std::sync::Arc;

use api::{Handler, Request};
use common::aws::{Lookup, Missing};
use common::clock::{Clock, SystemClock};
use common::paging::Paging;
use common::runtime::Service;
use http::header::{AUTHORIZATION, HeaderValue};
use local::demo::LargeMarket;
use local::environment::Variables;
use local::seed::StackAdmin;
use serde::{Deserialize, Serialize};
use terminal::{Output, number_table};

use crate::cli::{ReplicaOptions, ReplicaStream};
use crate::figures::{Percentiles, megabytes, number, text};
use crate::plot::{Plot, Series};
use crate::process::{Machine, Memory, Stopwatch, thread_time};
use crate::stack::{AwsProcess, authorization, write_base};

/// The name of the subcommand.
const SUBCOMMAND: &str = "instance";
/// How often a start is repeated, in a new process each time. The best one counts.
const TRIES: usize = 3;
/// The number of requests of each kind. With fewer than a hundred, the 99th percentile would be the largest.
const SAMPLES: usize = 300;

/// A kind of request: its name, which page it asks for, and the queries of its URLs.
type Kind = (&'static str, Page, &'static [&'static str]);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Page {
    First,
    Middle,
}

const LISTINGS: [Kind; 2] = [
    ("listings, newest", Page::First, &["sort=newest"]),
    ("listings, price range, middle page", Page::Middle, &["sort=price_asc&min_price=1.00&max_price=20.00"]),
];

/// Nine searches take turns, because the catalog keeps the counts of the latest eight.
const CATALOG: [Kind; 3] = [
    ("catalog, by name", Page::First, &["kind=skin"]),
    (
        "catalog, search for 3 letters",
        Page::First,
        &["q=red", "q=sil", "q=iro", "q=pap", "q=mid", "q=nig", "q=sta", "q=sol", "q=wil"],
    ),
    (
        "catalog, search for 10 characters",
        Page::First,
        &[
            "q=sticker%20%7C%20",
            "q=%20%7C%20oslo%2020",
            "q=%20%7C%20lisbon%20",
            "q=toronto%2020",
            "q=kitchen%20kn",
            "q=seoul%202025",
            "q=prague%20202",
            "q=%28holo%29%20%7C%20t",
            "q=%28glitter%29%20",
        ],
    ),
];

/// Everything that was measured.
#[derive(Debug, Serialize)]
struct ReplicasReport {
    machine: Machine,
    replicas: Vec<ReplicaReport>,
}

/// What a replica of one size takes.
#[derive(Debug, Serialize)]
struct ReplicaReport {
    stream: ReplicaStream,
    records: u64,
    #[serde(flatten)]
    instance: InstanceReport,
}

/// What one instance has measured of itself.
#[derive(Debug, Serialize, Deserialize)]
struct InstanceReport {
    /// CPU time of the start, all threads together.
    start_cpu_ms: f64,
    start_wall_ms: f64,
    /// How much the process's resident memory has grown by the start.
    resident_bytes: u64,
    /// The most memory that the process ever had resident, the program itself included.
    peak_bytes: u64,
    /// CPU time of requests.
    requests: Vec<RequestReport>,
}

#[derive(Debug, Serialize, Deserialize)]
struct RequestReport {
    kind: String,
    cpu: Percentiles,
}

/// Measures every size and prints the results.
pub(crate) async fn run(options: &ReplicaOptions) -> Result<(), String> {
    let output = Output::from_json_flag(options.json);
    let mut report = ReplicasReport { machine: Machine::this(), replicas: Vec::new() };
    output.part(|| report.machine.to_string());
    for &records in &options.sizes {
        for stream in ReplicaStream::ALL {
            let replica = measure(stream, records).await?;
            output.part(|| replica.table());
            report.replicas.push(replica);
        }
    }
    if let Some(folder) = &options.plots {
        report.requests_plot().write(folder, "requests")?;
        report.starts_plot().write(folder, "starts")?;
    }
    Ok(output.whole(&report)?)
}

async fn measure(stream: ReplicaStream, records: u64) -> Result<ReplicaReport, String> {
    let (aws, market) = (AwsProcess::start().await?, LargeMarket::new(records, SystemClock::new().now()));
    write_base(&aws.environment()?, &market, stream).await?;
    let mut best: Option<InstanceReport> = None;
    for _ in 0..TRIES {
        let instance: InstanceReport = aws.run_child(&[SUBCOMMAND, stream.as_str()]).await?;
        best = best.filter(|best| best.start_cpu_ms <= instance.start_cpu_ms).or(Some(instance));
    }
    let instance = best.ok_or("no instance was started")?;
    Ok(ReplicaReport { stream, records, instance })
}

/// Runs as an instance, in the environment of its function.
pub(crate) async fn run_instance(stream: ReplicaStream) -> Result<(), String> {
    let lookup: Lookup<'_> = &|name| std::env::var(name).ok();
    let (before, stopwatch) = (Memory::now(), Stopwatch::start());
    let service = Service::new(lookup, Arc::new(SystemClock::new())).map_err(text)?;
    let handler = stream.handler(&service).map_err(text)?;
    handler.warm_up().await?;
    let (spent, memory) = (stopwatch.spent(), Memory::now());

    let endpoint = lookup("AWS_ENDPOINT_URL").ok_or("AWS_ENDPOINT_URL is not set")?;
    let admin = StackAdmin::new(&Variables::new(&endpoint), Arc::new(SystemClock::new()))?;
    let authorization = HeaderValue::try_from(authorization(&admin).await?).map_err(text)?;
    let client = Client { handler, path: stream.path(), authorization };
    let mut requests = Vec::new();
    for kind in stream.kinds() {
        requests.push(client.measure(*kind).await?);
    }
    let report = InstanceReport {
        start_cpu_ms: spent.cpu.as_secs_f64() * 1e3,
        start_wall_ms: spent.wall.as_secs_f64() * 1e3,
        resident_bytes: memory.resident.saturating_sub(before.resident),
        peak_bytes: Memory::now().peak,
        requests,
    };
    Ok(Output::Json.whole(&report)?)
}

impl ReplicaStream {
    fn handler(self, service: &Service<'_>) -> Result<Box<dyn Handler>, Missing> {
        Ok(match self {
            Self::Listings => Box::new(listings::api(service)?),
            Self::Catalog => Box::new(catalog::api(service)?),
        })
    }

    const fn path(self) -> &'static str {
        match self {
            Self::Listings => "/v1/public/listings",
            Self::Catalog => "/v1/public/catalog",
        }
    }

    const fn kinds(self) -> &'static [Kind] {
        match self {
            Self::Listings => &LISTINGS,
            Self::Catalog => &CATALOG,
        }
    }
}

/// As much of an answer as is looked at.
#[derive(Deserialize)]
struct Answer {
    total: i64,
}

/// A client of the handler.
struct Client {
    handler: Box<dyn Handler>,
    path: &'static str,
    authorization: HeaderValue,
}

impl Client {
    /// Asks all queries once, and then measures them in turn.
    async fn measure(&self, (name, page, queries): Kind) -> Result<RequestReport, String> {
        let mut requests = Vec::with_capacity(queries.len());
        for query in queries {
            let first = self.request(query, 1)?;
            let Answer { total } = self.answer(first.clone()).await?;
            let middle = (total / Paging::MAX_SIZE / 2).max(1);
            requests.push(if page == Page::Middle { self.request(query, middle)? } else { first });
        }
        let mut samples = Vec::with_capacity(SAMPLES);
        for request in requests.iter().cycle().take(SAMPLES) {
            let (request, begun) = (request.clone(), thread_time());
            let response = self.handler.handle(request).await;
            samples.push(thread_time().saturating_sub(begun));
            if !response.status().is_success() {
                return Err(format!("{name}: a request was answered {}", response.status()));
            }
        }
        Ok(RequestReport { kind: name.to_owned(), cpu: Percentiles::from_samples(samples) })
    }

    async fn answer(&self, request: Request) -> Result<Answer, String> {
        let response = self.handler.handle(request).await;
        let body = response.body();
        serde_json::from_slice(body).map_err(|error| format!("{error}: {}", String::from_utf8_lossy(body)))
    }

    fn request(&self, query: &str, page: i64) -> Result<Request, String> {
        let mut request = Request::default();
        let uri = format!("{}?page={page}&page_size={}&{query}", self.path, Paging::MAX_SIZE);
        *request.uri_mut() = uri.parse().map_err(text)?;
        request.headers_mut().insert(AUTHORIZATION, self.authorization.clone());
        Ok(request)
    }
}

impl ReplicaReport {
    fn table(&self) -> String {
        let Self { stream, records, instance } = self;
        let rows = instance.requests.iter().map(|RequestReport { kind, cpu }| {
            [kind.clone(), number(cpu.p50_us), number(cpu.p99_us), cpu.samples.to_string()]
        });
        format!(
            "{}, {records} records: a start takes {} s of CPU time ({} s), {} MB resident, {} MB at most\n\n{}",
            stream.as_str(),
            seconds(instance.start_cpu_ms),
            seconds(instance.start_wall_ms),
            megabytes(instance.resident_bytes),
            megabytes(instance.peak_bytes),
            number_table(["warm request", "CPU µs p50", "p99", "samples"], rows)
        )
    }
}

fn seconds(millis: f64) -> String {
    format!("{:.3}", millis / 1e3)
}

impl ReplicasReport {
    /// Draws the CPU time of each kind of request by the number of records.
    fn requests_plot(&self) -> Plot {
        let kinds =
            ReplicaStream::ALL.into_iter().flat_map(|stream| stream.kinds().iter().map(move |kind| (stream, kind.0)));
        let series = kinds.map(|(stream, name)| {
            let millis = |replica: &ReplicaReport| {
                let found = replica.instance.requests.iter().find(|request| request.kind == name);
                found.map(|request| request.cpu.p50_us / 1e3)
            };
            self.series(name, stream, millis)
        });
        Plot {
            title: "CPU time of a whole warm request (median) by the number of records",
            unit: "ms",
            x: self.records().into_iter().map(Plot::power).collect(),
            series: series.collect(),
            is_joined: true,
        }
    }

    /// Draws the CPU time of a start by the number of records.
    fn starts_plot(&self) -> Plot {
        let series = ReplicaStream::ALL.into_iter();
        Plot {
            title: "CPU time of a start by the number of records",
            unit: "s",
            x: self.records().into_iter().map(Plot::power).collect(),
            series: series
                .map(|stream| self.series(stream.as_str(), stream, |it| Some(it.instance.start_cpu_ms / 1e3)))
                .collect(),
            is_joined: true,
        }
    }

    fn records(&self) -> Vec<u64> {
        let first = self.replicas.iter().filter(|replica| replica.stream == ReplicaStream::Listings);
        first.map(|replica| replica.records).collect()
    }

    fn series(&self, name: &str, stream: ReplicaStream, value: impl Fn(&ReplicaReport) -> Option<f64>) -> Series {
        let replicas = self.replicas.iter().filter(|replica| replica.stream == stream);
        Series { name: name.to_owned(), values: replicas.filter_map(value).collect() }
    }
}
