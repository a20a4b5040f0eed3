//! The schemas, derived from the types that serialise the answers and the events.

use std::collections::BTreeMap;

use api::error::ErrorEnvelope;
use types::event;
use types::paging::Paged;
use types::records::{
    PublicBalance, PublicItem, PublicItemDetail, PublicListing, PublicMarketplace, PublicMe, PublicOrder, VariantPrices,
};
use utoipa::OpenApi;
use utoipa::openapi::schema::ArrayItems;
use utoipa::openapi::{Ref, RefOr, Schema};

/// Collects the schemas of these types and of all that they hold.
#[derive(OpenApi)]
#[openapi(components(schemas(
    PublicMe,
    PublicItem,
    Paged<PublicItem>,
    PublicItemDetail,
    VariantPrices,
    PublicMarketplace,
    PublicListing,
    Paged<PublicListing>,
    PublicOrder,
    Paged<PublicOrder>,
    PublicBalance,
    ErrorEnvelope,
)))]
struct Answers;

/// Collects the schemas of the events' data.
#[derive(OpenApi)]
#[openapi(components(schemas(
    event::ListingCreated,
    event::ListingSold,
    event::ListingCancelled,
    event::OrderCompleted,
    event::OrderRefunded,
    event::Trade,
    event::WalletDeposit,
    event::WalletWithdrawal,
)))]
struct Data;

type Schemas = BTreeMap<String, RefOr<Schema>>;

/// Every schema by name.
pub(super) fn all() -> Schemas {
    let mut schemas = of(Answers::openapi());
    for schema in schemas.values_mut() {
        leave_open(schema);
    }
    for record in ["PublicItem", "PublicListing", "PublicOrder"] {
        name_records(&mut schemas, record);
    }
    schemas.extend(of(Data::openapi()));
    schemas
}

/// A reference to the schema of one record.
pub(super) fn record(name: &str) -> RefOr<Schema> {
    Ref::from_schema_name(name).into()
}

/// A reference to the schema of a page of records.
pub(super) fn page_of(record: &str) -> RefOr<Schema> {
    Ref::from_schema_name(paged(record)).into()
}

fn of(openapi: utoipa::openapi::OpenApi) -> Schemas {
    openapi.components.unwrap_or_default().schemas
}

fn paged(record: &str) -> String {
    format!("Paged_{record}")
}

/// Answers may gain fields. Two of their types refuse unknown ones, but only where the feed is read.
fn leave_open(schema: &mut RefOr<Schema>) {
    if let RefOr::T(Schema::Object(object)) = schema
        && !object.properties.is_empty()
    {
        object.additional_properties = None;
    }
}

/// The derivation writes a generic parameter's schema out in place; clients want one type per record.
fn name_records(schemas: &mut Schemas, record: &str) {
    if let Some(RefOr::T(Schema::Object(page))) = schemas.get_mut(&paged(record))
        && let Some(RefOr::T(Schema::Array(records))) = page.properties.get_mut("items")
    {
        records.items = ArrayItems::RefOrSchema(Box::new(self::record(record)));
    }
}
