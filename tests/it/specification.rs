//! Looks for the rules that comments cite: each must be in `docs/specification.md`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const SPECIFICATION: &str = include_str!("../../docs/specification.md");
const FOLDERS: [&str; 5] = ["docs", "functions", "infra", "shared", "tests"];
const COMMENT_MARKS: [&str; 3] = ["//", "///", "//!"];
const PUNCTUATION: [char; 5] = ['.', ',', ':', ';', ')'];

/// Returns the project's Rust files by their path from its root.
fn sources() -> BTreeMap<String, String> {
    let mut sources = BTreeMap::new();
    let mut folders: Vec<PathBuf> = FOLDERS.iter().map(|folder| Path::new(ROOT).join(folder)).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let name = path.strip_prefix(ROOT).unwrap().to_str().unwrap().to_owned();
                sources.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    sources
}

/// Returns the numbers of sections, subsections and rules.
fn numbers() -> Vec<Vec<u32>> {
    let number = |line: &str| {
        let heading =
            line.strip_prefix("## ").or_else(|| line.strip_prefix("### ")).and_then(|rest| rest.split(' ').next());
        let rule = || line.strip_prefix("- **").and_then(|rest| rest.split("**").next());
        parse(heading.or_else(rule)?)
    };
    SPECIFICATION.lines().filter_map(number).collect()
}

fn parse(number: &str) -> Option<Vec<u32>> {
    number.trim_end_matches('.').split('.').map(|part| part.parse().ok()).collect()
}

/// Returns the numbers that a text cites: those after the word "specification", joined by "and" or "to".
fn cited(text: &str) -> Vec<&str> {
    let words: Vec<&str> = text.split_whitespace().filter(|word| !COMMENT_MARKS.contains(word)).collect();
    let mut cited = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let is_citation = word.trim_start_matches('(') == "specification";
        let mut rest: &[&str] = if is_citation { &words[at + 1..] } else { &[] };
        while let [word, following @ ..] = rest {
            let number = word.trim_end_matches(PUNCTUATION);
            if !number.starts_with(|c: char| c.is_ascii_digit()) {
                break;
            }
            cited.push(number);
            rest = match following {
                ["and" | "to", more @ ..] if number == *word => more,
                _ => &[],
            };
        }
    }
    cited
}

#[test]
fn every_rule_that_is_cited_exists() {
    let (sources, numbers) = (sources(), numbers());
    let cited: Vec<_> =
        sources.iter().flat_map(|(file, text)| cited(text).into_iter().map(move |number| (file, number))).collect();
    assert!(!cited.is_empty(), "no file cites the specification");
    let exists = |number: &str| parse(number).is_some_and(|number| numbers.contains(&number));
    let gone = cited.into_iter().filter(|(_, number)| !exists(number));
    let gone: Vec<_> = gone.map(|(file, number)| format!("{file} cites {number}")).collect();
    assert!(gone.is_empty(), "docs/specification.md has no such rule; cite its present number:\n{}", gone.join("\n"));
}
