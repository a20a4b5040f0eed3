//! The schemas of records agree with the types that serialise the responses, and with every example.

use std::collections::{BTreeMap, BTreeSet};

use api::error::{ApiError, FieldCode, FieldError};
use common::paging::Paging;
use common::records::{
    ListingChanges, PublicBalance, PublicItem, PublicItemDetail, PublicListing, PublicMarketplace, PublicMe,
    PublicOrder, PublicOrderLine, PublicVariant, VariantPrices,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{description, misfits, named, objects};

/// Returns a record from the example of a path's answer, read and written by the record's type. A full one is as the
/// example, a bare one has null wherever the type takes it.
fn record<T: Serialize + DeserializeOwned>(path: &str, pointer: &str, full: bool) -> Value {
    let document = description();
    let content = &document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"];
    let example = content["example"].pointer(pointer).unwrap();
    let mut record = json!(T::deserialize(example).unwrap());
    if !full {
        for name in record.as_object().unwrap().keys().cloned().collect::<Vec<_>>() {
            let value = record[&name].take();
            if T::deserialize(&record).is_err() {
                record[&name] = value;
            }
        }
    }
    record
}

/// Returns each record of the responses by the name of its schema. A full one has every field, a bare one only what is
/// never null.
fn records(full: bool) -> BTreeMap<&'static str, Value> {
    const CATALOG: &str = "/v1/public/catalog";
    const ITEM: &str = "/v1/public/items/{id}";
    const LISTINGS: &str = "/v1/public/listings";
    const CHANGES: &str = "/v1/public/listings/changes";
    const ORDERS: &str = "/v1/public/orders";
    let field = FieldError::new("page_size", FieldCode::OutOfRange, [("min", json!(1))]);
    let error = json!(ApiError::Invalid(vec![field.clone()]).envelope());
    let item = record::<PublicItem>(CATALOG, "/items/0", full);
    let listing = record::<PublicListing>(LISTINGS, "/items/0", full);
    let order = record::<PublicOrder>(ORDERS, "/items/0", full);
    let changes = record::<ListingChanges>(CHANGES, "", full);
    let change = json!({"position": 4_712, "listing": listing, "removed": changes["changes"][1]["removed"]});
    let paged = |record: &Value| json!(Paging { page: 1, page_size: 50 }.envelope(vec![record], 2_317));
    BTreeMap::from([
        ("PublicMe", record::<PublicMe>("/v1/public/me", "", full)),
        ("PagedPublicItem", paged(&item)),
        ("PublicItem", item),
        ("PublicItemDetail", record::<PublicItemDetail>(ITEM, "", full)),
        ("PublicVariant", record::<PublicVariant>(ITEM, "/variants/0", full)),
        ("VariantPrices", record::<VariantPrices>("/v1/public/prices/{variant_id}", "", full)),
        ("PublicMarketplace", record::<PublicMarketplace>("/v1/public/marketplaces", "/0", full)),
        ("PagedPublicListing", paged(&listing)),
        ("PublicListing", listing),
        ("ListingChange", change),
        ("ListingChanges", changes),
        ("PagedPublicOrder", paged(&order)),
        ("PublicOrder", order),
        ("PublicOrderLine", record::<PublicOrderLine>(ORDERS, "/items/0/items/0", full)),
        ("PublicBalance", record::<PublicBalance>("/v1/public/wallet/balance", "", full)),
        ("ErrorBody", error["error"].clone()),
        ("ErrorEnvelope", error),
        ("FieldError", json!(field)),
    ])
}

/// The fields that may be absent: of a variant unless the request includes them, of an error unless it is a 400, of a
/// change the one that the other stands for. All others are always sent. Those that may be null are not required all the same, as the specification has it.
const ABSENT: [(&str, &str); 4] =
    [("PublicVariant", "prices"), ("ErrorBody", "fields"), ("ListingChange", "listing"), ("ListingChange", "removed")];

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
        assert!(
            full.as_object().unwrap().values().all(|value| !value.is_null()),
            "the example of {name} lacks a value"
        );
        let names: BTreeSet<_> = full.as_object().unwrap().keys().cloned().collect();
        assert_eq!(described.keys().cloned().collect::<BTreeSet<_>>(), names, "{name}");
        let always = names.into_iter().filter(|field| !ABSENT.contains(&(name, field.as_str())));
        let always = always.inspect(|field| assert!(bare[name].get(field).is_some(), "{name}: {field}"));
        assert_eq!(required, always.filter(|field| !bare[name][field].is_null()).collect(), "{name}");
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

/// Returns each example in an object with the schema that it must fit. This is the object's `schema`, or the object
/// itself if it is a schema.
fn examples(object: &Map<String, Value>) -> Vec<(Value, &Value)> {
    let own = Value::Object(object.clone());
    let schema = object.get("schema").unwrap_or(&own);
    let one = object.get("example").filter(|_| object.contains_key("schema"));
    let all: Vec<&Value> = match object.get("examples") {
        Some(Value::Array(values)) => values.iter().collect(),
        Some(Value::Object(named)) => named.values().map(|example| &example["value"]).collect(),
        _ => Vec::new(),
    };
    one.into_iter().chain(all).map(|example| (schema.clone(), example)).collect()
}

#[test]
fn every_example_fits_its_schema() {
    let document = description();
    let mut checked = 0;
    objects(&document, "", &mut |at, object| {
        for (schema, example) in examples(object) {
            let misfits = misfits(&document, &schema, example);
            assert!(misfits.is_empty(), "{at}: {example}: {misfits:?}");
            checked += 1;
        }
    });
    assert!(checked > 150, "{checked}");
}
