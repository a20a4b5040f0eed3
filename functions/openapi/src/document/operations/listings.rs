//! The operation of the scope `listings:read`.

use api::error::{FieldCode, FieldError};
use api::routes;
use serde_json::json;
use types::records::PublicListing;
use types::schema::usd_as_read;
use types::sort::Sort;
use utoipa::openapi::ObjectBuilder;

use super::tags::LISTINGS;
use crate::document::body::ResponseBody;
use crate::document::headers;
use crate::document::operation::Get;
use crate::document::parameters::{one_of, paging, query, uuid, word};

const VARIANT: &str = "302e3e41-4703-51e3-9cc2-e551bdcec11e";

pub(super) fn listings() -> Get {
    let sort = one_of(&Sort::ALL.map(Sort::as_str));
    let sort = ObjectBuilder::from(sort).default(Some(json!(Sort::DEFAULT))).build();
    let mut parameters = vec![
        query("item_id", "Only listings of this item.", &word(), "ak-47-redline"),
        query("variant_id", "Only listings of this variant.", &uuid(), VARIANT),
        query(
            "min_price",
            "The lowest price in US dollars, inclusive; not above `max_price`.",
            &usd_as_read(),
            "10.00",
        ),
        query("max_price", "The highest price in US dollars, inclusive.", &usd_as_read(), "20.00"),
        query(
            "sort",
            "The order. Listings with the same price are ordered newest first.",
            &sort,
            Sort::PriceAsc.as_str(),
        ),
    ];
    parameters.extend(paging());
    Get {
        route: routes::LISTINGS,
        id: "searchListings",
        tag: LISTINGS,
        summary: "Search the active listings",
        description: "Returns active listings that match all filters. An unknown item or variant gives an empty page.",
        parameters,
        answer: "A page of listings.",
        body: ResponseBody::page::<PublicListing>(),
        state: Some(headers::LOG_POSITION),
        bad_request: vec![
            FieldError::new("min_price", FieldCode::Inverted, []),
            FieldError::new("sort", FieldCode::NotAllowed, [("allowed", json!(Sort::ALL))]),
        ],
        not_found: None,
    }
}
