//! Compares `docs/specification.md` with the code. The tests that the document names exist, its rules are numbered in
//! sequence, and every rule that the code cites is one of them.

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

/// Returns the file and the name of each test that a paragraph "Tests:" names. A file stands before its tests.
fn named_tests() -> Vec<(&'static str, &'static str)> {
    let mut named = Vec::new();
    for paragraph in SPECIFICATION.split("\n\n").filter(|paragraph| paragraph.starts_with("Tests:")) {
        let mut file = "";
        for quoted in paragraph.split('`').skip(1).step_by(2) {
            if quoted.contains('/') {
                file = quoted;
            } else {
                named.push((file, quoted));
            }
        }
    }
    named
}

/// Whether a file has a function of this name. Property tests are functions inside a macro, so this searches the text.
fn has_function(text: &str, name: &str) -> bool {
    text.contains(&format!("fn {name}("))
}

/// Returns the numbers of sections, subsections and rules, in page order.
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

fn shown(number: &[u32]) -> String {
    number.iter().map(u32::to_string).collect::<Vec<_>>().join(".")
}

/// Whether a number may follow another one: it begins the level below, or it is the next of its own level.
fn follows(number: &[u32], before: &[u32]) -> bool {
    let Some((last, parents)) = number.split_last() else { return false };
    before.starts_with(parents) && *last == before.get(parents.len()).map_or(1, |passed| passed + 1)
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
fn every_test_that_the_specification_names_exists() {
    let (sources, named) = (sources(), named_tests());
    assert!(!named.is_empty(), "docs/specification.md has no paragraph that begins with `Tests:`");
    let mut wrong = Vec::new();
    for (file, test) in named {
        if sources.get(file).is_some_and(|text| has_function(text, test)) {
            continue;
        }
        let homes: Vec<_> = sources.iter().filter(|(_, text)| has_function(text, test)).map(|(name, _)| name).collect();
        wrong.push(if homes.is_empty() {
            format!("`{file}` (`{test}`): no function has this name; write what the test is called now")
        } else {
            format!("`{file}` (`{test}`): the function is in {homes:?}; name that file before it")
        });
    }
    assert!(wrong.is_empty(), "correct the tests that docs/specification.md names:\n{}", wrong.join("\n"));
}

#[test]
fn rules_are_numbered_in_sequence() {
    let numbers = numbers();
    assert!(numbers.iter().any(|number| number.len() == 3), "docs/specification.md has no rules");
    let mut before: &[u32] = &[];
    let mut wrong = Vec::new();
    for number in &numbers {
        if !follows(number, before) {
            wrong.push(format!("{} stands after {}", shown(number), shown(before)));
        }
        before = number;
    }
    assert!(wrong.is_empty(), "number the rules of docs/specification.md in sequence:\n{}", wrong.join("\n"));
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
