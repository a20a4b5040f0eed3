//! The command line.

use clap::{Args, Parser, Subcommand};

use crate::read_model::cold::{Stream, Work};

/// Benchmarks of the marketplace API.
#[derive(Debug, Parser)]
#[command(name = "bench", version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Catalog and listings: cold load, memory, time and store calls per query, against asking DynamoDB.
    ReadModel(ReadModelOptions),
    /// The feed: messages a second, CPU time and store calls per message.
    Feed(FeedOptions),
    /// Webhooks: deliveries a second, CPU time, store and queue calls, cost, and whether one receiver that
    /// hangs delays others.
    Webhooks(WebhookOptions),
    /// Cold start: from the start of each function's process to its first answer, size and memory, beside
    /// programs that do nothing more than Lambda and the AWS SDK ask of them.
    ColdStart(ColdStartOptions),
    /// Is the receiver of webhooks.
    #[command(hide = true)]
    Receiver,
    /// Is the AWS side of a benchmark.
    #[command(hide = true)]
    AwsSide,
    /// Is the tables that the same questions are asked of the usual way.
    #[command(hide = true)]
    UsualSide {
        /// How many items and listings.
        size: u64,
        /// The market's time.
        now_millis: i64,
    },
    /// Loads one replica, or packs its base, and says what it took.
    #[command(hide = true)]
    ColdLoad {
        /// Which one.
        stream: Stream,
        /// What is done with it.
        work: Work,
    },
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ReadModelOptions {
    /// So many items and as many listings, one market after the other.
    #[arg(long, value_delimiter = ',', default_value = "1000,10000,100000,1000000", value_name = "N,…")]
    pub(crate) sizes: Vec<u64>,
    /// Print one JSON document instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct FeedOptions {
    /// So many messages.
    #[arg(long, default_value_t = 20_000, value_name = "N")]
    pub(crate) messages: u64,
    /// Print one JSON document instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ColdStartOptions {
    /// So many starts of each program.
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub(crate) starts: u64,
    /// So many items, and as many listings, that are there to be loaded.
    #[arg(long, default_value_t = 22_468, value_name = "N")]
    pub(crate) items: u64,
    /// So many requests to each program once it is warm; a key of the largest tier allows 3,000 a minute.
    #[arg(long, default_value_t = 500, value_name = "N")]
    pub(crate) requests: usize,
    /// Print one JSON document instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct WebhookOptions {
    /// So many events in a burst.
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    pub(crate) events: u64,
    /// So many accounts with an endpoint each.
    #[arg(long, default_value_t = 50, value_name = "N")]
    pub(crate) endpoints: u64,
    /// Print one JSON document instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
}
