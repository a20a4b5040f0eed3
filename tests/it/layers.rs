//! Keeps the layers apart. The compiler does most of it: a crate can use only what its manifest names. These tests keep
//! heavy packages out of functions that do not need them, because Lambda loads the whole binary before a function can start.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use common::resources::{BASE_BUCKET_VARIABLE, MAX_KEYS_VARIABLE, Queue, Table};
use serde_json::Value;
use tests::{Template, features, metadata, packages_of};

/// Crates, and the crates of the workspace that each of them names in its manifest.
type Uses = BTreeMap<String, BTreeSet<String>>;

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

#[test]
fn shared_crates_and_functions_use_nothing_but_shared_crates() {
    let shared = manifests("shared");
    for (name, uses) in shared.iter().chain(&manifests("functions")) {
        for used in uses {
            assert!(shared.contains_key(used), "{name} must not depend on {used}, which is not in shared/");
        }
    }
}

/// Packages that a function is built from only if its environment has a variable. Without a variable, none may be.
const NEEDED_WITH: &[(&[&str], Option<&str>)] = &[
    (&["aws-sdk-s3", "replica", "zstd", "zstd-sys"], Some(BASE_BUCKET_VARIABLE)),
    (&["aws-sdk-secretsmanager", "webhooks"], Some(Table::Webhooks.variable())),
    (&["feed"], Some(Queue::Feed.variable())),
    (&["admin"], Some(MAX_KEYS_VARIABLE)),
    // What only the build of the docs page needs.
    (&["maud", "pulldown-cmark", "yaml_serde"], None),
    // What only operators need.
    (&["aws-config"], None),
];

fn contains(packages: &BTreeSet<String>, name: &str) -> bool {
    packages.iter().any(|package| package.split(' ').next() == Some(name))
}

/// Returns the packages that release builds optimise less than others, to save time.
fn unoptimised() -> Vec<String> {
    let manifest = fs::read_to_string(Path::new(ROOT).join("Cargo.toml")).unwrap();
    let tables = manifest.split("\n[").filter_map(|table| table.split_once("]\n"));
    let unoptimised = tables.filter(|(_, settings)| settings.contains("opt-level"));
    unoptimised.filter_map(|(name, _)| name.strip_prefix("profile.release.package.").map(str::to_owned)).collect()
}

#[test]
fn no_function_is_built_from_what_it_does_not_need_or_what_is_not_optimised() {
    let (mut wrong, unoptimised) = (Vec::new(), unoptimised());
    assert!(!unoptimised.is_empty());
    for function in manifests("functions").into_keys() {
        let packages = packages_of(&function);
        let plain = unoptimised.iter().filter(|name| contains(&packages, name));
        wrong.extend(plain.map(|name| format!("{function} has {name}, which Cargo.toml leaves unoptimised")));
        let has = |variable: Option<&str>| variable.is_some_and(|it| Template::read().functions[&function].has(it));
        let denied = NEEDED_WITH.iter().filter(|(_, variable)| !has(*variable));
        let found = denied.flat_map(|(names, _)| names.iter()).filter(|name| contains(&packages, name));
        wrong.extend(found.map(|found| {
            format!("{function} has {found}; `cargo tree -e normal -p {function} -i {found}` shows through what")
        }));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Otherwise everything above the package would be compiled twice by whoever runs the tests, which start the binaries.
#[test]
fn tests_give_no_package_other_features_than_binaries() {
    let (binaries, tests) = (features("normal,build"), features("normal,build,dev"));
    for (package, enabled) in &binaries {
        assert!(enabled.is_subset(&tests[package]), "{package}: {enabled:?}, in tests {:?}", tests[package]);
    }
}

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const FOLDERS: [&str; 5] = ["shared/", "functions/", "infra/", "tests/", "docs/"];

/// The documents, and the other files whose comments name paths.
fn files() -> Vec<PathBuf> {
    let root = Path::new(ROOT);
    let named = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "Cargo.toml",
        "template.yaml",
        "infra/data/template.yaml",
    ];
    let docs = root.join("docs");
    let guides = entries(&docs).filter(|path| path.extension().is_some_and(|end| end == "md"));
    named.into_iter().map(|name| root.join(name)).chain(guides).collect()
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path())
}

/// Whether a path exists. In place of a folder it may have a `*`, which stands for any.
fn exists(folder: &Path, path: &str) -> bool {
    match path.split_once("*/") {
        None => folder.join(path.trim_end_matches('*')).exists(),
        Some((before, after)) => entries(&folder.join(before)).any(|inner| exists(&inner, after)),
    }
}

#[test]
fn every_path_that_a_document_names_exists() {
    let mut missing = Vec::new();
    for file in files() {
        let text = fs::read_to_string(&file).unwrap();
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "_./*-".contains(c)));
        let paths = words.map(|word| word.trim_end_matches('.'));
        let paths = paths.filter(|word| FOLDERS.iter().any(|folder| word.starts_with(folder)));
        let gone = paths.filter(|path| !exists(Path::new(ROOT), path));
        missing.extend(gone.map(|path| format!("{path}, named by {}", file.display())));
    }
    assert!(missing.is_empty(), "no such path:\n{}", missing.join("\n"));
}
