//! Asks a replica: its index alone, and its function by whole warm requests. These go through the function's own handler:
//! event in, key write through the real SDK, answer from the replica, JSON body out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use api::{Handler, Request, Response};
use common::aws::Patience;
use common::clock::{Clock, ManualClock, SystemClock};
use common::paging::Paging;
use http::header::{AUTHORIZATION, HeaderValue};
use local::meter::{Bill, CostMeter};
use replica::Replica;
use serde::Serialize;

use super::subject::{Depth, QuestionKind, Subject};
use crate::figures::{Percentiles, text};
use crate::process::thread_time;
use crate::stack::{AwsProcess, StreamStore, authorization};

/// The fewest samples. With fewer, the 99th percentile would be the largest sample.
const MIN_SAMPLES: usize = 100;
const MAX_SAMPLES: usize = 1_000;
/// Once there are [`MIN_SAMPLES`] samples, more are taken only until this time has passed since the beginning.
const SAMPLING_TIME: Duration = Duration::from_millis(100);
const MINUTE: Duration = Duration::from_mins(1);
/// The number of requests per minute with a key of the largest tier. It leaves some of the key's 3,000 for requests
/// that are not measured.
const TOKENS_PER_MINUTE: u32 = 2_900;

/// What one kind of question takes at one depth.
#[derive(Clone, Debug, Serialize)]
pub(super) struct IndexTimes {
    pub(super) depth: Depth,
    pub(super) cpu: Percentiles,
}

/// What one kind of request takes at one depth.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RequestTimes {
    pub(super) depth: Depth,
    pub(super) cpu: Percentiles,
    pub(super) wall: Percentiles,
}

/// What repeated requests take, and their store calls.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Warm {
    pub(super) cpu: Percentiles,
    pub(super) wall: Percentiles,
    /// The store calls of all samples together.
    pub(super) bill: Bill,
    pub(super) body_bytes: usize,
}

/// How the index answers a kind of question.
pub(super) struct IndexedKind {
    /// The total of each question of this kind.
    pub(super) totals: Vec<usize>,
    pub(super) answered: Vec<IndexTimes>,
}

/// Asks every kind at every depth.
pub(super) async fn index<S: Subject>(
    aws: &AwsProcess,
    kinds: &[QuestionKind<S::Query>],
) -> Result<Vec<IndexedKind>, String> {
    // The clock stands still, so that no catch-up becomes due.
    let clock = Arc::new(ManualClock::at(SystemClock::new().now()));
    let StreamStore { log, objects } = StreamStore::open(&aws.environment()?, Patience::Request);
    let replica = Replica::<S::View>::new(log, objects, clock);
    let mut indexed = Vec::with_capacity(kinds.len());
    for kind in kinds {
        indexed.push(ask_index::<S>(&replica, kind).await.map_err(|error| format!("{}: {error:?}", kind.name))?);
    }
    Ok(indexed)
}

async fn ask_index<S: Subject>(
    replica: &Replica<S::View>,
    kind: &QuestionKind<S::Query>,
) -> Result<IndexedKind, api::error::ApiError> {
    let read = async |query: &S::Query, paging: Paging| replica.read(|view| S::page(view, query, paging)).await;
    let mut totals = Vec::with_capacity(kind.queries.len());
    for query in &kind.queries {
        totals.push(read(query, Depth::First.paging(0)).await?);
    }
    let mut answered = Vec::with_capacity(Depth::ALL.len());
    for depth in Depth::ALL {
        let mut samples = Samples::new();
        let mut questions = kind.queries.iter().zip(&totals).cycle();
        while let (Some((query, total)), Some(sample)) = (questions.next(), samples.next()) {
            read(query, depth.paging(*total)).await?;
            samples.end(&sample);
        }
        answered.push(IndexTimes { depth, cpu: samples.cpu() });
    }
    Ok(IndexedKind { totals, answered })
}

/// A warmed-up function with a clock of its own and a key. Its store calls are counted.
pub(super) struct MeasuredFunction {
    handler: Box<dyn Handler>,
    clock: Arc<ManualClock>,
    meter: CostMeter,
    path: &'static str,
    authorization: HeaderValue,
    tokens: u32,
}

impl MeasuredFunction {
    /// Builds the function of a subject and loads its replica.
    pub(super) async fn new<S: Subject>(aws: &AwsProcess) -> Result<Self, String> {
        let clock = Arc::new(ManualClock::at(SystemClock::new().now()));
        let lookup = |name: &str| aws.variables.get(name);
        let meter = CostMeter::default();
        let service = meter.service(&lookup, clock.clone()).map_err(text)?;
        let handler = S::handler(&service).map_err(text)?;
        handler.warm_up().await?;
        let authorization = HeaderValue::try_from(authorization(&aws.admin()?).await?).map_err(text)?;
        let mut function = Self { handler, clock, meter, path: S::PATH, authorization, tokens: 0 };
        function.refill().await?;
        Ok(function)
    }

