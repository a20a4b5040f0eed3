//! CPU time and memory of replicas, and of questions to them, in real time.

use std::sync::Arc;

use common::aws::{Environment, Patience};
use common::clock::{Clock, SystemClock};
use local::demo::LargeMarket;
use replica::{Catalog, Listings, Replica, View};
use serde::{Deserialize, Serialize};
use terminal::{Output, number_table};

use crate::cli::ReplicaStream;
use crate::figures::{Figures, Percentiles, megabytes, number, text};
use crate::process::{Memory, Stopwatch};
use crate::read_model::{KindTimes, ask_index};
use crate::stack::{AwsProcess, StreamStore, write_base};

/// The name of the subcommand.
const SUBCOMMAND: &str = "cold-load";
/// How often a load is repeated. The best one counts.
const TRIES: usize = 3;

/// What one replica takes.
#[derive(Debug, Serialize)]
struct ReplicaFigures {
    stream: ReplicaStream,
    #[serde(flatten)]
    load: Load,
    kinds: Vec<KindTimes>,
}

/// What it took to load a replica.
#[derive(Debug, Serialize, Deserialize)]
struct Load {
    /// CPU time of the process, all threads together.
    cpu_ms: f64,
    wall_ms: f64,
    /// How much the process's resident memory has grown.
    resident_bytes: u64,
    /// The most memory that the process ever had resident, the program itself included.
    peak_bytes: u64,
}

/// Loads each replica in a process of its own, and asks it every kind of question.
pub(super) async fn measure(size: u64) -> Result<Figures, String> {
    let mut measured = Vec::with_capacity(ReplicaStream::ALL.len());
    for stream in ReplicaStream::ALL {
        measured.push(replica(size, stream).await?);
    }
    let tables: Vec<String> = measured.iter().map(|replica| replica.text(size)).collect();
    Figures::new(&measured, tables.join("\n\n"))
}

async fn replica(size: u64, stream: ReplicaStream) -> Result<ReplicaFigures, String> {
    let market = LargeMarket::new(size, SystemClock::new().now());
    let aws = AwsProcess::start().await?;
    write_base(&aws.environment()?, &market, stream).await?;
    // Each load has a process of its own, as in a function's instance.
    let command = [SUBCOMMAND, stream.as_str()];
    let mut load: Load = aws.run_child(&command).await?;
    for _ in 1..TRIES {
        let another: Load = aws.run_child(&command).await?;
        if another.cpu_ms < load.cpu_ms {
            load = another;
        }
    }
    let kinds = ask_index(&aws, &market, stream).await?;
    Ok(ReplicaFigures { stream, load, kinds })
}

/// Runs as the process that loads a replica from its base. It does nothing else.
pub(crate) async fn run(stream: ReplicaStream) -> Result<(), String> {
    let load = match stream {
        ReplicaStream::Catalog => load::<Catalog>().await?,
        ReplicaStream::Listings => load::<Listings>().await?,
    };
    Ok(Output::Json.whole(&load)?)
}

async fn load<V: View>() -> Result<Load, String> {
    let (before, stopwatch) = (Memory::now(), Stopwatch::start());
    let environment = Environment::read(&|name| std::env::var(name).ok()).map_err(text)?;
    let StreamStore { log, objects } = StreamStore::open(&environment, Patience::Request);
    let replica = Replica::<V>::new(log, objects, Arc::new(SystemClock::new()));
    // A load that takes longer than an init phase allows continues in the next read.
    let _ = replica.warm_up().await;
    replica.read(|_| ()).await.map_err(|error| format!("{error:?}"))?;
    let (spent, memory) = (stopwatch.spent(), Memory::now());
    Ok(Load {
        cpu_ms: spent.cpu.as_secs_f64() * 1e3,
        wall_ms: spent.wall.as_secs_f64() * 1e3,
        resident_bytes: memory.resident.saturating_sub(before.resident),
        peak_bytes: memory.peak,
    })
}

impl ReplicaFigures {
    fn text(&self, size: u64) -> String {
        let header = [self.stream.as_str(), "total", "p50 middle", "p99 first", "p99 middle", "p99 last"];
        let rows = self.kinds.iter().map(|KindTimes { kind, total, cpu }| {
            let at = |place: usize| cpu.get(place).copied().unwrap_or_default();
            let Percentiles { p50_us, p99_us, .. } = at(1);
            let [first, last] = [0, 2].map(|place| at(place).p99_us);
            [kind.clone(), total.to_string(), number(p50_us), number(first), number(p99_us), number(last)]
        });
        format!(
            "{size} records of {} in a base that was written below the API: loaded in {} ms of CPU time ({} ms), {} MB \
             resident, {} MB at most. CPU µs of the index:\n\n{}",
            self.stream.as_str(),
            number(self.load.cpu_ms),
            number(self.load.wall_ms),
            megabytes(self.load.resident_bytes),
            megabytes(self.load.peak_bytes),
            number_table(header, rows)
        )
    }
}
