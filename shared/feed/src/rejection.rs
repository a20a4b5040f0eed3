//! Why a message is not applied, and which fields are to blame.
//!
//! The reader of JSON names the first bad field, because Serde stops there. To find all of them, each field is put by
//! itself into a message that is known to be good, and that message is read. A field that is repeated is not found here.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use thiserror::Error;

use common::event::EventKind;
use common::reasons::plain;

/// No more offending fields than this are named beside the first.
const MAX_OTHERS: usize = 31;
/// No more bad fields than this are named.
const MAX_NAMED: usize = 32;
/// Fields and reasons quote what the message has, so they are cut after so many characters.
const MAX_QUOTED_CHARS: usize = 256;
/// No more entries of a list are looked at than this. No list may have more.
const MAX_ENTRIES: usize = 1_000;
const UUID: &str = "6f9619ff-8b86-d011-b42d-00c04fc964ff";
const TIME: &str = "2026-11-20T10:00:00.000Z";

/// Why a message is not applied.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field}: {reason}")]
pub struct Rejection {
    /// The offending field as a path, such as `variants[3].wear`. It is empty for the message as a whole.
    pub field: String,
    /// The rule that the field breaks.
    pub reason: String,
    /// The other offending fields, at most 31.
    pub others: Vec<BadField>,
}

/// A field that makes a message invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field}: {reason}")]
pub struct BadField {
    /// The field as a path.
    pub field: String,
    /// The rule that the field breaks.
    pub reason: String,
}

impl Rejection {
    pub fn new(field: &str, reason: impl Into<String>) -> Self {
        let BadField { field, reason } = BadField::new(field, &reason.into());
        Self { field, reason, others: Vec::new() }
    }

    /// Adds those of the fields that the rejection does not name yet.
    pub(super) fn with_others(mut self, fields: Vec<BadField>) -> Self {
        let is_new = |known: &Self, bad: &BadField| {
            bad.field != known.field && known.others.iter().all(|other| other.field != bad.field)
        };
        for bad in fields {
            if self.others.len() < MAX_OTHERS && is_new(&self, &bad) {
                self.others.push(bad);
            }
        }
        self
    }
}

impl BadField {
    fn new(field: &str, reason: &str) -> Self {
        let cut = |text: &str| text.chars().take(MAX_QUOTED_CHARS).collect();
        Self { field: cut(field), reason: cut(reason) }
    }
}

/// Reads a text that is one JSON object and nothing more.
pub(super) fn read<T: DeserializeOwned>(text: &str) -> Result<T, Rejection> {
    let mut json = serde_json::Deserializer::from_str(text);
    let Object(read) = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        rejection(&path, error.inner())
    })?;
    json.end().map_err(|error| rejection(".", &error))?;
    Ok(read)
}

/// Turns serde's error into a rejection that names the field. If the field is missing, unknown or repeated, its name
/// comes from serde's message.
fn rejection(path: &str, error: &serde_json::Error) -> Rejection {
    let text = error.to_string();
    let reason = text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason);
    let path = if path == "." { "" } else { path };
    let named = ["missing field `", "unknown field `", "duplicate field `"]
        .iter()
        .find_map(|start| reason.strip_prefix(start)?.split('`').next());
    let field = match named {
        Some(name) if path.is_empty() => name.to_owned(),
        Some(name) if path == name || path.ends_with(&format!(".{name}")) => path.to_owned(),
        Some(name) => format!("{path}.{name}"),
        None => path.to_owned(),
    };
    let reason = plain(reason);
    // Without a field, serde names a part that was not read far enough to have a name.
    Rejection::new(if field == "?" { "" } else { &field }, reason)
}

/// A `T` that must be written as a JSON object.
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData)).map(Self)
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

/// Returns the fields of `message` for which `check` refuses the good message.
pub(super) fn bad_fields(
    message: &Value,
    good: &Value,
    check: &dyn Fn(&str) -> Result<(), Rejection>,
) -> Vec<BadField> {
    let mut search = Search { check, found: Vec::new() };
    search.visit("", good, message, &|whole| whole);
    search.found
}

