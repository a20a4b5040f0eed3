//! The kinds of values, in words.

use utoipa::openapi::schema::ArrayItems;
use utoipa::openapi::{Object, RefOr, Schema};

use super::super::kind::{named, number, plain, types};
use super::table::code;

/// Returns the kind of value that a schema accepts.
pub(super) fn words(schema: &RefOr<Schema>) -> String {
    match schema {
        RefOr::Ref(reference) => named(reference).to_owned(),
        RefOr::T(Schema::Array(array)) => match &array.items {
            ArrayItems::RefOrSchema(items) => format!("array of {}", words(items)),
            ArrayItems::False => "array".to_owned(),
        },
        RefOr::T(Schema::Object(object)) => plain_kind(object),
        RefOr::T(Schema::OneOf(choice)) => choice.items.iter().map(words).collect::<Vec<_>>().join(" or "),
        RefOr::T(_) => "object".to_owned(),
    }
}

fn plain_kind(object: &Object) -> String {
    let format = object.format.as_ref().and_then(|format| serde_json::to_value(format).ok());
    let format = format.map(|format| format!(" ({})", plain(&format)));
    let bounds = match (&object.minimum, &object.maximum) {
        (Some(low), Some(high)) => Some(format!(", {} to {}", number(low), number(high))),
        (Some(low), None) => Some(format!(", {} or more", number(low))),
        (None, _) => None,
    };
    let values: Vec<String> = object.enum_values.iter().flatten().map(|value| code(&plain(value))).collect();
    let values = (!values.is_empty()).then(|| format!(": {}", values.join(", ")));
    let default = object.default.as_ref().map(|default| format!(", default {}", code(&plain(default))));
    let pattern = object.pattern.as_ref().map(|pattern| format!(", {}", code(pattern)));
    let parts = [Some(types(&object.schema_type)), format, bounds, values, default, pattern];
    parts.into_iter().flatten().collect()
}
