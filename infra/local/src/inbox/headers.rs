//! The headers of a delivery as the inbox shows them.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderValue};

/// Header values by lower-case name; those of a repeated header are joined by commas.
pub(super) type Headers = BTreeMap<String, String>;

/// Joins the values of repeated headers.
pub(super) fn joined(map: &HeaderMap) -> Headers {
    let joined = |name| {
        let values = map.get_all(name).iter().map(HeaderValue::as_bytes).map(String::from_utf8_lossy);
        values.collect::<Vec<_>>().join(", ")
    };
    map.keys().map(|name| (name.to_string(), joined(name))).collect()
}
