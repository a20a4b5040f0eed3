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
    /// Catalog and listings: time and store calls per query, compared with asking DynamoDB.
    ReadModel(ReadModelOptions),
    /// The feed: messages per second, CPU time and store calls per message.
    Feed(FeedOptions),
    /// Webhooks: deliveries per second, CPU time, store and queue calls, and whether one receiver that hangs delays
    /// others.
    Webhooks(WebhookOptions),
    /// Cold start: time from the start of each function's process to its first answer, file size and memory,
    /// compared with programs that do no more than Lambda and the AWS SDK require.
    ColdStart(ColdStartOptions),
    /// Large markets: crowds of cold starts under the limits of AWS, on simulated time; and CPU time and memory of
    /// replicas and compactions.
    Scale(ScaleOptions),
    /// Run as the receiver of webhooks.
    #[command(hide = true)]
    Receiver,
    /// Run as the AWS side of a benchmark.
    #[command(hide = true)]
    AwsSide {
        /// The folder of its tables and objects.
        #[arg(long)]
        data: Option<PathBuf>,
    },
    /// Run as the tables that are asked the same questions in the usual way.
    #[command(hide = true)]
    UsualSide {
        /// The number of items, and of listings.
        size: u64,
        /// The market's time, in Unix milliseconds.
        now_millis: i64,
    },
    /// Load one replica and print what that took.
    #[command(hide = true)]
    ColdLoad {
        /// The replica.
        stream: ReplicaStream,
    },
    /// Make the base of the listings from their entities, and print what that took.
    #[command(hide = true)]
    Rebuild {
        /// The most read units a second.
        read_units: u32,
    },
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ReadModelOptions {
    /// The numbers of items, and of listings, in the markets to measure one after the other.
    #[arg(long, value_delimiter = ',', default_value = "1000,10000,100000,1000000", value_name = "N,…")]
    pub(crate) sizes: Vec<u64>,
    /// Print one JSON document instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ScaleOptions {
    /// The numbers of items, and of listings, in the markets to measure one after the other.
    #[arg(long, value_delimiter = ',', default_value = "1000000,10000000", value_name = "N,…")]
    pub(crate) sizes: Vec<u64>,
    /// The number of instances that start at once.
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub(crate) starts: usize,
    /// The most read units a second that `compact` takes to read entities. Without it, as many as the tables give.
    #[arg(long, value_name = "N")]
    pub(crate) read_units: Option<u32>,
    /// Measure only these parts.
    #[arg(long, value_delimiter = ',', value_name = "PART,…")]
    pub(crate) only: Vec<ScaleSection>,
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

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Catalog => "catalog",
            Self::Listings => "listings",
        }
    }
}

/// A part of the measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ScaleSection {
    /// One cold start of `listings`, and many at once, on simulated time.
    Starts,
    /// CPU time and memory of replicas, and CPU time of every kind of question.
    Replicas,
    /// Time and memory of the runs that make a base from the entities.
    Compaction,
}

/// A part of the measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WebhookSection {
    /// Deliveries per second, CPU time and calls.
    Throughput,
    /// How a receiver that hangs delays others.
    Isolation,
}
