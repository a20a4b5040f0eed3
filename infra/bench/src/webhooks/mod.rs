//! Measures what webhooks cost, from an event in the feed to a POST at a receiver.

mod bare;
mod dead;
mod isolation;
mod load;
mod parts;
pub(crate) mod receiver;
mod report;
mod stack;
mod throughput;

use crate::cli::WebhookOptions;
use crate::machine::Machine;
use crate::output::Output;
use report::WebhooksReport;

/// Measures everything and prints the results.
pub(crate) async fn run(options: &WebhookOptions) -> Result<(), String> {
    let output = Output::from_json_flag(options.json);
    let throughput = throughput::measure(options.events, options.endpoints).await?;
    output.part(|| report::throughput(&throughput));
    let parts = parts::measure().await?;
    output.part(|| report::parts(&parts, &throughput));
    let isolation = isolation::measure(options.endpoints).await?;
    output.part(|| report::isolation(&isolation));
    let dead = dead::measure().await?;
    output.part(|| report::cost(&throughput, &dead));
    output.whole(&WebhooksReport { machine: Machine::this(), throughput, parts, isolation, dead })
}
