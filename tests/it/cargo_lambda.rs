//! Compares what `cargo lambda` reads in the workspace's manifest with the functions and the gateway's routes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use api::routes::{DEFAULT, ROUTES};
use tests::metadata;

#[test]
fn a_build_makes_every_function_and_nothing_else() {
    let metadata = metadata();
    let folder = Path::new(metadata["workspace_root"].as_str().unwrap()).join("functions");
    let functions: BTreeSet<&str> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|package| Path::new(package["manifest_path"].as_str().unwrap()).starts_with(&folder))
        .map(|package| package["name"].as_str().unwrap())
        .collect();
    let built = metadata["metadata"]["lambda"]["build"]["packages"].as_array().unwrap();
    assert_eq!(built.iter().map(|name| name.as_str().unwrap()).collect::<BTreeSet<_>>(), functions);
}

#[test]
fn watch_routes_as_the_gateway_does() {
    let router = metadata()["metadata"]["lambda"]["watch"]["router"].take();
    let router: BTreeMap<String, String> = serde_json::from_value(router).unwrap();
    let own = ROUTES.iter().filter(|route| route.function != DEFAULT).map(|route| (route.path, route.function));
    let expected = own.chain([("/", DEFAULT), ("/{*rest}", DEFAULT)]);
    assert_eq!(router, expected.map(|(path, function)| (path.to_owned(), function.to_owned())).collect());
}

/// A package that release builds leave unoptimised, to save time, must be optimised in what is deployed.
#[test]
fn what_is_deployed_is_optimised_as_a_whole() {
    let metadata = metadata();
    let settings = &metadata["metadata"]["lambda"]["build"]["config"];
    let settings: BTreeSet<&str> = settings.as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    let manifest = Path::new(metadata["workspace_root"].as_str().unwrap()).join("Cargo.toml");
    let manifest = std::fs::read_to_string(manifest).unwrap();
    let profiles = manifest.split("\n[").filter_map(|table| table.split_once("]\n"));
    let unoptimised = profiles.filter(|(_, body)| body.contains("opt-level")).filter_map(|(name, _)| {
        let package = name.strip_prefix("profile.release.package.")?;
        Some(format!("profile.release.package.{package}.opt-level=3"))
    });
    let whole = [r#"profile.release.lto="fat""#, "profile.release.codegen-units=1"].map(str::to_owned);
    let expected: BTreeSet<String> = unoptimised.chain(whole).collect();
    assert_eq!(settings, expected.iter().map(String::as_str).collect());
}
