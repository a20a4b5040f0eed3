//! Tests of the demo market as its readers see it.

use std::collections::{HashMap, HashSet};

use feed;
use feed::Message;
use market::{Quote, figures};
use serde_json::{Value, json};
use types::ids::{ItemId, UserId, VariantId};
use types::records::{ListingKind, OrderSource, PublicItemDetail, PublicListing, PublicMarketplace, PublicOrder};
use types::timestamp::Timestamp;

use super::random::{DAY_MILLIS, HOUR_MILLIS};
use super::{demo_user, listings, messages, orders};

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

fn all_differ<T: Eq + std::hash::Hash>(values: impl IntoIterator<Item = T>) -> bool {
    let mut seen = HashSet::new();
    values.into_iter().all(|value| seen.insert(value))
}

/// Whether the share of true values is from `low` to `high` percent.
fn share(values: impl ExactSizeIterator<Item = bool>, low: usize, high: usize) -> bool {
    let all = values.len();
    let percent = values.filter(|value| *value).count() * 100 / all;
    (low..=high).contains(&percent)
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
fn the_counts_are_as_promised() {
    let demo = demo();
    assert_eq!(demo.marketplaces.len(), 5);
    assert_eq!(demo.marketplaces.iter().filter(|marketplace| !marketplace.enabled).count(), 1);
    assert_eq!(demo.items.len(), 2_076);
    assert!((3_000..=4_500).contains(&demo.quotes.len()), "{}", demo.quotes.len());
    assert_eq!(demo.listings.len(), listings::LISTING_COUNT as usize);
    assert_eq!(demo.orders.len(), orders::ORDER_COUNT as usize);
    assert_eq!((demo.balances, demo.owners), (1, HashSet::from([demo_user()])));
}

#[test]
fn every_message_would_be_accepted_from_the_feed() {
    for message in messages(now()) {
        let text = wire(&message);
        assert_eq!(feed::parse(&text, now()).as_ref(), Ok(&message), "{text}");
    }
}

#[test]
fn only_the_times_depend_on_now() {
    assert_eq!(messages(now()), messages(now()));
    let later = messages(now().plus_millis(987_654_321));
    for (message, mut later) in messages(now()).into_iter().zip(later) {
        let back = |at: &mut Timestamp| *at = at.plus_millis(-987_654_321);
        match &mut later {
            Message::Quote(_, quote) => back(&mut quote.observed_at),
            Message::Listing(listing, _) => back(&mut listing.created_at),
            Message::Order(_, order, _) => {
                back(&mut order.created_at);
                order.delivered_at.iter_mut().for_each(back);
            }
            _ => {}
        }
        assert_eq!(message, later);
    }
}

#[test]
fn the_same_market_is_generated_on_every_machine() {
    let demo = demo();
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
fn names_are_those_of_a_skin_market() {
    let demo = demo();
    let item = |id: &str| demo.items.iter().find(|item| item.item.id.as_str() == id).unwrap();
    let names =
        |id| item(id).variants.iter().map(|v| v.market_hash_name.as_ref().unwrap().as_str()).collect::<Vec<_>>();
    assert!(names("ak-47-redline").contains(&"StatTrak™ AK-47 | Redline (Field-Tested)"));
    assert!(names("karambit-doppler").contains(&"★ StatTrak™ Karambit | Doppler (Factory New)"));
    assert_eq!(names("sticker-lucky-cat-holo"), ["Sticker | Lucky Cat (Holo)"]);
    let kinds: HashSet<_> = demo.items.iter().map(|item| item.item.kind.as_str()).collect();
    assert_eq!(kinds, HashSet::from(["skin", "knife", "glove", "sticker", "case", "agent", "charm", "music_kit"]));
    for item in &demo.items {
        let wears = matches!(item.item.kind.as_str(), "skin" | "knife" | "glove");
        assert_eq!(item.variants.iter().all(|variant| variant.wear.is_some()), wears);
        assert!(wears || item.variants.len() == 1);
        for variant in &item.variants {
            let (name, full) = (item.item.name.as_ref().unwrap(), variant.market_hash_name.as_ref().unwrap());
            assert_eq!(full.as_str().contains("StatTrak™"), variant.stattrak, "{full}");
            assert!(full.as_str().contains(name.as_str().trim_start_matches("★ ")), "{full} of {name}");
        }
    }
}

#[test]
fn what_is_traded_is_in_the_catalog() {
    let demo = demo();
    let mut variants = HashMap::new();
    for item in &demo.items {
        variants.extend(item.variants.iter().map(|variant| (variant.variant_id, (&item.item.id, variant))));
    }
    let items: HashSet<&ItemId> = demo.items.iter().map(|item| &item.item.id).collect();
    for listing in &demo.listings {
        let (item, variant) = variants[&listing.variant_id.unwrap()];
        assert_eq!(listing.item_id.as_ref(), Some(item));
        assert_eq!(listing.market_hash_name, variant.market_hash_name);
    }
    let marketplaces: HashSet<_> = demo.marketplaces.iter().map(|marketplace| &marketplace.key).collect();
    assert!(demo.quotes.iter().all(|(variant, quote)| {
        variants.contains_key(variant) && marketplaces.contains(&quote.marketplace) && !quote.asks.is_empty()
    }));
    let bought = demo.orders.iter().flat_map(|order| &order.items);
    assert!(bought.map(|line| line.item_id.as_ref().unwrap()).all(|item| items.contains(item)));
}

#[test]
fn every_item_has_a_variant_with_prices_now_and_for_hours_to_come() {
    let demo = demo();
    let mut quotes = HashMap::<VariantId, Vec<Quote>>::new();
    for (variant, quote) in demo.quotes {
        assert!((now().plus_millis(-6 * HOUR_MILLIS.cast_signed())..=now()).contains(&quote.observed_at));
        quotes.entry(variant).or_default().push(quote);
    }
    let later = now().plus_millis(12 * HOUR_MILLIS.cast_signed());
    for item in &demo.items {
        let mut prices = item.variants.iter().filter_map(|variant| {
            let quotes = quotes.get(&variant.variant_id)?.clone();
            figures(variant.variant_id, quotes, &demo.marketplaces, later)
        });
        assert!(prices.next().is_some(), "{}", item.item.id);
    }
}

#[test]
fn listings_are_of_all_sorts_and_at_most_two_months_old() {
    let demo = demo();
    let oldest = now().plus_millis(-60 * DAY_MILLIS.cast_signed());
    assert!(demo.listings.iter().all(|listing| (oldest..=now()).contains(&listing.created_at)));
    assert!(demo.listings.iter().all(|listing| listing.price_usd.cents() > 0));
    assert!(share(demo.listings.iter().map(|listing| listing.kind == ListingKind::Bot), 30, 45));
    assert!(share(demo.listings.iter().map(|listing| listing.is_auction), 3, 7));
    assert!(share(demo.listings.iter().map(|listing| listing.price_usd.cents() < 1_000), 40, 80));
}

#[test]
fn orders_are_of_all_sorts_oldest_first_and_add_up() {
    let demo = demo();
    let created: Vec<_> = demo.orders.iter().map(|order| order.created_at).collect();
    assert!(created.is_sorted() && all_differ(&created));
    assert!((now().plus_millis(-540 * DAY_MILLIS.cast_signed())..=now()).contains(&created[0]));
    for order in &demo.orders {
        assert!((1..=4).contains(&order.items.len()));
        assert_eq!(order.total_usd.cents(), order.items.iter().map(|line| line.price_usd.cents()).sum::<u64>());
        assert_eq!(order.delivered_at.is_some(), order.status.as_str() == "delivered");
        assert!(order.delivered_at.is_none_or(|at| at > order.created_at && at <= now()));
    }
    let statuses: HashSet<_> = demo.orders.iter().map(|order| order.status.as_str()).collect();
    assert_eq!(statuses, HashSet::from(["awaiting_delivery", "delivered", "refunded"]));
    assert!(share(demo.orders.iter().map(|order| order.status.as_str() == "delivered"), 85, 97));
    let sources: HashSet<OrderSource> = demo.orders.iter().map(|order| order.source).collect();
    assert_eq!(sources.len(), 5);
    let lengths: HashSet<usize> = demo.orders.iter().map(|order| order.items.len()).collect();
    assert_eq!(lengths.len(), 4);
}
