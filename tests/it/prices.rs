//! `GET /v1/public/prices/{variant_id}` as time passes, and under quotes that come in any order and again, from marketplaces
//! that are added, enabled and disabled.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use tests::{Stack, marketplace, play_histories, quote, uuid};

const FRESH: &str = "2026-11-20T11:00:00Z";

fn path() -> String {
    format!("/v1/public/prices/{}", uuid(7))
}

async fn market() -> Stack {
    let stack = Stack::new().await;
    stack.feed(&[marketplace("one", true, 1), marketplace("two", true, 1), marketplace("off", false, 1)]).await;
    stack
}

#[tokio::test(flavor = "multi_thread")]
async fn a_date_does_not_hide_that_a_quote_has_grown_too_old() {
    let stack = market().await;
    let older = "2026-11-20T08:00:00Z";
    stack.feed(&[quote(uuid(7), "one", &["5.00"], older), quote(uuid(7), "two", &["6.00"], FRESH)]).await;
    let running = stack.instance().await;
    let authorization = format!("Bearer {}", stack.full_key().await);
    let ask = async || {
        let condition = [("authorization", &*authorization), ("if-modified-since", "Fri, 20 Nov 2026 11:00:00 GMT")];
        let reply = running.client.send("GET", &path(), &condition).await;
        (reply.status, reply.header("last-modified").to_owned())
    };
    let date = "Fri, 20 Nov 2026 11:00:00 GMT".to_owned();
    // The clock begins at noon, so the older quote has twenty hours left.
    running.wait(20 * 3_600);
    assert_eq!(ask().await, (304, date.clone()));
    running.wait(1);
    assert_eq!(ask().await, (200, date));
}

const MARKETPLACES: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Clone, Debug)]
enum PriceMessage {
    /// A marketplace's asks in cents, observed this many minutes before noon.
    Quote {
        place: usize,
        minutes: u16,
        asks: Vec<u32>,
    },
    Marketplace {
        place: usize,
        enabled: bool,
        version: u8,
    },
}

fn messages() -> impl Strategy<Value = Vec<PriceMessage>> {
    let asks = prop::collection::vec(1u32..50_000, 0..4);
    // About one quote in four is more than a day old.
    let quote =
        (0usize..4, 0u16..1_900, asks).prop_map(|(place, minutes, asks)| PriceMessage::Quote { place, minutes, asks });
    let place = (0usize..4, any::<bool>(), 1u8..5).prop_map(|(place, enabled, version)| PriceMessage::Marketplace {
        place,
        enabled,
        version,
    });
    prop::collection::vec(prop_oneof![3 => quote, 1 => place], 1..25)
}

fn usd(cents: u32) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

fn feed_message(message: &PriceMessage) -> Value {
    match message {
        PriceMessage::Marketplace { place, enabled, version } => {
            marketplace(MARKETPLACES[*place], *enabled, (*version).into())
        }
        PriceMessage::Quote { place, minutes, asks } => {
            let asks: Vec<String> = asks.iter().map(|cents| usd(*cents)).collect();
            let asks: Vec<&str> = asks.iter().map(String::as_str).collect();
            let noon: common::timestamp::Timestamp = tests::NOON.parse().unwrap();
            let observed_at = noon.plus_millis(-60_000 * i64::from(*minutes)).to_string();
            quote(uuid(7), MARKETPLACES[*place], &asks, &observed_at)
        }
    }
}

/// Returns the asks that count, cheapest first, and the marketplaces they come from.
fn expected(messages: &[PriceMessage]) -> (Vec<u32>, Vec<&'static str>) {
    let (mut quotes, mut enabled) = (BTreeMap::new(), BTreeMap::new());
    for message in messages {
        match message {
            // Of two quotes observed at the same time, the first one stays.
            PriceMessage::Quote { place, minutes, asks } => {
                let known = quotes.entry(*place).or_insert((*minutes, asks));
                if *minutes < known.0 {
                    *known = (*minutes, asks);
                }
            }
            PriceMessage::Marketplace { place, enabled: now, version } => {
                let known = enabled.entry(*place).or_insert((0, false));
                if *version > known.0 {
                    *known = (*version, *now);
                }
            }
        }
    }
    quotes.retain(|place, (minutes, asks)| {
        *minutes <= 24 * 60 && !asks.is_empty() && enabled.get(place).is_some_and(|(_, enabled)| *enabled)
    });
    let mut asks: Vec<u32> = quotes.values().flat_map(|(_, asks)| asks.iter().copied()).collect();
    asks.sort_unstable();
    (asks, quotes.keys().map(|place| MARKETPLACES[*place]).collect())
}

async fn play(mut messages: Vec<PriceMessage>) {
    let stack = Stack::new().await;
    for message in &messages {
        stack.feed_outcomes(&[feed_message(message)]).await;
    }
    let (asks, sources) = expected(&messages);
    // Everything is sent again in reverse order, which must change nothing.
    messages.reverse();
    let again: Vec<Value> = messages.iter().map(feed_message).collect();
    assert!(stack.feed_outcomes(&again).await.iter().all(|outcome| *outcome == feed::ApplyOutcome::Unchanged));
    let running = stack.instance().await;
    let reply = running.client.get(&stack.full_key().await, &format!("/v1/public/prices/{}", uuid(7))).await;
    if asks.is_empty() {
        assert_eq!(reply.status, 404, "{:?}", reply.json());
        return;
    }
    let body = reply.json();
    assert_eq!((&body["sample_size"], &body["source_keys"]), (&json!(asks.len()), &json!(sources)), "{body}");
    assert_eq!(body["lowest_usd"], usd(asks[0]));
}

#[test]
fn the_latest_quote_of_each_enabled_marketplace_counts_whatever_the_order() {
    play_histories(24, &messages(), play);
}
