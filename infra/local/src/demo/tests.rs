//! Tests of the demo market as its readers see it.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use common::ids::{UserId, VariantId};
use common::records::{PublicItemDetail, PublicListing, PublicMarketplace, PublicOrder};
use common::timestamp::Timestamp;
use feed::Message;
use market::{Quote, figures};
use serde_json::{Value, json};

use super::random::{DAY_MILLIS, HOUR_MILLIS};
use super::{demo_user, messages};

/// The messages, sorted by what they are about.
#[derive(Default)]
struct Demo {
    marketplaces: Vec<PublicMarketplace>,
    items: Vec<PublicItemDetail>,
    quotes: Vec<(VariantId, Quote)>,
    listings: Vec<PublicListing>,
    orders: Vec<PublicOrder>,
    balances: usize,
    owners: HashSet<UserId>,
}

fn now() -> Timestamp {
    "2026-11-20T10:00:00Z".parse().unwrap()
}

fn demo() -> Demo {
    let mut demo = Demo::default();
    for message in messages(now()) {
        match message {
            Message::Marketplace(marketplace, 1) => demo.marketplaces.push(marketplace),
            Message::Item(item, 1) => demo.items.push(item),
            Message::Quote(variant, quote) => demo.quotes.push((variant, quote)),
            Message::Listing(listing, 1) => demo.listings.push(listing),
            Message::Order(user, order, 1) => {
                demo.owners.insert(user);
                demo.orders.push(order);
            }
            Message::Balance(user, _, 1) => {
                demo.owners.insert(user);
                demo.balances += 1;
            }
            other => panic!("not part of a new market: {other:?}"),
        }
    }
    demo
}

fn all_differ<T: Eq + Hash>(values: impl IntoIterator<Item = T>) -> bool {
    let mut seen = HashSet::new();
    values.into_iter().all(|value| seen.insert(value))
}

/// The message as the marketplace's own systems would send it.
fn wire(message: &Message) -> String {
    let account = json!("11111111-2222-4333-8444-555555555555");
    let (kind, mut body, more) = match message {
        Message::Marketplace(marketplace, version) => ("marketplace", json!(marketplace), json!({"version": version})),
        Message::Item(item, version) => ("item", json!(item), json!({"version": version})),
        Message::Quote(variant, quote) => {
            let body = json!({"variant_id": variant, "marketplace": quote.marketplace, "asks_usd": quote.asks});
            ("quote", body, json!({"observed_at": quote.observed_at}))
        }
        Message::Listing(listing, version) => {
            ("listing", json!(listing), json!({"account_id": account, "status": "active", "version": version}))
        }
        Message::Order(user, order, version) => {
            ("order", json!(order), json!({"account_id": user, "version": version}))
        }
        Message::Balance(user, balance, version) => {
            ("balance", json!(balance), json!({"account_id": user, "version": version}))
        }
        other => panic!("not part of a new market: {other:?}"),
    };
    body["type"] = json!(kind);
    if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
        body.extend(more);
    }
    body.to_string()
}

#[test]
fn every_message_would_be_accepted_from_the_feed() {
    for message in messages(now()) {
        let text = wire(&message);
        assert_eq!(feed::parse(&text, now()).as_ref(), Ok(&message), "{text}");
    }
}

#[test]
fn the_same_market_is_generated_on_every_machine() {
    let demo = demo();
    assert_eq!(demo.marketplaces.iter().filter(|marketplace| marketplace.enabled).count(), 4);
    assert_eq!((demo.marketplaces.len(), demo.items.len(), demo.listings.len()), (5, 2_076, 20_000));
    assert!((3_000..=4_500).contains(&demo.quotes.len()), "{}", demo.quotes.len());
    assert_eq!((demo.orders.len(), demo.balances, demo.owners), (300, 1, HashSet::from([demo_user()])));
    let listing = &demo.listings[0];
    assert_eq!(listing.id.to_string(), "6e85df56-b23c-57a2-aba0-f6e265560a4a");
    assert_eq!(listing.market_hash_name.as_ref().unwrap().as_str(), "SR-27 | Urban Grid (Well-Worn)");
    assert_eq!(demo.listings[19_999].price_usd.to_string(), "0.33");
    assert_eq!(demo.orders[299].total_usd.to_string(), "11.67");
}

#[test]
fn nothing_is_named_or_numbered_twice() {
    let demo = demo();
    let variants = || demo.items.iter().flat_map(|item| &item.variants);
    assert!(all_differ(demo.items.iter().map(|item| &item.item.id)));
    assert!(all_differ(demo.items.iter().map(|item| item.item.name.as_ref().unwrap())));
    assert!(all_differ(variants().map(|variant| variant.variant_id)));
    assert!(all_differ(variants().map(|variant| variant.market_hash_name.as_ref().unwrap())));
    assert!(all_differ(demo.quotes.iter().map(|(variant, quote)| (variant, &quote.marketplace))));
    assert!(all_differ(demo.listings.iter().map(|listing| listing.id8)));
    assert!(all_differ(demo.orders.iter().map(|order| order.id)));
    let sold = demo.orders.iter().flat_map(|order| &order.items).map(|line| line.listing_id);
    assert!(all_differ(demo.listings.iter().map(|listing| listing.id).chain(sold)));
}

#[test]
fn what_is_traded_is_in_the_catalog_and_every_item_has_prices_for_hours_to_come() {
    let demo = demo();
    let mut quotes = HashMap::<VariantId, Vec<Quote>>::new();
    for (variant, quote) in demo.quotes {
        assert!((now().plus_millis(-6 * HOUR_MILLIS.cast_signed())..=now()).contains(&quote.observed_at));
        quotes.entry(variant).or_default().push(quote);
    }
    let later = now().plus_millis(12 * HOUR_MILLIS.cast_signed());
    let mut variants = HashMap::new();
    for item in &demo.items {
        variants.extend(item.variants.iter().map(|variant| (variant.variant_id, (&item.item.id, variant))));
        let mut prices = item.variants.iter().filter_map(|variant| {
            let quotes = quotes.get(&variant.variant_id)?.clone();
            figures(variant.variant_id, quotes, &demo.marketplaces, later)
        });
        assert!(prices.next().is_some(), "{}", item.item.id);
    }
    let oldest = now().plus_millis(-60 * DAY_MILLIS.cast_signed());
    for listing in &demo.listings {
        let (item, variant) = variants[&listing.variant_id.unwrap()];
        assert_eq!(listing.item_id.as_ref(), Some(item));
        assert_eq!(listing.market_hash_name, variant.market_hash_name);
        assert!((oldest..=now()).contains(&listing.created_at) && listing.price_usd.cents() > 0);
    }
    let items: HashSet<_> = demo.items.iter().map(|item| &item.item.id).collect();
    let bought = demo.orders.iter().flat_map(|order| &order.items);
    assert!(bought.map(|line| line.item_id.as_ref().unwrap()).all(|item| items.contains(item)));
}
