//! The demo market: what `--demo` fills an empty store with, so that every endpoint has something believable
//! to answer before anybody has a feed.
//!
//! It is generated from a fixed seed rather than shipped as a file: ids, names and prices are the same on
//! every machine and every start, and only the times move along with `now`. A part that cannot be named or
//! numbered by the service's own rules is left out instead of bringing the start down; the tests count them.

mod arms;
mod collectibles;
mod design;
mod ids;
mod items;
mod listings;
mod orders;
mod places;
mod price;
mod quotes;
mod random;
mod stickers;
#[cfg(test)]
mod tests;
mod words;

use feed::Message;
use types::ids::UserId;
use types::money::Usd;
use types::records::PublicBalance;
use types::timestamp::Timestamp;

use items::Stock;

/// Everything is new.
const VERSION: u64 = 1;

/// The demo market as of `now`: marketplaces, items, quotes, listings, then the demo user's orders, oldest
/// first, and balance.
pub fn messages(now: Timestamp) -> Vec<Message> {
    let user = demo_user();
    let Stock { items, priced } = items::stock();
    let quotes = quotes::quotes(&priced, now);
    let listings = listings::listings(&priced, now);
    let orders = orders::orders(&priced, now);

    let mut messages = Vec::with_capacity(items.len() + quotes.len() + listings.len() + orders.len() + 10);
    messages.extend(places::marketplaces().map(|place| Message::Marketplace(place, VERSION)));
    messages.extend(items.into_iter().map(|item| Message::Item(item, VERSION)));
    messages.extend(quotes.into_iter().map(|(variant, quote)| Message::Quote(variant, quote)));
    messages.extend(listings.into_iter().map(|listing| Message::Listing(listing, VERSION)));
    messages.extend(orders.into_iter().map(|order| Message::Order(user, order, VERSION)));
    messages.push(Message::Balance(user, balance(), VERSION));
    messages
}

/// The user that the demo's orders and balance belong to: the one of the API description's examples.
pub fn demo_user() -> UserId {
    ids::DEMO_USER.into()
}

/// Some of the store balance is on its way out already, so that `withdrawable_usd` differs from it.
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
