//! Measures what webhooks cost, from an event in the feed to a POST at a receiver.

mod bare;
mod compare;
mod cost;
mod dead;
mod hanging_accounts;
mod isolation;
mod load;
mod parts;
mod peer;
mod ratios;
pub(crate) mod receiver;
mod report;
pub(crate) mod section;
mod stack;
mod stacks;
mod throughput;

use clap::ValueEnum;

use crate::cli::WebhookOptions;
use crate::machine::Machine;
use crate::output::Output;
use cost::Cost;
use load::Load;
use report::WebhooksReport;
use section::WebhookSection;

/// Measures what is asked for and prints the results.
pub(crate) async fn run(options: &WebhookOptions) -> Result<(), String> {
    let output = Output::from_json_flag(options.json);
    let load = Load { events: options.events, endpoints: options.endpoints, stores: options.stores };
    if load.stores > load.endpoints {
        return Err("each of the --stores needs one of the --endpoints".to_owned());
    }
    if let Some(command) = &options.peer {
        return peer::run(command, options.pairs, load, output).await;
    }
    if let Some(older) = &options.compare {
        return compare::run(older, options.pairs, load, output).await;
    }
    let mut report = WebhooksReport::new(Machine::this());
    let is_asked = |section: &WebhookSection| options.only.is_empty() || options.only.contains(section);
    for section in WebhookSection::value_variants().iter().copied().filter(is_asked) {
        Box::pin(measure(section, load, &mut report, output)).await?;
    }
    output.whole(&report)
}

/// Measures one part, prints it for people, and adds it to the report.
async fn measure(
    section: WebhookSection,
    load: Load,
    report: &mut WebhooksReport,
    output: Output,
) -> Result<(), String> {
    match section {
        WebhookSection::Throughput => {
            let throughput = report.throughput.insert(throughput::measure(load).await?);
            output.part(|| report::throughput(throughput));
        }
        WebhookSection::Parts => {
            let parts = report.parts.insert(Box::pin(parts::measure()).await?);
            output.part(|| report::parts(parts, report.throughput.as_ref()));
        }
        WebhookSection::Isolation => {
            let isolation = report.isolation.insert(Box::pin(isolation::measure(load.endpoints)).await?);
            output.part(|| report::isolation(isolation));
        }
        WebhookSection::Cost => {
            let delivered = match &report.throughput {
                Some(throughput) => throughput.functions.clone(),
                None => Box::pin(throughput::by_functions(load)).await?,
            };
            let dead = report.dead.insert(Box::pin(dead::measure()).await?);
            let cost = report.cost.insert(Cost::new(&delivered, dead));
            output.part(|| report::cost(cost));
        }
    }
    Ok(())
}
