//! The schemas of values that are written as one string: ids, words, amounts and times.

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, Object, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::ids::{
    DepositId, Id8, ItemId, ItemKind, KeyId, Label, Link, ListingId, MarketplaceKey, MarketplaceKind, OrderId,
    OrderStatus, TradeId, UserId, VariantId, WithdrawalId,
};
use crate::money::Usd;
use crate::timestamp::Timestamp;

/// Gives each type its schema.
macro_rules! schemas {
    ($($name:ty: $schema:expr;)+) => {$(
        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                $schema.into()
            }
        }

        impl ToSchema for $name {}
    )+};
}

schemas! {
    DepositId: uuid();
    KeyId: uuid();
    ListingId: uuid();
    OrderId: uuid();
    TradeId: uuid();
    UserId: uuid();
    VariantId: uuid();
    WithdrawalId: uuid();
    Id8: text().pattern(Some("^[0-9a-f]{8}$"));
    ItemId: text().max_length(Some(128));
    ItemKind: word();
    MarketplaceKind: word();
    OrderStatus: word();
    Label: text();
    Link: text().format(Some(SchemaFormat::Custom("uri".to_owned())));
    MarketplaceKey: text();
    Timestamp: text().format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)));
    Usd: text().pattern(Some(r"^[0-9]{1,12}\.[0-9]{2}$"));
}

/// Returns the schema of an amount as the service reads it. It may have fewer decimals than one that the service
/// writes.
pub fn usd_as_read() -> Object {
    text().pattern(Some(r"^[0-9]{1,12}(\.[0-9]{1,2})?$")).build()
}

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

fn uuid() -> ObjectBuilder {
    text().format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid)))
}

fn word() -> ObjectBuilder {
    text().pattern(Some("^[a-z0-9_]{1,32}$"))
}
