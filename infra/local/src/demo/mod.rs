//! The demo market: what `--demo` fills an empty store with, so that every endpoint has believable answers before
//! there is a feed.
//!
//! It is generated from a fixed seed and not shipped as a file. Ids, names and prices are the same on every machine
//! and at every start; only the times move along with `now`. Anything whose name or number breaks the service's own
//! rules is left out, so that it does not stop the start. The tests count what is there.

mod catalog;
mod large;
mod random;
#[cfg(test)]
mod tests;
mod trade;

use common::ids::UserId;
use common::money::Usd;
use common::records::PublicBalance;
use common::timestamp::Timestamp;
use feed::Message;
use uuid::Uuid;

use catalog::{Stock, stock};
use trade::{listings, marketplaces, orders, quotes};

pub use large::{LargeMarket, variant_id};

/// The version of every message: everything is new.
const FIRST_VERSION: u64 = 1;

/// Returns the demo market as of `now`: marketplaces, items, quotes, listings, then the demo user's orders, oldest
/// first, and the demo user's balance.
pub fn messages(now: Timestamp) -> Vec<Message> {
    let user = demo_user();
    let Stock { items, priced } = stock();
    let quotes = quotes(&priced, now);
    let listings = listings(&priced, now);
    let orders = orders(&priced, now);

    let mut messages = Vec::with_capacity(items.len() + quotes.len() + listings.len() + orders.len() + 10);
    messages.extend(marketplaces().map(|marketplace| Message::Marketplace(marketplace, FIRST_VERSION)));
    messages.extend(items.into_iter().map(|item| Message::Item(item, FIRST_VERSION)));
    messages.extend(quotes.into_iter().map(|(variant, quote)| Message::Quote(variant, quote)));
    messages.extend(listings.into_iter().map(|listing| Message::Listing(listing, FIRST_VERSION)));
    messages.extend(orders.into_iter().map(|order| Message::Order(user, order, FIRST_VERSION)));
    messages.push(Message::Balance(user, balance(), FIRST_VERSION));
    messages
}

/// Returns the user that owns the demo's orders and balance. The examples in the API description show the same user.
pub fn demo_user() -> UserId {
    Uuid::from_u128(0x3e0b_1a8c_1f7a_4b58_8f0b_6c3d_2a1e_9f00).into()
}

/// Returns the demo user's balance. Part of the store balance is being withdrawn already, so `withdrawable_usd` differs
/// from `store_usd`.
fn balance() -> PublicBalance {
    let (store, trade) = (18_427, 4_630);
    PublicBalance {
        available_usd: Usd::from_cents(store + trade),
        store_usd: Usd::from_cents(store),
        trade_usd: Usd::from_cents(trade),
        withdrawable_usd: Usd::from_cents(15_927),
        held_usd: Usd::from_cents(1_250),
        escrow_usd: Usd::from_cents(3_875),
    }
}
