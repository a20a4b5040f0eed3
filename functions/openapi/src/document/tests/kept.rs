//! The current description is kept in the repository, so a review sees each change of it.

use std::{env, fs};

use serde_json::Value;

const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/api/openapi.json");

#[test]
fn the_kept_description_is_the_current_one() {
    let current = super::super::openapi().to_pretty_json().unwrap() + "\n";
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(KEPT, &current).unwrap();
    }
    let kept = fs::read_to_string(KEPT).unwrap_or_default();
    // As values, because features of other crates may change the order in which JSON is written.
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    assert!(read(&kept) == read(&current), "write docs/api/openapi.json anew with UPDATE_GOLDEN=1");
}
