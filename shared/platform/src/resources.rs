//! Every table, queue and secret of a stack, defined once: the local stack and the tests create them
//! from here, the command line checks them, and the deployment must agree.

use std::time::Duration;

/// The names of one stack's resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resources {
    stack: String,
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
    /// Messages of the marketplace's own systems.
    Feed,
    /// Messages that could not be applied.
    FeedDead,
    /// First attempts of webhook deliveries.
    WebhooksFirst,
    /// Later attempts.
    WebhooksRetry,
    /// Webhook messages that no attempt could read.
    WebhooksDead,
    /// Notices to owners of switched-off endpoints; first in, first out.
    Notices,
}

/// The partition key of every table.
pub const PARTITION_KEY: &str = "pk";
/// The sort key of every table.
pub const SORT_KEY: &str = "sk";
/// The TTL attribute of every table: seconds since the Unix epoch after which an item may go.
pub const TTL: &str = "ttl";

/// When something was made, in milliseconds since the Unix epoch; sorts [`DELIVERIES_INDEX`].
pub const CREATED_AT: &str = "created_at";
/// The endpoint of a delivery; the partition key of [`DELIVERIES_INDEX`].
pub const ENDPOINT_ID: &str = "endpoint_id";
/// The index that finds an endpoint's deliveries by time.
pub const DELIVERIES_INDEX: &str = "deliveries";
/// The partition key of [`WAKE_INDEX`].
pub const WAKE_SHARD: &str = "wake_shard";
/// When something must be looked at, in milliseconds since the Unix epoch; sorts [`WAKE_INDEX`].
pub const WAKE_AT: &str = "wake_at";
/// The index that finds what must be looked at, by when. Most items have no such time, and are not in it.
pub const WAKE_INDEX: &str = "wake";

/// A global secondary index of a table. It holds the table's keys and no other attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Index {
    /// Its name.
    pub name: &'static str,
    /// Its partition key, a string.
    pub partition_key: &'static str,
    /// Its sort key, a number.
    pub sort_key: &'static str,
}

/// How often the bases of the read model are looked at.
pub const COMPACT_PERIOD: Duration = Duration::from_mins(1);
/// The time-out of the function that does so: the longest that Lambda knows.
pub const COMPACT_TIMEOUT: Duration = Duration::from_mins(15);

/// The time-out of the function that reads the feed.
pub const INGEST_TIMEOUT: Duration = Duration::from_secs(5);

/// The time-out of the function that sends webhooks: ten seconds for the endpoint to answer, the rest for
/// what is read and written before and after.
pub const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(25);

/// How often webhook deliveries that wait in the table are looked at.
pub const SWEEP_PERIOD: Duration = Duration::from_mins(1);
/// The time-out of the function that does so.
pub const SWEEP_TIMEOUT: Duration = Duration::from_secs(50);

/// The environment variable that tells a function the name of the keyring.
pub const KEYRING_VARIABLE: &str = "KEYRING_SECRET";

/// How often a message is received before it moves to its dead-letter queue: that is for crashes, and for functions that
/// do not start or that Lambda throttles, since what cannot be applied is moved there by its consumer.
pub const MAX_RECEIVES: u32 = 5;

impl Table {
    /// Every table.
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
                Index { name: WAKE_INDEX, partition_key: WAKE_SHARD, sort_key: WAKE_AT },
            ],
        }
    }

    const fn suffix(self) -> &'static str {
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
    pub const ALL: [Self; 6] =
        [Self::FeedDead, Self::Feed, Self::WebhooksDead, Self::WebhooksFirst, Self::WebhooksRetry, Self::Notices];

    /// Where messages go after [`MAX_RECEIVES`].
    pub const fn dead_letters(self) -> Option<Self> {
        match self {
            Self::Feed => Some(Self::FeedDead),
            Self::WebhooksFirst | Self::WebhooksRetry => Some(Self::WebhooksDead),
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
            Self::WebhooksDead => "WEBHOOKS_DEAD_QUEUE_URL",
            Self::Notices => "NOTICES_QUEUE_URL",
        }
    }

    /// For how long a received message is hidden from others, in seconds: for a queue that triggers a
    /// function six times its time-out, as Lambda's documentation advises.
    pub const fn visibility_seconds(self) -> u64 {
        match self {
            Self::Feed => 6 * INGEST_TIMEOUT.as_secs(),
            Self::WebhooksFirst | Self::WebhooksRetry => 6 * WEBHOOK_TIMEOUT.as_secs(),
            // The default of SQS.
            Self::FeedDead | Self::WebhooksDead | Self::Notices => 30,
        }
    }

    /// Whether the queue keeps order and drops duplicates.
    pub const fn is_fifo(self) -> bool {
        matches!(self, Self::Notices)
    }

    const fn suffix(self) -> &'static str {
        match self {
            Self::Feed => "feed",
            Self::FeedDead => "feed-dead",
            Self::WebhooksFirst => "webhooks-first",
            Self::WebhooksRetry => "webhooks-retry",
            Self::WebhooksDead => "webhooks-dead",
            Self::Notices => "notices.fifo",
        }
    }
}

impl Resources {
    /// The stack's name unless told otherwise.
    pub const DEFAULT_STACK: &'static str = "marketplace";

    /// The resources of a stack.
    pub fn of(stack: &str) -> Self {
        Self { stack: stack.to_owned() }
    }

    /// A table's name.
    pub fn table(&self, table: Table) -> String {
        format!("{}-{}", self.stack, table.suffix())
    }

    /// A queue's name.
    pub fn queue(&self, queue: Queue) -> String {
        format!("{}-{}", self.stack, queue.suffix())
    }

    /// The name of the secret that seals webhook secrets.
    pub fn keyring(&self) -> String {
        format!("{}-keyring", self.stack)
    }
}
