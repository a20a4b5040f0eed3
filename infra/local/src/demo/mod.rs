//! The demo market: what `--demo` fills an empty store with, so that every endpoint has believable answers before
//! there is a feed.
//!
//! It is generated from fixed seeds and not shipped as a file. Ids, names and prices are the same on every machine and at
//! every start; only the times move along with `now`. It consists of messages as the marketplace sends them. One that
//! the feed would refuse is left out, so that it does not stop the start. The tests count what is there.

mod catalog;
mod large;
mod trade;

use common::ids::UserId;
use common::timestamp::Timestamp;
use feed::Message;
use serde_json::{Value, json};
use uuid::Uuid;

use catalog::Stock;

pub use large::{LargeMarket, variant_id};

const NAMESPACE: Uuid = Uuid::from_u128(0xd2a6_1f0b_77c4_4e0e_9b1d_5a0c_3e8f_4411);

/// Returns the demo market as of `now`: marketplaces, items, quotes, listings, then the demo user's orders, oldest
/// first, and the demo user's balance.
pub fn messages(now: Timestamp) -> Vec<Message> {
    let Stock { items, priced, .. } = Stock::new();
    let parts = [
        trade::marketplaces(),
        items,
        trade::quotes(&priced, now),
        trade::listings(&priced, now),
        trade::orders(&priced, now),
        vec![balance()],
    ];
    parts.iter().flatten().filter_map(|message| feed::parse(&message.to_string(), now).ok()).collect()
}

/// Returns the user that owns the demo's orders and balance. The examples in the API description show the same user.
pub fn demo_user() -> UserId {
    Uuid::from_u128(0x3e0b_1a8c_1f7a_4b58_8f0b_6c3d_2a1e_9f00).into()
}

/// Part of the store balance is being withdrawn already, so `withdrawable_usd` differs from `store_usd`.
fn balance() -> Value {
    json!({
        "type": "balance", "account_id": demo_user(), "available_usd": "230.57", "store_usd": "184.27",
        "trade_usd": "46.30", "withdrawable_usd": "159.27", "held_usd": "12.50", "escrow_usd": "38.75", "version": 1,
    })
}

/// Returns the version 5 UUID of the thing of this kind and name.
fn uuid(kind: &str, name: &str) -> Uuid {
    Uuid::new_v5(&NAMESPACE, format!("{kind}/{name}").as_bytes())
}

/// Returns a percentage of a price in cents, at least one cent.
fn scaled(cents: u64, percent: u64) -> u64 {
    (cents * percent / 100).max(1)
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use common::ids::VariantId;
    use market::{Quote, figures};

    use super::*;

    #[test]
    fn the_feed_takes_the_whole_market_and_every_item_has_prices_for_hours_to_come() {
        let now: Timestamp = "2026-11-20T10:00:00Z".parse().unwrap();
        let (mut marketplaces, mut items, mut listings, mut orders, mut balances) = (vec![], vec![], vec![], vec![], 0);
        let mut quotes = HashMap::<VariantId, Vec<Quote>>::new();
        for message in messages(now) {
            match message {
                Message::Marketplace(marketplace, _) => marketplaces.push(marketplace),
                Message::Item(item, _) => items.push(item),
                Message::Quote(variant, quote) => quotes.entry(variant).or_default().push(quote),
                Message::Listing(listing, _) => listings.push(listing),
                Message::Order(user, order, _) => {
                    assert_eq!(user, demo_user());
                    orders.push(order);
                }
                Message::Balance(user, ..) => balances += usize::from(user == demo_user()),
                other => panic!("not part of a new market: {other:?}"),
            }
        }
        let counts = (marketplaces.len(), items.len(), listings.len(), orders.len(), balances);
        assert_eq!(counts, (5, 2_076, 20_000, 300, 1));
        assert_eq!(listings[0].id.to_string(), "6e85df56-b23c-57a2-aba0-f6e265560a4a", "the same on every machine");
        assert_eq!(items.iter().map(|item| &item.item.id).collect::<HashSet<_>>().len(), items.len());
        assert_eq!(listings.iter().map(|listing| listing.id8).collect::<HashSet<_>>().len(), listings.len());

        let later = now.plus_millis(12 * 3_600_000);
        let mut variants = HashMap::new();
        for item in &items {
            variants.extend(item.variants.iter().map(|variant| (variant.variant_id, &item.item.id)));
            let mut prices = item.variants.iter().filter_map(|variant| {
                let quotes = quotes.get(&variant.variant_id)?.clone();
                figures(variant.variant_id, quotes, &marketplaces, later)
            });
            assert!(prices.next().is_some(), "{}", item.item.id);
        }
        for listing in &listings {
            assert_eq!(listing.item_id.as_ref(), Some(variants[&listing.variant_id.unwrap()]));
        }
    }
}
