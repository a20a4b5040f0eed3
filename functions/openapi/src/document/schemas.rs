//! The schemas, derived from the types that serialise the responses and from those of the events' data.

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

/// Collects the schemas of these types and of the types in their fields.
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

/// Returns every schema by name.
pub(super) fn all() -> Schemas {
    let mut schemas = schemas_of(Answers::openapi());
    for schema in schemas.values_mut() {
        leave_open(schema);
    }
    for record in ["PublicItem", "PublicListing", "PublicOrder"] {
        name_records(&mut schemas, record);
    }
    schemas.extend(schemas_of(Data::openapi()));
    schemas
}

/// Returns a reference to the schema of one record.
pub(super) fn record(name: &str) -> RefOr<Schema> {
    Ref::from_schema_name(name).into()
}

/// Returns a reference to the schema of a page of records.
pub(super) fn page_of(record: &str) -> RefOr<Schema> {
    Ref::from_schema_name(paged(record)).into()
}

fn schemas_of(openapi: utoipa::openapi::OpenApi) -> Schemas {
    openapi.components.unwrap_or_default().schemas
}

fn paged(record: &str) -> String {
    format!("Paged_{record}")
}

/// Lets a schema accept unknown fields, because responses may gain fields. Two of the types refuse unknown fields, but
/// only so that the feed is read strictly.
fn leave_open(schema: &mut RefOr<Schema>) {
    if let RefOr::T(Schema::Object(object)) = schema
        && !object.properties.is_empty()
    {
        object.additional_properties = None;
    }
}

/// Makes a page refer to the schema of its records. The derived schema repeats it in place, and generated clients would
/// then have a second type for the same record.
fn name_records(schemas: &mut Schemas, record: &str) {
    if let Some(RefOr::T(Schema::Object(page))) = schemas.get_mut(&paged(record))
        && let Some(RefOr::T(Schema::Array(records))) = page.properties.get_mut("items")
    {
        records.items = ArrayItems::RefOrSchema(Box::new(self::record(record)));
    }
}
