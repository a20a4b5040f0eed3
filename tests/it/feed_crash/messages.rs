//! Random histories of a market as feed messages: every type that goes into the tables, with versions out of order
//! and repeated.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};
use tests::{balance, item, listing, marketplace, order, quote, uuid};
use types::ids::UserId;
use types::timestamp::Timestamp;
use uuid::Uuid;

/// Kills per history. Fewer than the receives of a message, so kills alone make no message a dead letter.
const KILLS_PER_HISTORY: usize = 4;
const USERS: u16 = 6;
const VARIANTS: u16 = 30;
const MARKETPLACES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// The history that a seed makes.
pub(super) struct History {
    /// The messages in the order in which they are sent.
    pub(super) messages: Vec<String>,
    /// The invalid ones among them, sorted.
    pub(super) invalid: Vec<String>,
    /// The newest message about each entity, which alone decide the final state.
    pub(super) newest: Vec<Value>,
    /// The process is killed when the queue is down to this many messages, one entry per kill.
    pub(super) kills: Vec<u64>,
}

impl History {
    pub(super) fn from_seed(seed: u64, count: usize, now: Timestamp) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let mut runner = TestRunner::new_with_rng(Config::default(), rng);
        let steps = vec((0u8..100, any::<u16>(), 1u64..=6), count).new_tree(&mut runner).unwrap().current();
        let left = vec(count / 10..count, KILLS_PER_HISTORY).new_tree(&mut runner).unwrap().current();
        let mut kills: Vec<u64> = left.into_iter().map(|left| left as u64).collect();
        kills.sort_by_key(|left| std::cmp::Reverse(*left));
        let (mut messages, mut invalid, mut newest) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (index, (kind, number, version)) in steps.into_iter().enumerate() {
            if kind == 0 {
                let text = json!({"type": "bogus", "number": index}).to_string();
                invalid.push(text.clone());
                messages.push(text);
                continue;
            }
            let message = message(kind, number, version, now);
            messages.push(message.to_string());
            let known = newest.entry(subject(&message)).or_insert((0, Value::Null));
            if version > known.0 {
                *known = (version, message);
            }
        }
        invalid.sort();
        Self { messages, invalid, newest: newest.into_values().map(|(_, message)| message).collect(), kills }
    }
}

pub(super) fn users() -> Vec<UserId> {
    (0..USERS).map(user).collect()
}

pub(super) fn variants() -> Vec<Uuid> {
    (0..VARIANTS).map(|number| uuid(number.into())).collect()
}

fn user(number: u16) -> UserId {
    uuid(1_000 + u128::from(number % USERS)).into()
}

/// Makes a message. Its content depends only on its entity, its version and the time.
fn message(kind: u8, number: u16, version: u64, now: Timestamp) -> Value {
    let minutes = |minutes: i64| now.plus_millis(minutes * 60_000).to_string();
    let phase = |number: u16| (u64::from(number) + version) % 3;
    let price = |number: u16| format!("{}.{version:02}", number % 50 + 1);
    match kind {
        1..10 => {
            let number = number % MARKETPLACES.len() as u16;
            marketplace(MARKETPLACES[usize::from(number)], phase(number) > 0, version)
        }
        10..30 => {
            let number = number % 150;
            let id = format!("item-{number}");
            match phase(number) {
                0 => json!({"type": "item", "id": id, "removed": true, "version": version}),
                phase => item(&id, "skin", Some(&format!("{phase} {id} {version}")), version),
            }
        }
        30..50 => {
            let number = number % (VARIANTS * MARKETPLACES.len() as u16);
            let (variant, marketplace) =
                (uuid(u128::from(number % VARIANTS)), MARKETPLACES[usize::from(number / VARIANTS)]);
            let observed_at = minutes(version.cast_signed() - 60);
            quote(variant, marketplace, &[&price(number), "7.00", "8.50"], &observed_at)
        }
        50..75 => {
            let number = number % 300;
            let mut listing = listing(number.into(), &price(number), &minutes(-i64::from(number)), version);
            listing["status"] = json!(["active", "sold", "active"][phase(number) as usize]);
            listing
        }
        75..90 => {
            let number = number % 400;
            let mut order = order(user(number), number.into(), &minutes(-2_000 * i64::from(number)), version);
            order["total_usd"] = json!(price(number));
            order
        }
        _ => {
            let number = number % USERS;
            balance(user(number), &price(number), "2.00", &price(number + 2), version)
        }
    }
}

/// Returns a name for the entity that a message is about.
fn subject(message: &Value) -> String {
    let identity = match message["type"].as_str().unwrap() {
        "marketplace" => vec!["key"],
        "quote" => vec!["variant_id", "marketplace"],
        "balance" => vec!["account_id"],
        _ => vec!["id"],
    };
    let identity: Vec<&str> = identity.into_iter().map(|field| message[field].as_str().unwrap()).collect();
    format!("{} {}", message["type"], identity.join(" "))
}
