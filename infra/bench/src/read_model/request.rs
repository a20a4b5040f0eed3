//! Measures whole warm requests through the function's own handler: event in, key write through the real SDK, answer
//! from the replica, JSON body out.

use std::sync::Arc;
use std::time::Duration;

use admin::keys::NewKey;
use api::{GatewayEvent, Handler, Response};
use http::header::{ACCEPT_ENCODING, AUTHORIZATION, HeaderValue};
use local::meter::{Bill, CostMeter};
use serde::Serialize;
use types::clock::{Clock, ManualClock, SystemClock};
use types::scope::{Scope, Tier};
use uuid::Uuid;

use super::samples::Samples;
use super::subject::{Depth, QuestionKind, Subject};
use crate::aws_side::AwsProcess;
use crate::output::text;
use crate::percentiles::Percentiles;

const MINUTE: Duration = Duration::from_mins(1);
/// The number of requests per minute with a key of the largest tier. It leaves some of the key's 3,000 for requests
/// that are not measured.
const TOKENS_PER_MINUTE: u32 = 2_900;

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
    /// The number of store calls of the request that made the most.
    pub(super) most_calls: u64,
    pub(super) body_bytes: usize,
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
        let mut function = Self { handler, clock, meter, path: S::PATH, authorization: key(aws).await?, tokens: 0 };
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
            let event = |(query, total): (&S::Query, &usize)| {
                let paging = depth.paging(*total);
                self.event(&format!("{}&page={}&page_size={}", S::parameters(query), paging.page, paging.page_size))
            };
            let events: Vec<GatewayEvent> = kind.queries.iter().zip(totals).map(event).collect();
            let mut samples = Samples::new();
            for event in events.iter().cycle() {
                if !self.sample(&mut samples, event.clone()).await?.0 {
                    break;
                }
            }
            requested.push(RequestTimes { depth, cpu: samples.cpu(), wall: samples.wall() });
        }
        Ok(requested)
    }

    /// Repeats the same request. The function's clock moves on by `after` before each.
    pub(super) async fn repeat(&mut self, query: &str, after: Duration, gzip: bool) -> Result<Warm, String> {
        let mut event = self.event(query);
        if gzip {
            event.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        }
        self.refill().await?;
        self.meter.take();
        let (mut samples, mut bill, mut most_calls, mut body_bytes) = (Samples::new(), Bill::default(), 0, 0);
        loop {
            self.clock.advance(after);
            let (taken, bytes) = self.sample(&mut samples, event.clone()).await?;
            if !taken {
                break;
            }
            let one = self.meter.take();
            most_calls = most_calls.max(one.all_calls());
            body_bytes = bytes;
            bill += one;
        }
        Ok(Warm { cpu: samples.cpu(), wall: samples.wall(), bill, most_calls, body_bytes })
    }

    /// Takes one more sample, unless there are enough. Returns whether it did, and the length of the body.
    async fn sample(&mut self, samples: &mut Samples, event: GatewayEvent) -> Result<(bool, usize), String> {
        if self.tokens == 0 {
            self.refill().await?;
            self.meter.take();
        }
        self.tokens -= 1;
        let Some(sample) = samples.next() else { return Ok((false, 0)) };
        let response = self.handler.handle(event).await;
        samples.end(&sample);
        checked(&response).map(|bytes| (true, bytes))
    }

    /// Moves the clock to the next minute, in which the key has all its tokens. The look at the log that is then due is
    /// done here, so that it is not part of a sample.
    async fn refill(&mut self) -> Result<(), String> {
        self.clock.advance(MINUTE);
        self.tokens = TOKENS_PER_MINUTE;
        checked(&self.handler.handle(self.event("page_size=1")).await).map(drop)
    }

    fn event(&self, query: &str) -> GatewayEvent {
        let mut event = GatewayEvent::default();
        event.raw_path = Some(self.path.to_owned());
        event.raw_query_string = Some(query.to_owned());
        event.headers.insert(AUTHORIZATION, self.authorization.clone());
        event.request_context.request_id = Some("bench".to_owned());
        event.request_context.http.method = http::Method::GET;
        event
    }
}

/// Returns the length of the body of a 200. Any other answer is an error.
fn checked(response: &Response) -> Result<usize, String> {
    let body = response.body.as_deref().unwrap_or_default();
    match response.status_code {
        200 => Ok(body.len()),
        status => Err(format!("a request was answered {status}: {}", String::from_utf8_lossy(body))),
    }
}

/// Creates a key of the largest tier and returns it as a header.
async fn key(aws: &AwsProcess) -> Result<HeaderValue, String> {
    let scopes = Scope::ALL.into_iter().collect();
    let new = NewKey {
        user_id: Uuid::new_v4().into(),
        name: None,
        tier: Tier::Business,
        limit_override: None,
        scopes,
        expires_at: None,
    };
    let (key, _) = aws.admin()?.keys().create(new).await.map_err(text)?;
    HeaderValue::try_from(format!("Bearer {}", key.reveal())).map_err(text)
}
