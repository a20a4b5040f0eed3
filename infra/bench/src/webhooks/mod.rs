//! Measures what webhooks cost, from an event in the feed to a POST at a receiver.

mod adapter;
pub(crate) mod receiver;
mod stack;
mod throughput;
mod turns;

use serde::Serialize;
use terminal::Output;

use crate::cli::{WebhookOptions, WebhookSection};
use crate::process::Machine;
use stack::Load;
use throughput::{Isolation, Throughput};

/// Everything that was measured. Parts that were not asked for are missing.
#[derive(Debug, Serialize)]
struct WebhooksReport {
    machine: Machine,
    #[serde(skip_serializing_if = "Option::is_none")]
    throughput: Option<Throughput>,
    #[serde(skip_serializing_if = "Option::is_none")]
    isolation: Option<Isolation>,
}

/// Measures what is asked for and prints the results.
pub(crate) async fn run(options: &WebhookOptions) -> Result<(), String> {
    let output = Output::from_json_flag(options.json);
    let load = Load { events: options.events, endpoints: options.endpoints, stores: options.stores };
    if load.stores > load.endpoints {
        return Err("each of the --stores needs one of the --endpoints".to_owned());
    }
    if let Some(command) = &options.peer {
        return turns::with_peer(command, options.pairs, load, output).await;
    }
    let is_asked = |section| options.only.is_empty() || options.only.contains(&section);
    let mut report = WebhooksReport { machine: Machine::this(), throughput: None, isolation: None };
    if is_asked(WebhookSection::Throughput) {
        let throughput = report.throughput.insert(Throughput::measure(load).await?);
        output.part(|| throughput.table());
    }
    if is_asked(WebhookSection::Isolation) {
        let isolation = report.isolation.insert(Box::pin(throughput::isolation(load.endpoints)).await?);
        output.part(|| isolation.table());
        if let Some(folder) = &options.plots {
            isolation.plot().write(folder, "isolation")?;
        }
    }
    Ok(output.whole(&report)?)
}
