//! Measures what others notice of a client that hammers with invented keys, and how often such a client makes the
//! function write.

use std::sync::Arc;
use std::time::{Duration, Instant};

use admin::keys::NewKey;
use api::{GatewayEvent, Handler};
use auth::KeyText;
use http::header::{AUTHORIZATION, HeaderValue};
use local::meter::CostMeter;
use serde::Serialize;
use tokio::task::JoinSet;
use types::clock::SystemClock;
use types::scope::{Scope, Tier};
use uuid::Uuid;

use crate::aws_side::AwsProcess;
use crate::cli::FloodOptions;
use crate::machine::Machine;
use crate::output::{Output, number, table, text};
use crate::percentiles::Percentiles;

const TICK: Duration = Duration::from_millis(10);
const TICKS_PER_SECOND: usize = 100;
/// In each tick, others send one request, and the flood this many.
const FLOOD_PER_TICK: usize = 10;
/// How many keys the others use in turn. A key of the largest tier has enough tokens for that.
const GOOD_KEYS: usize = 4;
const INVENTED_KEYS: u8 = 10;

/// Everything that was measured.
#[derive(Debug, Serialize)]
struct FloodReport {
    machine: Machine,
    invented_keys: u8,
    phases: Vec<PhaseReport>,
}

/// What was measured while others were alone, or beside the flood.
#[derive(Debug, Serialize)]
struct PhaseReport {
    name: &'static str,
    /// How long others waited.
    others: Percentiles,
    refusals_per_second: f64,
    writes_per_second_and_invented_key: f64,
}

/// A function, and the keys with which it is asked.
struct Target {
    handler: Arc<dyn Handler>,
    meter: CostMeter,
    good: Vec<HeaderValue>,
    invented: Vec<HeaderValue>,
}

/// Measures both phases and prints the results.
pub(crate) async fn run(options: &FloodOptions) -> Result<(), String> {
    let aws = AwsProcess::start().await?;
    let target = Target::new(&aws).await?;
    // The first requests of each key wait for its first verdict.
    target.phase("warm-up", 1, 0).await?;
    let phases = vec![
        target.phase("alone", options.seconds, 0).await?,
        target.phase("beside the flood", options.seconds, FLOOD_PER_TICK).await?,
    ];
    let report = FloodReport { machine: Machine::this(), invented_keys: INVENTED_KEYS, phases };
    let output = Output::from_json_flag(options.json);
    output.part(|| report.table());
    output.whole(&report)
}

impl Target {
    async fn new(aws: &AwsProcess) -> Result<Self, String> {
        let meter = CostMeter::default();
        let lookup = |name: &str| aws.variables.get(name);
        let service = meter.service(&lookup, Arc::new(SystemClock::new())).map_err(text)?;
        let handler: Arc<dyn Handler> = Arc::new(catalog::api(&service).map_err(text)?);
        handler.warm_up().await?;
        let mut good = Vec::with_capacity(GOOD_KEYS);
        for _ in 0..GOOD_KEYS {
            good.push(bearer(&good_key(aws).await?)?);
        }
        let invented = (1..=INVENTED_KEYS).map(|bits| bearer(&KeyText::from_bits([bits; 32])));
        let invented = invented.collect::<Result<Vec<_>, String>>()?;
        Ok(Self { handler, meter, good, invented })
    }

    /// Sends requests at a fixed pace, however long the responses take.
    async fn phase(&self, name: &'static str, seconds: u32, flood_per_tick: usize) -> Result<PhaseReport, String> {
        let (mut others, mut flood) = (JoinSet::new(), JoinSet::new());
        self.meter.take();
        let mut ticks = tokio::time::interval(TICK);
        for tick in 0..seconds as usize * TICKS_PER_SECOND {
            ticks.tick().await;
            for at in tick * flood_per_tick..(tick + 1) * flood_per_tick {
                flood.spawn(self.ask(&self.invented[at % self.invented.len()], 401));
            }
            others.spawn(self.ask(&self.good[tick % self.good.len()], 200));
        }
        let flood = flood.join_all().await.into_iter().collect::<Result<Vec<_>, String>>()?;
        let others = others.join_all().await.into_iter().collect::<Result<Vec<_>, String>>()?;
        let writes = self.meter.take().calls.get("UpdateItem").copied().unwrap_or_default();
        let writes_of_flood = writes as f64 - others.len() as f64;
        Ok(PhaseReport {
            name,
            others: Percentiles::from_samples(others),
            refusals_per_second: flood.len() as f64 / f64::from(seconds),
            writes_per_second_and_invented_key: writes_of_flood / f64::from(seconds) / f64::from(INVENTED_KEYS),
        })
    }

    /// Asks for the first page. Returns how long the response took.
    fn ask(&self, key: &HeaderValue, expected: i64) -> impl Future<Output = Result<Duration, String>> + use<> {
        let (handler, event) = (Arc::clone(&self.handler), event(key));
        async move {
            let began = Instant::now();
            match handler.handle(event).await.status_code {
                status if status == expected => Ok(began.elapsed()),
                status => Err(format!("a request was answered {status} instead of {expected}")),
            }
        }
    }
}

impl FloodReport {
    fn table(&self) -> String {
        let header = ["catalog", "others p50 ms", "p99 ms", "refusals/s", "writes/s of each invented key"];
        let rows = self.phases.iter().map(|phase| {
            [
                phase.name.to_owned(),
                format!("{:.2}", phase.others.p50_us / 1e3),
                format!("{:.2}", phase.others.p99_us / 1e3),
                number(phase.refusals_per_second),
                format!("{:.2}", phase.writes_per_second_and_invented_key),
            ]
        });
        format!("{}, {} invented keys\n\n{}", self.machine, self.invented_keys, table(header, rows))
    }
}

fn event(key: &HeaderValue) -> GatewayEvent {
    let mut event = GatewayEvent::default();
    event.raw_path = Some("/v1/public/catalog".to_owned());
    event.headers.insert(AUTHORIZATION, key.clone());
    event.request_context.request_id = Some("bench".to_owned());
    event.request_context.http.method = http::Method::GET;
    event
}

fn bearer(key: &KeyText) -> Result<HeaderValue, String> {
    HeaderValue::try_from(format!("Bearer {}", key.reveal())).map_err(text)
}

/// Creates a key of the largest tier.
async fn good_key(aws: &AwsProcess) -> Result<KeyText, String> {
    let new = NewKey {
        user_id: Uuid::new_v4().into(),
        name: None,
        tier: Tier::Business,
        limit_override: None,
        scopes: Scope::ALL.into(),
        expires_at: None,
    };
    aws.admin()?.keys().create(new).await.map(|(key, _)| key).map_err(text)
}
