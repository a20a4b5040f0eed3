//! The files in `tests/golden`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// If this variable is set, golden files are written instead of compared.
const UPDATE_VARIABLE: &str = "UPDATE_GOLDEN";

/// Returns whether golden files are written instead of compared.
pub(super) fn is_updating() -> bool {
    std::env::var_os(UPDATE_VARIABLE).is_some()
}

/// Reads a golden file.
pub(super) fn read(name: &str) -> Value {
    let text = fs::read_to_string(path(name));
    let text = text.unwrap_or_else(|error| panic!("tests/golden/{name}.json: {error}; {UPDATE_VARIABLE}=1 writes it"));
    serde_json::from_str(&text).unwrap()
}

/// Compares what was written with a golden file. Returns what to do if they differ. `layout_in` is the file in which
/// the format's layout stands.
pub(super) fn difference(name: &str, layout_in: &str, found: &Value) -> Option<String> {
    if is_updating() {
        fs::write(path(name), format!("{found:#}\n")).unwrap();
        return None;
    }
    let expected = read(name);
    (expected != *found).then(|| {
        format!(
            "The stored form of {name} changed. If that is meant, it is a new layout: its number stands in {layout_in}, \
             and CONTRIBUTING, Changing stored data, says how it comes.\n\
             found: {found:#}\nexpected: {expected:#}"
        )
    })
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(format!("{name}.json"))
}
