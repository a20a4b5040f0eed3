//! Compares the drawing and the table of the crates in `ARCHITECTURE.md` with the manifests.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use tests::metadata;

use super::document::{self, Uses};

/// Returns, for each package in a folder of the workspace, the packages of the workspace that it names as normal
/// dependencies.
fn manifests(folder: &str) -> Uses {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let own: BTreeSet<String> = packages.iter().map(|package| text(&package["name"])).collect();
    let folder = Path::new(metadata["workspace_root"].as_str().unwrap()).join(folder);
    let inside = packages.iter().filter(|package| Path::new(&text(&package["manifest_path"])).starts_with(&folder));
    let uses = |package: &Value| -> BTreeSet<String> {
        let all = package["dependencies"].as_array().unwrap().iter();
        let normal = all.filter(|dependency| dependency["kind"].is_null());
        normal.map(|dependency| text(&dependency["name"])).filter(|name| own.contains(name)).collect()
    };
    inside.map(|package| (text(&package["name"]), uses(package))).collect()
}

/// Asserts that `ARCHITECTURE.md` has every dependency and no other.
fn assert_same(written: &Uses, manifests: &Uses, place: &str) {
    let mut wrong = Vec::new();
    for (instruction, these, those) in [("add", manifests, written), ("remove", written, manifests)] {
        for (name, uses) in these {
            let extra = uses.iter().filter(|used| !those.get(name).is_some_and(|known| known.contains(*used)));
            wrong.extend(extra.map(|used| format!("{instruction} `{used}` in the {place} of `{name}`")));
        }
    }
    assert!(wrong.is_empty(), "ARCHITECTURE.md does not show what the manifests say:\n{}", wrong.join("\n"));
}

#[test]
fn the_drawing_has_an_arrow_for_each_dependency_between_shared_crates() {
    assert_same(&document::drawing(), &manifests("shared"), "line");
}

#[test]
fn the_table_lists_the_shared_crates_that_each_function_uses() {
    let rows = document::functions().into_iter();
    let written: Uses = rows.map(|(name, row)| (name, row.uses)).collect();
    let functions = manifests("functions");
    assert_eq!(written.keys().collect::<Vec<_>>(), functions.keys().collect::<Vec<_>>(), "one row for each function");
    assert_same(&written, &functions, "row");
}

#[test]
fn shared_crates_and_functions_use_nothing_but_shared_crates() {
    let shared = manifests("shared");
    for (name, uses) in shared.iter().chain(&manifests("functions")) {
        for used in uses {
            assert!(shared.contains_key(used), "{name} must not depend on {used}, which is not in shared/");
        }
    }
}
