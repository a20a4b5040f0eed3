//! Keeps the files of a crate free of cycles: no file may depend, directly or through others, on a file that depends
//! on it. So each can be read and tested after those that it is made of.
//!
//! A file depends on the file that defines what it imports or names. A `pub use` only passes on, so a parent that
//! re-exports its children depends on none of them, and who imports from the parent depends on the child. Methods are
//! not followed, and tests are left out.

mod code;
mod examples;
mod graph;
mod resolve;
mod source;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use tests::metadata;

use graph::cycle;
use source::Crate;

/// Returns the root files of the workspace's libraries and programs.
fn roots() -> Vec<PathBuf> {
    let metadata = metadata();
    let workspace = Path::new(metadata["workspace_root"].as_str().unwrap());
    let folders = ["shared", "functions", "infra"].map(|folder| workspace.join(folder));
    let mut roots = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        for target in package["targets"].as_array().unwrap() {
            let path = PathBuf::from(target["src_path"].as_str().unwrap());
            let is_built = target["kind"] == json!(["lib"]) || target["kind"] == json!(["bin"]);
            if is_built && folders.iter().any(|folder| path.starts_with(folder)) {
                roots.push(path);
            }
        }
    }
    roots
}

#[test]
fn no_files_depend_on_each_other_in_a_cycle() {
    let mut cycles = Vec::new();
    for root in roots() {
        let (folder, name) = (root.parent().unwrap(), root.file_name().unwrap().to_str().unwrap());
        let graph = Crate::read(name, |file| fs::read_to_string(folder.join(file)).ok()).graph();
        cycles.extend(cycle(&graph).map(|cycle| format!("{}: {cycle}", folder.display())));
    }
    assert!(cycles.is_empty(), "{}", cycles.join("\n"));
}
