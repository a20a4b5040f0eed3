//! The operations of the scope `catalog:read`.

use api::CacheControl;
use api::error::{ApiError, FieldCode, FieldError};
use serde_json::{Value, json};
use types::scope::{Budget, Scope};
use utoipa::openapi::ArrayBuilder;
use uuid::{Uuid, uuid};

use super::tags::CATALOG;
use crate::document::operation::Get;
use crate::document::parameters::{paging, path, query, text, uuid, word};
use crate::document::schemas::{page_of, record};

const BUDGET: Option<Budget> = Some(Budget::Scope(Scope::CatalogRead));
const VARIANT: Uuid = uuid!("4f2c1f4e-6a57-5c0e-9d3a-0f6f0a3c7a11");

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
    let example = json!({"items": [item_example()], "page": 1, "page_size": 50, "total": 1});
    let bounds = [("min", json!(1)), ("max", json!(100))];
    Get {
        path: "/v1/public/catalog",
        id: "searchCatalog",
        tag: CATALOG,
        summary: "Search the catalog",
        description: "Returns items ordered by name, then by id. Items without a name come last.",
        budget: BUDGET,
        cache: CacheControl::PrivateNoCache,
        parameters,
        answer: ("A page of items.", page_of("PublicItem"), example),
        bad_request: vec![
            FieldError::new("page_size", FieldCode::OutOfRange, bounds),
            FieldError::new("knid", FieldCode::Unknown, [("suggestion", json!("kind"))]),
        ],
        not_found: None,
    }
}

pub(super) fn item() -> Get {
    let mut example = item_example();
    example["variants"] = json!([{
        "variant_id": VARIANT,
        "wear": "Field-Tested",
        "stattrak": false,
        "market_hash_name": "AK-47 | Redline (Field-Tested)"
    }]);
    Get {
        path: "/v1/public/items/{id}",
        id: "getItem",
        tag: CATALOG,
        summary: "One item",
        description: "Returns an item and its variants. A variant is the item with a certain wear and StatTrak flag.",
        budget: BUDGET,
        cache: CacheControl::PrivateNoCache,
        parameters: vec![path("id", "The item's id.", &word(), "ak-47-redline")],
        answer: ("The item.", record("PublicItemDetail"), example),
        bad_request: vec![FieldError::new("variants", FieldCode::Unknown, [])],
        not_found: Some(ApiError::ItemNotFound("no-such-item".to_owned())),
    }
}

pub(super) fn prices() -> Get {
    let example = json!({
        "variant_id": VARIANT,
        "sample_size": 42,
        "source_keys": ["buff", "skinport"],
        "lowest_usd": "11.90",
        "mean_usd": "12.46",
        "median_usd": "12.40",
        "recommended_list_usd": "11.89"
    });
    Get {
        path: "/v1/public/prices/{variant_id}",
        id: "getPrices",
        tag: CATALOG,
        summary: "Prices on other marketplaces",
        description: "Returns figures over all asks of enabled marketplaces for a variant in the last 24 hours.",
        budget: BUDGET,
        cache: CacheControl::PrivateNoCache,
        parameters: vec![path("variant_id", "The variant's id.", &uuid(), VARIANT.to_string())],
        answer: ("The figures.", record("VariantPrices"), example),
        bad_request: vec![FieldError::new("variant_id", FieldCode::Malformed, [])],
        not_found: Some(ApiError::PricesNotFound(VARIANT.into())),
    }
}

pub(super) fn marketplaces() -> Get {
    let example = json!([{
        "key": "skinport",
        "name": "Skinport",
        "link": "https://skinport.example.com",
        "kind": "p2p",
        "enabled": true
    }]);
    let all = ArrayBuilder::new().items(record("PublicMarketplace"));
    Get {
        path: "/v1/public/marketplaces",
        id: "listMarketplaces",
        tag: CATALOG,
        summary: "Where prices come from",
        description: "Returns all marketplaces ordered by key, including disabled ones. The list is not paged.",
        budget: BUDGET,
        cache: CacheControl::PrivateNoCache,
        parameters: Vec::new(),
        answer: ("The marketplaces.", all.into(), example),
        bad_request: vec![FieldError::new("page", FieldCode::Unknown, [])],
        not_found: None,
    }
}

fn item_example() -> Value {
    json!({
        "id": "ak-47-redline",
        "kind": "skin",
        "name": "AK-47 | Redline",
        "slug": "ak-47-redline",
        "image": "https://img.example.com/ak-47-redline.png"
    })
}
