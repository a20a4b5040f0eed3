//! How many changes of one stream can be written on simulated time, if each transaction takes as long as it may take on
//! AWS.

use std::cell::RefCell;
use std::time::Duration;

use feed::Applier;
use futures_util::future::try_join_all;
use local::aws::limits::{Latency, Limits, Rate, Reason, Throughput};
use serde::Serialize;

use super::figures::Figures;
use super::simulation::Simulation;
use crate::feed::LARGE_BATCH_MESSAGES;
use crate::feed::bulk::drain;
use crate::feed::messages::new_listings;
use crate::market::GeneratedMarket;
use crate::output::{number, table};

/// The latencies of transactions to measure.
const TRANSACTIONS_MS: [u64; 3] = [5, 10, 25];
const BATCHES: usize = 200;
const WRITERS: [usize; 2] = [1, 2];

/// What writers have done.
#[derive(Debug, Serialize)]
struct Writing {
    transaction_ms: u64,
    writers: usize,
    changes_per_second: f64,
    conflicts: usize,
    throttled: usize,
    write_units_per_change: f64,
}

/// Measures one writer and two, with each latency.
pub(super) async fn measure() -> Result<Figures, String> {
    let mut measured = Vec::new();
    for transaction_ms in TRANSACTIONS_MS {
        for writers in WRITERS {
            measured.push(write(transaction_ms, writers).await?);
        }
    }
    let header = ["ms a transaction", "writers", "changes/s", "conflicts", "throttled", "write units each"];
    let rows = measured.iter().map(|writing| {
        [
            writing.transaction_ms.to_string(),
            writing.writers.to_string(),
            number(writing.changes_per_second),
            writing.conflicts.to_string(),
            writing.throttled.to_string(),
            number(writing.write_units_per_change),
        ]
    });
    let table = table(header, rows);
    let text = format!(
        "New listings, {LARGE_BATCH_MESSAGES} a transaction. Only transactions and the limits of partitions take time. \
         The table as a whole has no limit, as if it had grown.\n\n{table}"
    );
    Figures::new(&measured, text)
}

async fn write(transaction_ms: u64, writers: usize) -> Result<Writing, String> {
    let simulation = Simulation::start().await?;
    let count = BATCHES * LARGE_BATCH_MESSAGES;
    let market = GeneratedMarket::new(count as u64, simulation.now());
    let messages = new_listings(&market, count as u64).ok_or("the listings cannot be made")?;
    let limiter = simulation.aws.limits();
    limiter.set(Limits {
        table: Throughput { read: Rate::UNLIMITED, write: Rate::UNLIMITED },
        latency: Latency::NONE,
        transaction_latency: Latency::always(Duration::from_millis(transaction_ms)),
        ..Limits::aws()
    });
    let began = simulation.elapsed();
    let batches = RefCell::new(messages.chunks(LARGE_BATCH_MESSAGES));
    let appliers = (0..writers).map(|_| drain(Applier::new(simulation.admin.stores()), &batches, &*simulation.clock));
    try_join_all(appliers).await?;
    let (took, report) = (simulation.since(began), limiter.take_report());
    let conflicts = report.refused_for(Reason::Conflict) + report.refused_for(Reason::InProgress);
    Ok(Writing {
        transaction_ms,
        writers,
        changes_per_second: count as f64 / took.as_secs_f64(),
        conflicts,
        throttled: report.refused.len() - conflicts,
        write_units_per_change: report.total().write / count as f64,
    })
}
