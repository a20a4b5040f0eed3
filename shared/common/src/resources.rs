//! Every table, queue, bucket and secret of a stack, defined once. The local stack and the tests create them from these
//! definitions, `marketctl check` checks them, and a test compares the deployment with them.

use std::time::Duration;

/// The names of one stack's resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resources {
    stack: String,
    /// In the order of [`Table::ALL`].
    tables: [String; 4],
}

/// A DynamoDB table. Every table has the string keys `pk` and `sk` and a TTL attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// API keys and their buckets.
    Keys,
    /// Items, listings, marketplaces, quotes: what every key may see.
    Market,
    /// Orders and balances: what belongs to one user.
    Accounts,
    /// Webhook endpoints, deliveries, notices.
    Webhooks,
}

/// An SQS queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Messages from the marketplace's own systems.
    Feed,
    /// Messages that could not be applied.
    FeedDead,
    /// The first lane: first attempts of webhook deliveries.
    WebhooksFirst,
    /// The retry lane: retries, and first attempts that the first lane does not take.
    WebhooksRetry,
    /// The slow lane: drains of accounts whose deliveries wait in the table.
    WebhooksSlow,
    /// Webhook messages that cannot be read, that met a defect or an unreadable row, or whose function crashed again and
    /// again.
    WebhooksDead,
    /// Notices to the owners of endpoints. This is a FIFO queue.
    Notices,
}

/// How many messages of a queue Lambda collects for one invocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batching {
    /// The most messages of a batch.
    pub messages: usize,
    /// How long Lambda goes on collecting after the first message. It takes whole seconds, and at least one if a batch
    /// may have more than ten messages.
    pub window: Duration,
}

/// The partition key of every table.
pub const PARTITION_KEY: &str = "pk";
/// The sort key of every table.
pub const SORT_KEY: &str = "sk";
/// The TTL attribute of every table: the time after which DynamoDB may remove a row, in seconds since the Unix epoch.
pub const TTL: &str = "ttl";

/// When a row was created, in milliseconds since the Unix epoch; the sort key of [`DELIVERIES_INDEX`].
pub const CREATED_AT: &str = "created_at";
/// The endpoint of a delivery; the partition key of [`DELIVERIES_INDEX`].
pub const ENDPOINT_ID: &str = "endpoint_id";
/// The index that finds an endpoint's deliveries by time.
pub const DELIVERIES_INDEX: &str = "deliveries";
/// The endpoint and the status of a delivery that is not delivered; the partition key of [`STATUSES_INDEX`].
pub const LISTED: &str = "listed";
/// The index that finds an endpoint's deliveries of one status by time. Delivered ones are not in it, and neither are
/// those whose first attempt is being made at once.
pub const STATUSES_INDEX: &str = "statuses";
/// The partition key of [`WAKE_INDEX`].
pub const WAKE_SHARD: &str = "wake_shard";
/// When somebody must look at a row, in milliseconds since the Unix epoch; the sort key of [`WAKE_INDEX`].
pub const WAKE_AT: &str = "wake_at";
/// The index that finds rows by the time at which somebody must look at them: `sweep` at drains and notices, and the
/// drain of an account at its deliveries. Most rows have no such time and are not in this index.
pub const WAKE_INDEX: &str = "wake";

/// A global secondary index of a table. It holds the table's keys and no other attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Index {
    pub name: &'static str,
    /// Its partition key, a string.
    pub partition_key: &'static str,
    /// Its sort key, a number.
    pub sort_key: &'static str,
}

/// The alias of every function. Whatever calls a function calls this alias, and a deployment moves it to a new version.
pub const ALIAS: &str = "live";

/// How often `compact` looks at the bases of the read model.
pub const COMPACT_PERIOD: Duration = Duration::from_mins(1);
/// The time-out of `compact`: the longest that Lambda allows.
pub const COMPACT_TIMEOUT: Duration = Duration::from_mins(15);

/// The time-out of `ingest`, which reads the feed: six seconds to apply a batch, and the rest for the copies of messages
/// that were not applied.
pub const INGEST_TIMEOUT: Duration = Duration::from_secs(15);

/// The time-out of `webhook`, which sends deliveries: ten seconds for the endpoint to answer, and the rest for the
/// reads and writes before and after.
pub const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(25);

/// The time-out of `account`, which does commands of owners.
pub const ACCOUNT_TIMEOUT: Duration = Duration::from_secs(30);

