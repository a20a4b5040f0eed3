//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};
use serde::Serialize;

/// Benchmarks of the marketplace API.
#[derive(Debug, Parser)]
#[command(name = "bench", version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Cold start: time from the start of each function's process to its first answer, file size and memory,
    /// compared with programs that do no more than Lambda and the AWS SDK require.
    ColdStart(ColdStartOptions),
    /// Replicas: time and memory of a start of `listings` and `catalog`, and CPU time of requests, by the number of
    /// records.
    Replicas(ReplicaOptions),
    /// The feed: messages per second, CPU time and store calls per message.
    Feed(FeedOptions),
    /// Webhooks: deliveries per second, CPU time, store and queue calls, and whether one receiver that hangs delays
    /// others.
    Webhooks(WebhookOptions),
    /// Run as the receiver of webhooks.
    #[command(hide = true)]
    Receiver,
    /// Run as the AWS side of a benchmark.
    #[command(hide = true)]
    AwsSide,
    /// Run as an instance of the function that answers from a replica, and print what that took.
    #[command(hide = true)]
    Instance {
        /// The replica.
        stream: ReplicaStream,
    },
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ReplicaOptions {
    /// The numbers of listings, and of items, to measure one after the other.
    #[arg(long, value_delimiter = ',', default_value = "1000,10000,100000,1000000,6000000", value_name = "N,…")]
    pub(crate) sizes: Vec<u64>,
    /// Also draw the results into this folder.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) plots: Option<PathBuf>,
    /// Print one JSON document instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct FeedOptions {
    /// The number of messages.
    #[arg(long, default_value_t = 20_000, value_name = "N")]
    pub(crate) messages: u64,
    /// Print one JSON document instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ColdStartOptions {
    /// The number of starts of each program.
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub(crate) starts: u64,
    /// The number of items, and of listings, in the tables.
    #[arg(long, default_value_t = 22_468, value_name = "N")]
    pub(crate) items: u64,
    /// The number of requests to each program once it is warm; a key of the largest tier allows 3,000 a minute.
    #[arg(long, default_value_t = 500, value_name = "N")]
    pub(crate) requests: usize,
    /// Print one JSON document instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct WebhookOptions {
    /// The number of events in a burst.
    #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub(crate) events: u64,
    /// The number of accounts, each with one endpoint.
    #[arg(long, default_value_t = 50, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub(crate) endpoints: u64,
    /// The number of stacks side by side for the throughput, each with embedded stores of its own. The accounts are
    /// divided among them.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = value_parser!(u64).range(1..=4))]
    pub(crate) stores: u64,
    /// Measure only these parts.
    #[arg(long, value_delimiter = ',', value_name = "PART,…")]
    pub(crate) only: Vec<WebhookSection>,
    /// Take turns with another webhook server instead. The shell starts the command, which operates that server as
    /// `infra/bench/peer/sender.py` says.
    #[arg(long, value_name = "COMMAND", conflicts_with = "only")]
    pub(crate) peer: Option<String>,
    /// The number of turns of each side.
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub(crate) pairs: u64,
    /// Also draw the isolation into this folder.
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "peer")]
    pub(crate) plots: Option<PathBuf>,
    /// Print one JSON document instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The stream of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ReplicaStream {
    Catalog,
    Listings,
}

impl ReplicaStream {
    pub(crate) const ALL: [Self; 2] = [Self::Listings, Self::Catalog];

    /// The name of the function that answers from it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Catalog => "catalog",
            Self::Listings => "listings",
        }
    }
}

/// A part of the measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WebhookSection {
    /// Deliveries per second, CPU time and calls.
    Throughput,
    /// How a receiver that hangs delays others.
    Isolation,
}
