//! Which crates of the workspace a crate may use.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;
use tests::metadata;

/// Crates, and the crates of the workspace that each of them names in its manifest.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Returns, for each package in a folder of the workspace, the packages of the workspace that it names as normal
/// dependencies.
pub(super) fn manifests(folder: &str) -> Uses {
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

#[test]
fn shared_crates_and_functions_use_nothing_but_shared_crates() {
    let shared = manifests("shared");
    for (name, uses) in shared.iter().chain(&manifests("functions")) {
        for used in uses {
            assert!(shared.contains_key(used), "{name} must not depend on {used}, which is not in shared/");
        }
    }
}