/// The time-out of `pretraffic`, which tries the new versions of all functions: the longest that Lambda allows.
pub const PRETRAFFIC_TIMEOUT: Duration = Duration::from_mins(15);

/// How often `sweep` looks for webhook deliveries that wait in the table.
pub const SWEEP_PERIOD: Duration = Duration::from_mins(1);
/// The time-out of `sweep`.
pub const SWEEP_TIMEOUT: Duration = Duration::from_secs(50);

/// The environment variable that tells a function the name of the keyring.
pub const KEYRING_VARIABLE: &str = "KEYRING_SECRET";

/// The environment variable that tells `account` how many live keys a user may have.
pub const MAX_KEYS_VARIABLE: &str = "MAX_KEYS_PER_USER";
/// Its default.
pub const MAX_KEYS: u32 = 20;

/// The environment variable that tells a function the name of the bucket that holds the bases of the read model.
pub const BASE_BUCKET_VARIABLE: &str = "BASE_BUCKET";
/// How long S3 keeps an object of that bucket. Its objects are not changed or deleted by anybody else.
pub const OBJECT_KEEP: Duration = Duration::from_hours(90 * 24);

/// How many times a message is received before SQS moves it to the dead-letter queue: the most that SQS allows. A message
/// that cannot be handled is moved there by its consumer, so only functions that crash, do not start, or are throttled
/// by Lambda use up receives. A thousand receives outlast such an outage for a day: one takes a visibility time-out. They
/// end long before SQS deletes a message, which it does after 14 days.
pub const MAX_RECEIVES: u32 = 1_000;

impl Batching {
    /// The default: what one call to SQS returns, handed over at once.
    pub const AT_ONCE: Self = Self { messages: 10, window: Duration::ZERO };
    /// Calls of drains. Each drain may have a hundred attempts under way, and each attempt takes one of the 1,024 file
    /// descriptors of an instance.
    pub const DRAINS: Self = Self { messages: 5, window: Duration::ZERO };
    /// The largest batches that `ingest` may be given. One `BatchGetItem` reads the endpoints of a hundred accounts, and
    /// one transaction takes almost as many changes.
    pub const LARGEST: Self = Self { messages: 100, window: Duration::from_secs(5) };
}

impl Table {
    pub const ALL: [Self; 4] = [Self::Keys, Self::Market, Self::Accounts, Self::Webhooks];

    /// The environment variable that tells a function the table's name.
    pub const fn variable(self) -> &'static str {
        match self {
            Self::Keys => "KEYS_TABLE",
            Self::Market => "MARKET_TABLE",
            Self::Accounts => "ACCOUNTS_TABLE",
            Self::Webhooks => "WEBHOOKS_TABLE",
        }
    }

    /// The table's global secondary indexes.
    pub const fn indexes(self) -> &'static [Index] {
        match self {
            Self::Keys | Self::Market | Self::Accounts => &[],
            Self::Webhooks => &[
                Index { name: DELIVERIES_INDEX, partition_key: ENDPOINT_ID, sort_key: CREATED_AT },
                Index { name: STATUSES_INDEX, partition_key: LISTED, sort_key: CREATED_AT },
                Index { name: WAKE_INDEX, partition_key: WAKE_SHARD, sort_key: WAKE_AT },
            ],
        }
    }

    /// The end of the table's default name, by which the command line knows it.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Keys => "keys",
            Self::Market => "market",
            Self::Accounts => "accounts",
            Self::Webhooks => "webhooks",
        }
    }
}

impl Queue {
    /// Every queue, dead-letter queues before those that use them.
    pub const ALL: [Self; 7] = [
        Self::FeedDead,
        Self::Feed,
        Self::WebhooksDead,
        Self::WebhooksFirst,
        Self::WebhooksRetry,
        Self::WebhooksSlow,
        Self::Notices,
    ];
    /// The delivery queues, which trigger `webhook`.
    pub const LANES: [Self; 3] = [Self::WebhooksFirst, Self::WebhooksRetry, Self::WebhooksSlow];

    /// The dead-letter queue to which messages go after [`MAX_RECEIVES`] receives.
    pub const fn dead_letters(self) -> Option<Self> {
        match self {
            Self::Feed => Some(Self::FeedDead),
            Self::WebhooksFirst | Self::WebhooksRetry | Self::WebhooksSlow => Some(Self::WebhooksDead),
            Self::FeedDead | Self::WebhooksDead | Self::Notices => None,
        }
    }

