//! The schemas of records agree with the types that serialise the responses.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::str::FromStr;

use api::error::{ApiError, FieldCode, FieldError};
use common::ids::Id8;
use common::paging::Paging;
use common::records::{
    IncludedPrices, ListingKind, OrderSource, PublicBalance, PublicItem, PublicItemDetail, PublicListing,
    PublicMarketplace, PublicMe, PublicOrder, PublicOrderLine, PublicVariant, VariantPrices,
};
use common::scope::{Scope, Tier};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{description, misfits, named};

fn parsed<T: FromStr<Err: Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

/// Returns a value if the record is full, and nothing if it is bare.
fn optional<T: FromStr<Err: Debug>>(full: bool, text: &str) -> Option<T> {
    full.then(|| parsed(text))
}

fn item(full: bool) -> PublicItem {
    PublicItem {
        id: parsed("ak-47-redline"),
        kind: parsed("skin"),
        name: optional(full, "AK-47 | Redline"),
        slug: optional(full, "ak-47-redline"),
        image: optional(full, "https://img.example.com/ak-47-redline.png"),
    }
}

fn variant(full: bool) -> PublicVariant {
    PublicVariant {
        variant_id: Uuid::nil().into(),
        wear: optional(full, "Field-Tested"),
        stattrak: false,
        market_hash_name: optional(full, "AK-47 | Redline (Field-Tested)"),
        prices: Some(IncludedPrices(full.then(|| prices(full)))),
    }
}

fn prices(full: bool) -> VariantPrices {
    VariantPrices {
        variant_id: Uuid::nil().into(),
        sample_size: 42,
        source_keys: vec![parsed("buff")],
        lowest_usd: optional(full, "11.90"),
        mean_usd: optional(full, "12.46"),
        median_usd: optional(full, "12.40"),
        recommended_list_usd: optional(full, "11.89"),
    }
}

fn listing(full: bool) -> PublicListing {
    PublicListing {
        id: Uuid::nil().into(),
        id8: Id8::from_bits(0xa1b2_c3d4),
        price_usd: parsed("12.50"),
        kind: ListingKind::Bot,
        is_auction: false,
        created_at: parsed("2026-11-20T10:00:00.000Z"),
        item_id: optional(full, "ak-47-redline"),
        variant_id: full.then(|| Uuid::nil().into()),
        market_hash_name: optional(full, "AK-47 | Redline (Field-Tested)"),
    }
}

fn line(full: bool) -> PublicOrderLine {
    PublicOrderLine {
        listing_id: Uuid::nil().into(),
        price_usd: parsed("12.50"),
        item_id: optional(full, "ak-47-redline"),
    }
}

fn order(full: bool) -> PublicOrder {
    PublicOrder {
        id: Uuid::nil().into(),
        status: parsed("delivered"),
        source: OrderSource::Checkout,
        total_usd: parsed("12.50"),
        created_at: parsed("2026-11-20T10:00:00.000Z"),
        delivered_at: optional(full, "2026-11-20T10:04:31.250Z"),
        items: vec![line(full)],
    }
}

/// Returns each record of the responses by the name of its schema. A full one has every field, a bare one only what is
/// never null. A new field does not compile until it stands here.
fn records(full: bool) -> BTreeMap<&'static str, Value> {
    let me = PublicMe {
        api_key_id: Uuid::nil().into(),
        user_id: Uuid::nil().into(),
        tier: Tier::Free,
        scopes: [Scope::CatalogRead].into(),
        rate_limit_per_minute: 60,
    };
    let marketplace = PublicMarketplace {
        key: parsed("skinport"),
        name: parsed("Skinport"),
        link: parsed("https://skinport.example.com"),
        kind: parsed("p2p"),
        enabled: true,
    };
    let balance = PublicBalance {
        available_usd: parsed("15.00"),
        store_usd: parsed("10.00"),
        trade_usd: parsed("5.00"),
        withdrawable_usd: parsed("10.00"),
        held_usd: parsed("2.50"),
        escrow_usd: parsed("0.00"),
    };
    let field = FieldError::new("page_size", FieldCode::OutOfRange, [("min", json!(1))]);
    let error = json!(ApiError::Invalid(vec![field.clone()]).envelope());
    let paging = Paging { page: 1, page_size: 50 };
    BTreeMap::from([
        ("PublicMe", json!(me)),
        ("PublicItem", json!(item(full))),
        ("PublicItemDetail", json!(PublicItemDetail { item: item(full), variants: vec![variant(full)] })),
        ("PublicVariant", json!(variant(full))),
        ("VariantPrices", json!(prices(full))),
        ("PublicMarketplace", json!(marketplace)),
        ("PublicListing", json!(listing(full))),
        ("PublicOrder", json!(order(full))),
        ("PublicOrderLine", json!(line(full))),
        ("PublicBalance", json!(balance)),
        ("PagedPublicItem", json!(paging.envelope(vec![item(full)], 2_317))),
        ("PagedPublicListing", json!(paging.envelope(vec![listing(full)], 2_317))),
        ("PagedPublicOrder", json!(paging.envelope(vec![order(full)], 2_317))),
        ("ErrorBody", error["error"].clone()),
        ("ErrorEnvelope", error),
        ("FieldError", json!(field)),
    ])
}

