//! What cargo says about the workspace.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

/// The platform that the functions are deployed to. With it, the packages are the same on every machine.
const DEPLOYED: &str = "aarch64-unknown-linux-gnu";

/// Returns the workspace's own packages, as `cargo metadata` describes them.
pub fn metadata() -> Value {
    serde_json::from_str(&cargo(&["metadata", "--no-deps", "--format-version", "1"])).unwrap()
}

/// Returns the packages that a package is built from if it is built alone, itself included. Each is its name and its
/// version, such as `zstd v0.13.3`.
pub fn packages_of(name: &str) -> BTreeSet<String> {
    let tree = cargo(&["tree", "--edges", "normal", "--prefix", "none", "--target", DEPLOYED, "--package", name]);
    tree.lines().map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect()
}

/// Runs cargo, which may neither use the network nor change `Cargo.lock`.
fn cargo(arguments: &[&str]) -> String {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
    let mut cargo = Command::new(env!("CARGO"));
    let output = cargo.args(arguments).args(["--locked", "--offline", "--manifest-path", manifest]).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {arguments:?} (does `cargo fetch --locked` help?): {error}");
    String::from_utf8(output.stdout).unwrap()
}
