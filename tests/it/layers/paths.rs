//! Looks for the paths that documents and manifests name: each must exist.

use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const FOLDERS: [&str; 5] = ["shared/", "functions/", "infra/", "tests/", "docs/"];

/// The documents, and the other files whose comments name paths.
fn files() -> Vec<PathBuf> {
    let root = Path::new(ROOT);
    let named =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "Cargo.toml", "template.yaml", "infra/data/template.yaml"];
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
