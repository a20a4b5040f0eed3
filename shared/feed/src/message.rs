//! The messages and their schemas (specification 12.1 and 12.2). An error names the fields that are unknown, missing,
//! repeated or malformed.

use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use super::event::EventMessage;
use super::rejection::{BadField, Object, Rejection, bad_fields, read, sample};
use super::web_link::WebLink;
use common::event::{Event, EventKind};
use common::ids::{
    Id8, ItemId, ItemKind, Label, ListingId, MarketplaceKey, MarketplaceKind, OrderId, OrderStatus, UserId, VariantId,
};
use common::money::Usd;
use common::records::{
    ListingKind, ListingStatus, OrderSource, PublicBalance, PublicItem, PublicItemDetail, PublicListing,
    PublicMarketplace, PublicOrder, PublicOrderLine, PublicVariant,
};
use common::timestamp::{DAY_MILLIS, Timestamp};
use market::Quote;

/// A message of more bytes is invalid. SQS accepts messages of up to 1 MiB, and a DynamoDB row holds up to 400 KB.
pub const MAX_MESSAGE_BYTES: usize = 200 * 1_024;
const MAX_VARIANTS: usize = 500;
const MAX_ASKS: usize = 1_000;
/// The most lines of an order. A page of 100 such orders stays below Lambda's limit of 6 MB for a response.
const MAX_LINES: usize = 200;
/// How far in the future a quote may have been observed, which allows for clocks that run ahead.
const MAX_AHEAD_MILLIS: i64 = 5 * 60 * 1_000;
/// How far in the future a listing or an order may have been created. It would lead the lists by time for as long.
const MAX_CREATED_AHEAD_MILLIS: i64 = DAY_MILLIS;
/// The highest version of a message: the highest number of 63 bits, which databases and most languages can hold. The
/// tables hold numbers up to twice as high. So if a sender's counter goes astray, there are still higher numbers for a
/// repair, which no message can overtake by mistake.
const MAX_VERSION: u64 = i64::MAX.cast_unsigned();

/// A parsed message. Where a number stands at the end, it is the version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A marketplace, whether it is enabled or not.
    Marketplace(PublicMarketplace, u64),
    /// An item with its variants.
    Item(PublicItemDetail, u64),
    /// An item that was removed.
    ItemRemoved(ItemId, u64),
    /// A marketplace's asks for a variant.
    Quote(VariantId, Quote),
    /// An active listing.
    Listing(PublicListing, u64),
    /// A listing that was sold or cancelled.
    ListingEnded(ListingId, u64),
    /// A user's order.
    Order(UserId, PublicOrder, u64),
    /// A user's balance.
    Balance(UserId, PublicBalance, u64),
    /// Something that happened to a user's account, for its webhook endpoints.
    Event(Event),
}

#[derive(Deserialize)]
struct MessageType {
    r#type: String,
}

/// Reads one message.
pub fn parse(text: &str, now: Timestamp) -> Result<Message, Rejection> {
    if text.len() > MAX_MESSAGE_BYTES {
        return Err(Rejection::new("", format!("must have at most {MAX_MESSAGE_BYTES} bytes")));
    }
    let kind = read::<MessageType>(text)?.r#type;
    parse_as(&kind, text, now).map_err(|rejection| rejection.with_others(malformed(&kind, text)))
}

fn parse_as(kind: &str, text: &str, now: Timestamp) -> Result<Message, Rejection> {
    match kind {
        "marketplace" => read::<MarketplaceMessage>(text).map(MarketplaceMessage::message),
        "item" => read::<ItemMessage>(text)?.message(),
        "quote" => read::<QuoteMessage>(text)?.message(now),
        "listing" => read::<ListingMessage>(text)?.message(now),
        "order" => read::<OrderMessage>(text)?.message(now),
        "balance" => read::<BalanceMessage>(text)?.message(),
        "event" => read::<EventMessage>(text)?.event().map(Message::Event),
        _ => Err(Rejection::new("type", "must be one of marketplace, item, quote, listing, order, balance, event")),
    }
}

