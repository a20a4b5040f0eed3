//! Every kind of row that the service stores.

use serde_json::Value;

use super::dynamo::text;

const KEYS: &str = "marketplace-keys";
const MARKET: &str = "marketplace-market";
const ACCOUNTS: &str = "marketplace-accounts";
const WEBHOOKS: &str = "marketplace-webhooks";

pub(super) const TABLES: [&str; 4] = [KEYS, MARKET, ACCOUNTS, WEBHOOKS];

const MARKET_LAYOUTS: &str = "shared/market/src/table.rs";
const LOG_LAYOUTS: &str = "shared/market/src/records.rs";
const KEYS_LAYOUTS: &str = "shared/api/src/auth/table.rs";
const ACCOUNTS_LAYOUTS: &str = "shared/accounts/src/table.rs";
const WEBHOOKS_LAYOUTS: &str = "shared/webhooks/src/store/table.rs";

/// A kind of row.
pub(super) struct RowKind {
    /// The name of its golden file.
    pub(super) name: &'static str,
    pub(super) table: &'static str,
    /// How its partition keys begin.
    starts: &'static [&'static str],
    /// Its sort key, if that tells it from other rows of the partition.
    sk: Option<&'static str>,
    /// The file in which its layout stands.
    pub(super) layout_in: &'static str,
    /// What a reader of its golden file should know.
    pub(super) about: &'static str,
}

pub(super) const BASE_MANIFEST: &str = "base-manifest";
/// The parts of bases, of each stream: the name of the golden file, and the file in which the layout stands. Their
/// bytes depend on the version of zstd.
pub(super) const BASE_PARTS: [(&str, &str); 2] = [
    ("base-part-catalog", "shared/replica/src/base/columns.rs"),
    ("base-part-listings", "shared/replica/src/base/columns.rs"),
];

const fn kind(
    name: &'static str,
    table: &'static str,
    starts: &'static [&'static str],
    about: &'static str,
) -> RowKind {
    RowKind { name, table, starts, sk: None, layout_in: "", about }
}

pub(super) static KINDS: [RowKind; 22] = [
    RowKind { layout_in: KEYS_LAYOUTS, ..kind("key", KEYS, &["key#"], KEY) },
    RowKind {
        layout_in: KEYS_LAYOUTS,
        ..kind("key-finder", KEYS, &["id#", "user#"], "The rows that find a key by its id and by its user.")
    },
    RowKind {
        layout_in: KEYS_LAYOUTS,
        ..kind("key-turn", KEYS, &["turn#"], "Orders those who make keys for a user. It counts those of a day.")
    },
    RowKind {
        sk: Some("head"),
        layout_in: MARKET_LAYOUTS,
        ..kind("stream-head", MARKET, &["head#"], "How many batches and changes a stream has had.")
    },
    RowKind {
        sk: Some("manifest"),
        layout_in: MARKET_LAYOUTS,
        ..kind(BASE_MANIFEST, MARKET, &["head#"], "The hashes are the SHA-256 of the parts in the golden files.")
    },
    RowKind {
        sk: Some("lease"),
        layout_in: MARKET_LAYOUTS,
        ..kind(
            "base-lease",
            MARKET,
            &["head#"],
            "The lease of a run that makes a base from the entities. It has ended.",
        )
    },
    RowKind {
        layout_in: MARKET_LAYOUTS,
        ..kind(
            "base-rebuild",
            MARKET,
            &["rebuild#"],
            "How far a base is made from the entities. One has been finished.",
        )
    },
    RowKind { layout_in: LOG_LAYOUTS, ..kind("log-entry-catalog", MARKET, &["log#catalog#"], LOG_ENTRY) },
    RowKind { layout_in: LOG_LAYOUTS, ..kind("log-entry-listings", MARKET, &["log#listings#"], LOG_ENTRY) },
    RowKind {
        layout_in: MARKET_LAYOUTS,
        ..kind("entity", MARKET, &["entity#"], "Items and listings. A removed one has no data.")
    },
    RowKind { layout_in: MARKET_LAYOUTS, ..kind("marketplace", MARKET, &["marketplaces"], "") },
    RowKind {
        layout_in: MARKET_LAYOUTS,
        ..kind("quote", MARKET, &["quotes#"], "asks: postcard without a layout, a vector of cents.")
    },
    RowKind {
        layout_in: "shared/accounts/src/orders.rs",
        ..kind("order", ACCOUNTS, &["orders#"], "data: the layout, then the order by postcard, field by field.")
    },
    RowKind {
        layout_in: ACCOUNTS_LAYOUTS,
        ..kind("order-authority", ACCOUNTS, &["order#"], "Decides whether a message changes an order.")
    },
    RowKind { layout_in: ACCOUNTS_LAYOUTS, ..kind("order-summary", ACCOUNTS, &["summary#"], SUMMARY) },
    RowKind { layout_in: ACCOUNTS_LAYOUTS, ..kind("order-hours", ACCOUNTS, &["hours#"], HOURS) },
    RowKind { layout_in: ACCOUNTS_LAYOUTS, ..kind("balance", ACCOUNTS, &["balance#"], "") },
    RowKind {
        layout_in: WEBHOOKS_LAYOUTS,
        ..kind("account", WEBHOOKS, &["account#"], "The endpoints of an account. The secrets are sealed.")
    },
    RowKind {
        layout_in: WEBHOOKS_LAYOUTS,
        ..kind("endpoint-finder", WEBHOOKS, &["endpoint#"], "Finds the account of an endpoint, also of a removed one.")
    },
    RowKind {
        layout_in: WEBHOOKS_LAYOUTS,
        ..kind("delivery", WEBHOOKS, &["delivery#"], "Each attempt is JSON. The body is sent byte for byte.")
    },
    RowKind {
        layout_in: WEBHOOKS_LAYOUTS,
        ..kind("notice", WEBHOOKS, &["notice#"], "A notice that was not sent yet. It has no wake_at once it was.")
    },
    RowKind {
        layout_in: WEBHOOKS_LAYOUTS,
        ..kind("drain", WEBHOOKS, &["drain#"], "The drain of an account. One is called, and one sleeps.")
    },
];

const KEY: &str = "The key of the bits 07, 32 times. uc and um count the requests of one minute, Cg15 those of a day. \
                   The bits 08 replaced the bits 06.";
const LOG_ENTRY: &str = "changes: the layout, then by postcard the number of changes, and each: 0 and a record, or 1 \
                         and an id.";
const SUMMARY: &str = "How many orders there are, per month, and the latest inserts. It has an era since a repair has \
                       written it.";
const HOURS: &str = "How many orders a month has, and how many were created in each hour: h, the day, the hour.";
pub(super) const PART: &str = "packed: the layout, the length of the columns in four bytes, and the columns by zstd, \
                                whose bytes may differ between its versions.";

/// Returns the kind of a row.
pub(super) fn kind_of(table: &str, row: &Value) -> &'static RowKind {
    let (pk, sk) = (text(row, "pk"), text(row, "sk"));
    let is_it = |kind: &&RowKind| {
        kind.table == table
            && kind.starts.iter().any(|start| pk.starts_with(start))
            && kind.sk.is_none_or(|own| own == sk)
    };
    KINDS
        .iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("{pk} {sk} of {table} is of no kind in tests/it/formats/kinds.rs"))
}
