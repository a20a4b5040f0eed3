//! The operations of the scope `catalog:read`.

use api::error::{ApiError, FieldCode, FieldError};
use api::routes;
use serde_json::json;
use types::include::ItemInclude;
use types::records::{PublicItem, PublicItemDetail, PublicMarketplace, VariantPrices};
use types::schema::Example;

use super::tags::CATALOG;
use crate::document::body::ResponseBody;
use crate::document::headers;
use crate::document::operation::Get;
use crate::document::parameters::{one_of, paging, path, query, text, uuid, word};

pub(super) fn catalog() -> Get {
    let mut parameters = vec![
        query(
            "q",
            "Text that the name contains, in upper or lower case. An empty text matches all items.",
            &text(),
            "redline",
        ),
        query("kind", "The item's kind, such as `skin`. A kind that no item has gives an empty page.", &word(), "skin"),
    ];
    parameters.extend(paging());
    let bounds = [("min", json!(1)), ("max", json!(100))];
    Get {
        route: routes::CATALOG,
        id: "searchCatalog",
        tag: CATALOG,
        summary: "Search the catalog",
        description: "Returns items ordered by name, then by id. Items without a name come last.",
        parameters,
        answer: "A page of items.",
        body: ResponseBody::page::<PublicItem>(),
        state: Some(headers::LOG_POSITION),
        bad_request: vec![
            FieldError::new("page_size", FieldCode::OutOfRange, bounds),
            FieldError::new("knid", FieldCode::Unknown, [("suggestion", json!("kind"))]),
        ],
        not_found: None,
    }
}

pub(super) fn item() -> Get {
    Get {
        route: routes::ITEM,
        id: "getItem",
        tag: CATALOG,
        summary: "One item",
        description: "Returns an item and its variants. A variant is the item with a certain wear and StatTrak flag. \
                      With `include=prices` each variant comes with its prices on other marketplaces. That is one \
                      request of the budget, however many variants there are.",
        parameters: vec![
            path("id", "The item's id.", &word(), "ak-47-redline"),
            query(
                "include",
                "What to include beside the item. `prices` adds the field `prices` to each variant.",
                &one_of(&ItemInclude::ALL.map(ItemInclude::as_str)),
                ItemInclude::Prices.as_str(),
            ),
        ],
        answer: "The item.",
        body: ResponseBody::record::<PublicItemDetail>(),
        state: None,
        bad_request: vec![FieldError::new("include", FieldCode::NotAllowed, [("allowed", json!(ItemInclude::ALL))])],
        not_found: Some(ApiError::ItemNotFound("no-such-item".to_owned())),
    }
}

pub(super) fn prices() -> Get {
    let variant = VariantPrices::example().variant_id;
    Get {
        route: routes::PRICES,
        id: "getPrices",
        tag: CATALOG,
        summary: "Prices on other marketplaces",
        description: "Returns figures over all asks of enabled marketplaces for a variant in the last 24 hours.",
        parameters: vec![path("variant_id", "The variant's id.", &uuid(), variant.to_string())],
        answer: "The figures.",
        body: ResponseBody::record::<VariantPrices>(),
        state: Some(headers::LAST_MODIFIED),
        bad_request: vec![FieldError::new("variant_id", FieldCode::Malformed, [])],
        not_found: Some(ApiError::PricesNotFound(variant)),
    }
}

pub(super) fn marketplaces() -> Get {
    Get {
        route: routes::MARKETPLACES,
        id: "listMarketplaces",
        tag: CATALOG,
        summary: "Where prices come from",
        description: "Returns all marketplaces ordered by key, including disabled ones. The list is not paged.",
        parameters: Vec::new(),
        answer: "The marketplaces.",
        body: ResponseBody::list::<PublicMarketplace>(),
        state: None,
        bad_request: vec![FieldError::new("page", FieldCode::Unknown, [])],
        not_found: None,
    }
}