    /// The environment variable that tells a function the queue's URL.
    pub const fn variable(self) -> &'static str {
        match self {
            Self::Feed => "FEED_QUEUE_URL",
            Self::FeedDead => "FEED_DEAD_QUEUE_URL",
            Self::WebhooksFirst => "WEBHOOKS_FIRST_QUEUE_URL",
            Self::WebhooksRetry => "WEBHOOKS_RETRY_QUEUE_URL",
            Self::WebhooksSlow => "WEBHOOKS_SLOW_QUEUE_URL",
            Self::WebhooksDead => "WEBHOOKS_DEAD_QUEUE_URL",
            Self::Notices => "NOTICES_QUEUE_URL",
        }
    }

    /// The visibility time-out, in seconds. For the feed it is six times the function's time-out and the longest time for
    /// which a batch is collected, as Lambda's documentation advises, for the sake of functions that are throttled. A
    /// delivery that comes twice meanwhile does no harm, and after a crash it must not wait for longer than its lease
    /// lasts.
    pub const fn visibility_seconds(self) -> u64 {
        match self {
            Self::Feed => 6 * INGEST_TIMEOUT.as_secs() + Batching::LARGEST.window.as_secs(),
            Self::WebhooksFirst | Self::WebhooksRetry | Self::WebhooksSlow => 80,
            // The default of SQS.
            Self::FeedDead | Self::WebhooksDead | Self::Notices => 30,
        }
    }

    /// How long a queue keeps a message: as long as SQS lets it.
    pub const RETENTION: Duration = Duration::from_hours(14 * 24);

    /// Returns whether the queue keeps order and drops duplicates.
    pub const fn is_fifo(self) -> bool {
        match self {
            Self::Notices => true,
            Self::Feed
            | Self::FeedDead
            | Self::WebhooksFirst
            | Self::WebhooksRetry
            | Self::WebhooksSlow
            | Self::WebhooksDead => false,
        }
    }

    const fn suffix(self) -> &'static str {
        match self {
            Self::Feed => "feed",
            Self::FeedDead => "feed-dead",
            Self::WebhooksFirst => "webhooks-first",
            Self::WebhooksRetry => "webhooks-retry",
            Self::WebhooksSlow => "webhooks-slow",
            Self::WebhooksDead => "webhooks-dead",
            Self::Notices => "notices.fifo",
        }
    }
}

impl Resources {
    /// The default name of a stack.
    pub const DEFAULT_STACK: &'static str = "marketplace";

    /// Returns the names that a stack has by default.
    pub fn new(stack: &str) -> Self {
        Self { stack: stack.to_owned(), tables: Table::ALL.map(|table| own_table(stack, table)) }
    }

    /// Gives the tables these names, in the order of [`Table::ALL`]. After a restore they are not the default ones.
    #[must_use]
    pub fn with_tables(self, tables: [String; 4]) -> Self {
        Self { tables, ..self }
    }

    /// Returns the name of the table that the service uses.
    pub fn table(&self, table: Table) -> String {
        self.tables[table as usize].clone()
    }

    /// Returns the name of the table that the template makes. After a restore, the service uses another one.
    pub fn own_table(&self, table: Table) -> String {
        own_table(&self.stack, table)
    }

    pub fn queue(&self, queue: Queue) -> String {
        format!("{}-{}", self.stack, queue.suffix())
    }

    pub fn function(&self, function: &str) -> String {
        format!("{}-{function}", self.stack)
    }

    /// The name of the hook that `CodeDeploy` asks. It invokes only functions whose names begin like this.
    pub fn hook(&self) -> String {
        format!("CodeDeployHook_{}-pretraffic", self.stack)
    }

    /// The name by which a function is called: it leads to the version that has the traffic.
    pub fn alias(&self, function: &str) -> String {
        format!("{}:{ALIAS}", self.function(function))
    }

    /// The name of the bucket that holds the bases of the read model. All accounts and regions of AWS share the names of
    /// buckets, so this one contains both.
    pub fn base_bucket(&self, account: &str, region: &str) -> String {
        format!("{}-base-{account}-{region}", self.stack)
    }

    /// The name of the secret that holds the keyring, with which webhook secrets are sealed.
    pub fn keyring(&self) -> String {
        format!("{}-keyring", self.stack)
    }
}

fn own_table(stack: &str, table: Table) -> String {
    format!("{stack}-{}", table.suffix())
}