/// Returns every field of a message that is not of its form. The rules between fields are not checked.
fn malformed(kind: &str, text: &str) -> Vec<BadField> {
    let Ok(mut message) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let event = message["event"].as_str().and_then(|name| name.parse::<EventKind>().ok());
    let Some(good) = sample(kind, event.unwrap_or(EventKind::ListingSold)) else { return Vec::new() };
    if event.is_none() && message.get("data").is_some_and(Value::is_object) {
        // The form of the data is not known.
        message["data"] = good["data"].clone();
    }
    bad_fields(&message, &good, &|text| check_form(kind, text))
}

fn check_form(kind: &str, text: &str) -> Result<(), Rejection> {
    match kind {
        "marketplace" => read::<MarketplaceMessage>(text).map(drop),
        "item" => read::<ItemMessage>(text).map(drop),
        "quote" => read::<QuoteMessage>(text).map(drop),
        "listing" => read::<ListingMessage>(text).map(drop),
        "order" => read::<OrderMessage>(text).map(drop),
        "balance" => read::<BalanceMessage>(text).map(drop),
        "event" => read::<EventMessage>(text)?.event().map(drop),
        _ => Ok(()),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MarketplaceMessage {
    #[serde(rename = "type")]
    _type: String,
    key: MarketplaceKey,
    name: Label,
    link: WebLink,
    kind: MarketplaceKind,
    enabled: bool,
    version: Version,
}

impl MarketplaceMessage {
    fn message(self) -> Message {
        let Self { key, name, link, kind, enabled, version, .. } = self;
        Message::Marketplace(PublicMarketplace { key, name, link: link.link(), kind, enabled }, version.0)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ItemMessage {
    #[serde(rename = "type")]
    _type: String,
    id: ItemId,
    #[serde(default)]
    removed: bool,
    kind: Option<ItemKind>,
    name: Option<Label>,
    slug: Option<Label>,
    image: Option<WebLink>,
    variants: Option<Vec<Object<VariantMessage>>>,
    version: Version,
}

/// A variant as the feed has it. [`PublicVariant`] itself ignores unknown fields, because stored items may have been
/// written by a newer release.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VariantMessage {
    variant_id: VariantId,
    wear: Option<Label>,
    stattrak: bool,
    market_hash_name: Option<Label>,
}

impl VariantMessage {
    fn variant(self) -> PublicVariant {
        let Self { variant_id, wear, stattrak, market_hash_name } = self;
        PublicVariant { variant_id, wear, stattrak, market_hash_name, prices: None }
    }
}

impl ItemMessage {
    fn message(self) -> Result<Message, Rejection> {
        let Self { id, removed, kind, name, slug, image, variants, version, .. } = self;
        if removed {
            let present = [
                ("kind", kind.is_some()),
                ("name", name.is_some()),
                ("slug", slug.is_some()),
                ("image", image.is_some()),
                ("variants", variants.is_some()),
            ];
            let rule = "must be absent when the item is removed";
            let present = present.into_iter().filter(|(_, present)| *present);
            all(present.map(|(field, _)| Err(Rejection::new(field, rule))))?;
            return Ok(Message::ItemRemoved(id, version.0));
        }
        let variants: Vec<_> = variants.into_iter().flatten().map(|Object(variant)| variant.variant()).collect();
        let kind = kind.ok_or_else(|| Rejection::new("kind", "missing field `kind`"));
        all([kind.clone().map(drop), at_most("variants", variants.len(), MAX_VARIANTS)])?;
        let kind = kind?;
        let item = PublicItem { id, kind, name, slug, image: image.map(WebLink::link) };
        Ok(Message::Item(PublicItemDetail { item, variants }, version.0))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QuoteMessage {
    #[serde(rename = "type")]
    _type: String,
    variant_id: VariantId,
    marketplace: MarketplaceKey,
    asks_usd: Vec<Usd>,
    observed_at: Timestamp,
}

impl QuoteMessage {
    fn message(self, now: Timestamp) -> Result<Message, Rejection> {
        let observed = if self.observed_at <= now.plus_millis(MAX_AHEAD_MILLIS) {
            Ok(())
        } else {
            Err(Rejection::new("observed_at", "must not be more than 5 minutes in the future"))
        };
        all([at_most("asks_usd", self.asks_usd.len(), MAX_ASKS), observed])?;
        let quote = Quote { marketplace: self.marketplace, asks: self.asks_usd, observed_at: self.observed_at };
        Ok(Message::Quote(self.variant_id, quote))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListingMessage {
    #[serde(rename = "type")]
    _type: String,
    id: ListingId,
    id8: Id8,
    #[serde(rename = "account_id")]
    _account_id: UserId,
    price_usd: Usd,
    kind: ListingKind,
    is_auction: bool,
    created_at: Timestamp,
    item_id: Option<ItemId>,
    variant_id: Option<VariantId>,
    market_hash_name: Option<Label>,
    status: ListingStatus,
    version: Version,
}

impl ListingMessage {
    fn message(self, now: Timestamp) -> Result<Message, Rejection> {
        match self.status {
            ListingStatus::Active => created_by(self.created_at, now)?,
            // Of a listing that has ended, only the id and the version are stored.
            ListingStatus::Sold | ListingStatus::Cancelled => {
                return Ok(Message::ListingEnded(self.id, self.version.0));
            }
        }
        let Self { id, id8, price_usd, kind, is_auction, created_at, item_id, variant_id, market_hash_name, .. } = self;
        let listing =
            PublicListing { id, id8, price_usd, kind, is_auction, created_at, item_id, variant_id, market_hash_name };
        Ok(Message::Listing(listing, self.version.0))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OrderMessage {
    #[serde(rename = "type")]
    _type: String,
    id: OrderId,
    account_id: UserId,
    status: OrderStatus,
    source: OrderSource,
    total_usd: Usd,
    created_at: Timestamp,
    delivered_at: Option<Timestamp>,
    items: Vec<Object<PublicOrderLine>>,
    version: Version,
}

impl OrderMessage {
    fn message(self, now: Timestamp) -> Result<Message, Rejection> {
        let Self { id, account_id, status, source, total_usd, created_at, delivered_at, items, version, .. } = self;
        all([created_by(created_at, now), at_most("items", items.len(), MAX_LINES)])?;
        let items = items.into_iter().map(|Object(line)| line).collect();
        let order = PublicOrder { id, status, source, total_usd, created_at, delivered_at, items };
        Ok(Message::Order(account_id, order, version.0))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BalanceMessage {
    #[serde(rename = "type")]
    _type: String,
    account_id: UserId,
    available_usd: Usd,
    store_usd: Usd,
    trade_usd: Usd,
    withdrawable_usd: Usd,
    held_usd: Usd,
    escrow_usd: Usd,
    version: Version,
}

impl BalanceMessage {
    fn message(self) -> Result<Message, Rejection> {
        let Self { account_id, available_usd, store_usd, trade_usd, withdrawable_usd, held_usd, escrow_usd, .. } = self;
        if available_usd.cents() != store_usd.cents() + trade_usd.cents() {
            return Err(Rejection::new("available_usd", "must be store_usd plus trade_usd"));
        }
        let balance = PublicBalance { available_usd, store_usd, trade_usd, withdrawable_usd, held_usd, escrow_usd };
        Ok(Message::Balance(account_id, balance, self.version.0))
    }
}

/// Returns one rejection with all fields that are rejected.
fn all(rules: impl IntoIterator<Item = Result<(), Rejection>>) -> Result<(), Rejection> {
    let mut rejections = rules.into_iter().filter_map(Result::err);
    let Some(first) = rejections.next() else { return Ok(()) };
    let others = rejections.map(|Rejection { field, reason, .. }| BadField { field, reason });
    Err(first.with_others(others.collect()))
}

fn at_most(field: &str, count: usize, max: usize) -> Result<(), Rejection> {
    if count <= max { Ok(()) } else { Err(Rejection::new(field, format!("must have at most {max} entries"))) }
}

/// Checks that a time of creation does not lie too far ahead.
fn created_by(created_at: Timestamp, now: Timestamp) -> Result<(), Rejection> {
    if created_at <= now.plus_millis(MAX_CREATED_AHEAD_MILLIS) {
        Ok(())
    } else {
        Err(Rejection::new("created_at", "must not be more than a day in the future"))
    }
}

/// A version, from 0 to [`MAX_VERSION`].
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "u64")]
struct Version(u64);

/// The version is higher than a message may have.
#[derive(Debug, Error)]
#[error("must be at most {max}", max = MAX_VERSION)]
struct VersionTooHigh;

impl TryFrom<u64> for Version {
    type Error = VersionTooHigh;

    fn try_from(number: u64) -> Result<Self, VersionTooHigh> {
        if number <= MAX_VERSION { Ok(Self(number)) } else { Err(VersionTooHigh) }
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
