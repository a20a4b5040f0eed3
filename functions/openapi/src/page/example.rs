//! Formats example bodies with their fields in the order of the schema, as the service sends them. A JSON value alone
//! would list them alphabetically.

use serde_json::{Map, Value};
use utoipa::openapi::schema::ArrayItems;
use utoipa::openapi::{Components, RefOr, Schema};

use super::kind;

/// Returns the value as indented JSON.
pub(super) fn pretty(components: &Components, schema: Option<&RefOr<Schema>>, value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, components, schema, value, 0);
    text
}

fn write(text: &mut String, components: &Components, schema: Option<&RefOr<Schema>>, value: &Value, depth: usize) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let known = schema.map(|schema| properties(components, schema)).unwrap_or_default();
            let ordered = ordered(fields, &known);
            enclose(text, ['{', '}'], depth, ordered, |text, (name, schema, value)| {
                text.push_str(&Value::from(name).to_string());
                text.push_str(": ");
                write(text, components, schema, value, depth + 1);
            });
        }
        Value::Array(values) if !values.is_empty() => {
            let items = schema.and_then(items);
            enclose(text, ['[', ']'], depth, values, |text, value| write(text, components, items, value, depth + 1));
        }
        plain => text.push_str(&plain.to_string()),
    }
}

fn enclose<T>(
    text: &mut String,
    [open, close]: [char; 2],
    depth: usize,
    entries: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut String, T),
) {
    text.push(open);
    for (at, entry) in entries.into_iter().enumerate() {
        text.push_str(if at == 0 { "\n" } else { ",\n" });
        text.push_str(&"  ".repeat(depth + 1));
        write(text, entry);
    }
    text.push('\n');
    text.push_str(&"  ".repeat(depth));
    text.push(close);
}

type Property<'a> = (&'a str, &'a RefOr<Schema>);

/// Orders an object's fields: those of the schema first, in its order, then the others.
fn ordered<'a>(
    fields: &'a Map<String, Value>,
    known: &[Property<'a>],
) -> Vec<(&'a str, Option<&'a RefOr<Schema>>, &'a Value)> {
    let first = known.iter().filter_map(|(name, schema)| Some((*name, Some(*schema), fields.get(*name)?)));
    let is_known = |name: &str| known.iter().any(|(known, _)| *known == name);
    let rest = fields.iter().filter(|(name, _)| !is_known(name)).map(|(name, value)| (name.as_str(), None, value));
    first.chain(rest).collect()
}

fn properties<'a>(components: &'a Components, schema: &'a RefOr<Schema>) -> Vec<Property<'a>> {
    match schema {
        RefOr::Ref(reference) => {
            let named = components.schemas.get(kind::named(reference));
            named.map(|schema| properties(components, schema)).unwrap_or_default()
        }
        RefOr::T(Schema::Object(object)) => object.properties.iter().map(|(name, of)| (name.as_str(), of)).collect(),
        RefOr::T(Schema::AllOf(all)) => all.items.iter().flat_map(|part| properties(components, part)).collect(),
        RefOr::T(Schema::OneOf(choice)) => choice.items.iter().flat_map(|one| properties(components, one)).collect(),
        RefOr::T(_) => Vec::new(),
    }
}

fn items(schema: &RefOr<Schema>) -> Option<&RefOr<Schema>> {
    let RefOr::T(Schema::Array(array)) = schema else { return None };
    match &array.items {
        ArrayItems::RefOrSchema(items) => Some(items),
        ArrayItems::False => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::document;

    #[test]
    fn fields_are_in_the_order_of_the_schema() {
        let components = document::openapi().components.unwrap();
        let schema = components.schemas.get("PublicItemDetail");
        let item = json!({"variants": [], "kind": "skin", "id": "a", "extra": {"b": [1, "\""]}});
        let expected = r#"{
  "id": "a",
  "kind": "skin",
  "variants": [],
  "extra": {
    "b": [
      1,
      "\""
    ]
  }
}"#;
        assert_eq!(pretty(&components, schema, &item), expected);
    }

    #[test]
    fn the_fields_of_what_may_be_null_are_in_order_as_well() {
        let components = document::openapi().components.unwrap();
        let schema = components.schemas.get("PublicVariant");
        let variant = json!({"prices": {"lowest_usd": "1.00", "sample_size": 1}});
        let expected = r#"{
  "prices": {
    "sample_size": 1,
    "lowest_usd": "1.00"
  }
}"#;
        assert_eq!(pretty(&components, schema, &variant), expected);
    }
}