struct Search<'c> {
    check: &'c dyn Fn(&str) -> Result<(), Rejection>,
    found: Vec<BadField>,
}

impl Search<'_> {
    /// Looks at the part of a message at `path`. `good` is the same part of the good message, and `whole` makes a whole
    /// message with another part in its place.
    fn visit(&mut self, path: &str, good: &Value, part: &Value, whole: &dyn Fn(Value) -> Value) {
        match (good, part) {
            (Value::Object(good), Value::Object(fields)) => self.visit_fields(path, good, fields, whole),
            (Value::Array(good), Value::Array(entries)) => {
                let Some(good) = good.first() else { return };
                let with_entry = |entry| whole(Value::Array(vec![entry]));
                for (at, entry) in entries.iter().enumerate().take(MAX_ENTRIES) {
                    self.visit(&format!("{path}[{at}]"), good, entry, &with_entry);
                }
            }
            _ => self.check(path, &whole(part.clone())),
        }
    }

    fn visit_fields(
        &mut self,
        path: &str,
        good: &Map<String, Value>,
        fields: &Map<String, Value>,
        whole: &dyn Fn(Value) -> Value,
    ) {
        let path_to = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        for name in good.keys().filter(|name| !fields.contains_key(*name)) {
            let mut others = good.clone();
            others.remove(name);
            self.check(&path_to(name), &whole(Value::Object(others)));
        }
        for (name, value) in fields {
            let with_field = |value| {
                let mut changed = good.clone();
                changed.insert(name.clone(), value);
                whole(Value::Object(changed))
            };
            match good.get(name) {
                Some(good) => self.visit(&path_to(name), good, value, &with_field),
                None => self.check(&path_to(name), &with_field(value.clone())),
            }
        }
    }

    fn check(&mut self, path: &str, message: &Value) {
        if self.found.len() == MAX_NAMED {
            return;
        }
        if let Err(Rejection { reason, .. }) = (self.check)(&message.to_string()) {
            self.found.push(BadField::new(path, &reason));
        }
    }
}

/// Returns a message of this type, or `None` if there is no such type. The data of an event is that of `event`.
pub(super) fn sample(kind: &str, event: EventKind) -> Option<Value> {
    Some(match kind {
        "marketplace" => json!({
            "type": kind, "key": "a", "name": "A", "link": "https://a.example", "kind": "p2p", "enabled": true,
            "version": 1,
        }),
        "item" => json!({
            "type": kind, "id": "a", "removed": false, "kind": "skin", "name": "A", "slug": "a",
            "image": "https://a.example", "version": 1,
            "variants": [{"variant_id": UUID, "wear": "A", "stattrak": false, "market_hash_name": "A"}],
        }),
        "quote" => json!({
            "type": kind, "variant_id": UUID, "marketplace": "a", "asks_usd": ["1.00"], "observed_at": TIME,
        }),
        "listing" => json!({
            "type": kind, "id": UUID, "id8": "a1b2c3d4", "account_id": UUID, "price_usd": "1.00", "kind": "bot",
            "is_auction": false, "created_at": TIME, "item_id": "a", "variant_id": UUID, "market_hash_name": "A",
            "status": "active", "version": 1,
        }),
        "order" => json!({
            "type": kind, "id": UUID, "account_id": UUID, "status": "delivered", "source": "checkout",
            "total_usd": "1.00", "created_at": TIME, "delivered_at": TIME, "version": 1,
            "items": [{"listing_id": UUID, "price_usd": "1.00", "item_id": "a"}],
        }),
        "balance" => json!({
            "type": kind, "account_id": UUID, "available_usd": "1.00", "store_usd": "1.00", "trade_usd": "0.00",
            "withdrawable_usd": "1.00", "held_usd": "0.00", "escrow_usd": "0.00", "version": 1,
        }),
        "event" => json!({
            "type": kind, "id": UUID, "event": event, "account_id": UUID, "created_at": TIME,
            "data": event.sample_data(),
        }),
        _ => return None,
    })
}