/// The fields that may be absent: of a variant unless the request includes them, of an error unless it is a 400.
const ABSENT: [(&str, &str); 2] = [("PublicVariant", "prices"), ("ErrorBody", "fields")];

/// Returns the fields of a record, and the names of those that are always there.
fn fields(document: &Value, name: &str) -> (BTreeMap<String, Value>, BTreeSet<String>) {
    let schema = &document["components"]["schemas"][name];
    let mut parts = vec![schema];
    if let Some(all) = schema["allOf"].as_array() {
        parts = all.iter().map(|part| super::resolved(document, part)).collect();
    }
    let all = parts.iter().filter_map(|part| part["properties"].as_object()).flatten();
    let required = parts.iter().filter_map(|part| part["required"].as_array()).flatten();
    (
        all.map(|(field, schema)| (field.clone(), schema.clone())).collect(),
        required.filter_map(Value::as_str).map(str::to_owned).collect(),
    )
}

fn may_be_null(schema: &Value) -> bool {
    [&schema["type"], &schema["oneOf"]]
        .iter()
        .filter_map(|choices| choices.as_array())
        .flatten()
        .any(|choice| *choice == json!("null") || choice["type"] == "null")
}

#[test]
fn each_record_has_the_fields_of_its_type() {
    let document = description();
    let bare = records(false);
    for (name, full) in records(true) {
        let (described, required) = fields(&document, name);
        let names: BTreeSet<_> = full.as_object().unwrap().keys().cloned().collect();
        assert_eq!(described.keys().cloned().collect::<BTreeSet<_>>(), names, "{name}");
        let always = names.into_iter().filter(|field| !ABSENT.contains(&(name, field.as_str())));
        assert_eq!(required, always.collect(), "{name}");
        for (field, schema) in described {
            assert_eq!(may_be_null(&schema), bare[name][&field].is_null(), "{name}: {field}");
        }
        for record in [&full, &bare[name]] {
            assert_eq!(misfits(&document, &named(name), record), Vec::<String>::new(), "{name}: {record}");
        }
    }
}

#[test]
fn every_record_of_a_response_is_compared_with_its_type() {
    let document = description();
    let known = records(true);
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        // The tests of events have the others.
        let is_of_event = document["components"]["schemas"].get(format!("{name}Event")).is_some()
            || name.ends_with("Event")
            || name == "Trade";
        let is_record = schema.get("properties").or(schema.get("allOf")).is_some();
        assert!(!is_record || is_of_event || known.contains_key(name.as_str()), "{name}");
    }
}

#[test]
fn the_schemas_refuse_what_is_no_answer() {
    let document = description();
    let full = records(true);
    for (name, field, bad) in [
        ("PublicOrderLine", "price_usd", json!(12.5)),
        ("PublicOrderLine", "price_usd", json!("12.5")),
        ("PublicOrderLine", "listing_id", json!("x")),
        ("PublicOrder", "source", json!("gift")),
        ("PublicMe", "tier", json!("gold")),
        ("VariantPrices", "lowest_usd", json!(11.9)),
        ("PublicListing", "id8", json!("A1B2C3D4")),
    ] {
        let mut record = full[name].clone();
        record[field] = bad;
        assert!(!misfits(&document, &named(name), &record).is_empty(), "{name}: {record}");
    }
}