    /// Asks the questions of a kind at every depth, always within a second of the last look at the log.
    pub(super) async fn ask<S: Subject>(
        &mut self,
        kind: &QuestionKind<S::Query>,
        totals: &[usize],
    ) -> Result<Vec<RequestTimes>, String> {
        let mut requested = Vec::with_capacity(Depth::ALL.len());
        for depth in Depth::ALL {
            let request = |(query, total): (&S::Query, &usize)| {
                let paging = depth.paging(*total);
                self.request(&format!("{}&page={}&page_size={}", S::parameters(query), paging.page, paging.page_size))
            };
            let requests: Vec<Request> = kind.queries.iter().zip(totals).map(request).collect();
            let mut samples = Samples::new();
            for request in requests.iter().cycle() {
                if !self.sample(&mut samples, request.clone()).await?.0 {
                    break;
                }
            }
            requested.push(RequestTimes { depth, cpu: samples.cpu(), wall: samples.wall() });
        }
        Ok(requested)
    }

    /// Repeats the same request. The function's clock moves on by `after` before each.
    pub(super) async fn repeat(&mut self, query: &str, after: Duration) -> Result<Warm, String> {
        let request = self.request(query);
        self.refill().await?;
        self.meter.take();
        let (mut samples, mut bill, mut body_bytes) = (Samples::new(), Bill::default(), 0);
        loop {
            self.clock.advance(after);
            let (taken, bytes) = self.sample(&mut samples, request.clone()).await?;
            if !taken {
                break;
            }
            body_bytes = bytes;
            bill += self.meter.take();
        }
        Ok(Warm { cpu: samples.cpu(), wall: samples.wall(), bill, body_bytes })
    }

    /// Takes one more sample, unless there are enough. Returns whether it did, and the length of the body.
    async fn sample(&mut self, samples: &mut Samples, request: Request) -> Result<(bool, usize), String> {
        if self.tokens == 0 {
            self.refill().await?;
            self.meter.take();
        }
        self.tokens -= 1;
        let Some(sample) = samples.next() else { return Ok((false, 0)) };
        let response = self.handler.handle(request).await;
        samples.end(&sample);
        checked(&response).map(|bytes| (true, bytes))
    }

    /// Moves the clock to the next minute, in which the key has all its tokens. The look at the log that is then due is
    /// done here, so that it is not part of a sample.
    async fn refill(&mut self) -> Result<(), String> {
        self.clock.advance(MINUTE);
        self.tokens = TOKENS_PER_MINUTE;
        checked(&self.handler.handle(self.request("page_size=1")).await).map(drop)
    }

    fn request(&self, query: &str) -> Request {
        let mut request = Request::default();
        *request.uri_mut() = format!("{}?{query}", self.path).parse().unwrap_or_default();
        request.headers_mut().insert(AUTHORIZATION, self.authorization.clone());
        request
    }
}

/// Returns the length of the body of a 200. Any other answer is an error.
fn checked(response: &Response) -> Result<usize, String> {
    let body = response.body();
    match response.status().as_u16() {
        200 => Ok(body.len()),
        status => Err(format!("a request was answered {status}: {}", String::from_utf8_lossy(body))),
    }
}

/// How long the same work took each time.
struct Samples {
    cpu: Vec<Duration>,
    wall: Vec<Duration>,
    began: Instant,
}

/// A sample that is being taken.
struct Sample {
    cpu: Duration,
    wall: Instant,
}

impl Samples {
    fn new() -> Self {
        Self { cpu: Vec::with_capacity(MAX_SAMPLES), wall: Vec::with_capacity(MAX_SAMPLES), began: Instant::now() }
    }

    /// Begins a sample, unless there are enough.
    fn next(&self) -> Option<Sample> {
        let is_needed =
            self.cpu.len() < MIN_SAMPLES || (self.cpu.len() < MAX_SAMPLES && self.began.elapsed() < SAMPLING_TIME);
        is_needed.then(|| Sample { cpu: thread_time(), wall: Instant::now() })
    }

    fn end(&mut self, sample: &Sample) {
        self.cpu.push(thread_time().saturating_sub(sample.cpu));
        self.wall.push(sample.wall.elapsed());
    }

    /// Returns percentiles of the thread's CPU time.
    fn cpu(&self) -> Percentiles {
        Percentiles::from_samples(self.cpu.clone())
    }

    /// Returns percentiles of wall-clock time.
    fn wall(&self) -> Percentiles {
        Percentiles::from_samples(self.wall.clone())
    }
}
