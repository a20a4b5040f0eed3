//! What the feed reports, as the service must show it, and the messages that report it. A message is spelled in any way
//! that the feed accepts. A record has the one spelling of responses.

use std::fmt;

use common::timestamp::Timestamp;
use fastrand::Rng;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use uuid::Uuid;

/// An amount in cents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cents(pub(super) u64);

/// A time, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Millis(pub(super) i64);

impl fmt::Display for Cents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.0 / 100, self.0 % 100)
    }
}

impl Serialize for Cents {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Timestamp::from_millis(self.0))
    }
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Item {
    pub(super) id: String,
    pub(super) kind: &'static str,
    pub(super) name: Option<String>,
    pub(super) slug: Option<String>,
    pub(super) image: Option<String>,
    /// They are not part of the catalog.
    #[serde(skip)]
    pub(super) variants: Vec<Variant>,
}

#[derive(Clone, Debug, Serialize)]
#[expect(clippy::struct_field_names, reason = "named as in responses")]
pub(super) struct Variant {
    pub(super) variant_id: Uuid,
    pub(super) wear: Option<&'static str>,
    pub(super) stattrak: bool,
    pub(super) market_hash_name: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Marketplace {
    pub(super) key: String,
    pub(super) name: String,
    pub(super) link: String,
    pub(super) kind: &'static str,
    pub(super) enabled: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Quote {
    pub(super) variant_id: Uuid,
    pub(super) marketplace: String,
    pub(super) asks: Vec<Cents>,
    pub(super) observed_at: Millis,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Listing {
    pub(super) id: Uuid,
    pub(super) id8: String,
    pub(super) price_usd: Cents,
    pub(super) kind: &'static str,
    pub(super) is_auction: bool,
    pub(super) created_at: Millis,
    pub(super) item_id: Option<String>,
    pub(super) variant_id: Option<Uuid>,
    pub(super) market_hash_name: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Order {
    pub(super) id: Uuid,
    pub(super) status: &'static str,
    pub(super) source: &'static str,
    pub(super) total_usd: Cents,
    pub(super) created_at: Millis,
    pub(super) delivered_at: Option<Millis>,
    pub(super) items: Vec<OrderLine>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct OrderLine {
    pub(super) listing_id: Uuid,
    pub(super) price_usd: Cents,
    pub(super) item_id: Option<String>,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[expect(clippy::struct_field_names, reason = "named as in responses")]
pub(super) struct Balance {
    pub(super) available_usd: Cents,
    pub(super) store_usd: Cents,
    pub(super) trade_usd: Cents,
    pub(super) withdrawable_usd: Cents,
    pub(super) held_usd: Cents,
    pub(super) escrow_usd: Cents,
}

/// What a message reports. Items and listings are absent once they are removed or ended.
#[derive(Clone, Debug)]
pub(super) enum Record {
    Item(Option<Item>),
    /// With the status.
    Listing(Listing, &'static str),
    Marketplace(Marketplace),
    Quote(Quote),
    /// With the account.
    Order(Uuid, Order),
    Balance(Balance),
}

/// What has versions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Item(String),
    Listing(Uuid),
    Marketplace(String),
    /// A variant, and a marketplace.
    Quote(Uuid, String),
    Order(Uuid),
    /// An account.
    Balance(Uuid),
}

/// A version of a record. That of a quote is the time at which it was observed.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) key: Key,
    pub(super) version: i64,
    pub(super) record: Record,
}

impl Change {
    /// Returns a message that reports it, in a spelling that is drawn.
    pub(super) fn message(&self, random: &mut Rng) -> Value {
        let mut message = match &self.record {
            Record::Item(None) => json!({"removed": true}),
            Record::Item(Some(item)) => with(item, [("variants", json!(item.variants))]),
            Record::Listing(listing, status) => {
                with(listing, [("status", json!(status)), ("account_id", json!(Uuid::from_u128(1)))])
            }
            Record::Marketplace(marketplace) => json!(marketplace),
            Record::Quote(Quote { variant_id, marketplace, asks, observed_at }) => json!({
                "variant_id": variant_id, "marketplace": marketplace, "asks_usd": asks, "observed_at": observed_at,
            }),
            Record::Order(account, order) => with(order, [("account_id", json!(account))]),
            Record::Balance(balance) => json!(balance),
        };
        let kind = match &self.key {
            Key::Item(id) => {
                message["id"] = json!(id);
                "item"
            }
            Key::Balance(account) => {
                message["account_id"] = json!(account);
                "balance"
            }
            Key::Listing(_) => "listing",
            Key::Marketplace(_) => "marketplace",
            Key::Quote(..) => "quote",
            Key::Order(_) => "order",
        };
        if kind != "quote" {
            message["version"] = json!(self.version);
        }
        respell(&mut message, random);
        message["type"] = json!(kind);
        message
    }
}

fn with<const N: usize>(record: &impl Serialize, members: [(&str, Value); N]) -> Value {
    let mut message = json!(record);
    for (name, value) in members {
        message[name] = value;
    }
    message
}

/// Spells amounts, times and UUIDs in other ways, and leaves out what is null.
fn respell(value: &mut Value, random: &mut Rng) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| respell(value, random)),
        Value::Object(members) => {
            members.retain(|_, value| !value.is_null() || random.bool());
            for (name, value) in members {
                match value {
                    Value::String(text) if name.ends_with("_usd") => *text = amount(text, random),
                    Value::Array(amounts) if name.ends_with("_usd") => {
                        *value = amounts.iter().map(|text| json!(amount(text.as_str().unwrap(), random))).collect();
                    }
                    Value::String(text) if name.ends_with("_at") => *text = time(text, random),
                    Value::String(text) if text.parse::<Uuid>().is_ok() && random.u8(..) < 64 => {
                        *text = text.to_uppercase();
                    }
                    _ => respell(value, random),
                }
            }
        }
        _ => {}
    }
}

fn amount(text: &str, random: &mut Rng) -> String {
    match random.u8(0..4) {
        0 if text.ends_with(".00") => text[..text.len() - 3].to_owned(),
        1 if text.ends_with('0') => text[..text.len() - 1].to_owned(),
        2 if text.len() < 14 => format!("0{text}"),
        _ => text.to_owned(),
    }
}

fn time(text: &str, random: &mut Rng) -> String {
    let hours = random.i64(1..14);
    let shifted = |hours: i64| text.parse::<Timestamp>().unwrap().plus_millis(hours * 3_600_000).to_string();
    match random.u8(0..4) {
        0 => shifted(hours).replace('Z', &format!("+{hours:02}:00")),
        1 => shifted(-hours).replace('Z', &format!("-{hours:02}:00")),
        2 => text.replace('Z', "999Z"),
        _ => text.to_owned(),
    }
}
