//! Compares the smoke test for a real account (`infra/smoke`) with the API and the templates.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use api::routes::ROUTES;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

#[test]
fn the_smoke_test_times_every_function_of_the_api() {
    let timed = entries("starts.py", "PATHS = {");
    let functions: BTreeSet<&str> = ROUTES.iter().map(|route| route.function).collect();
    assert_eq!(timed.keys().map(String::as_str).collect::<BTreeSet<_>>(), functions);
    for route in ROUTES {
        let path = &timed[route.function];
        assert!(route.matches(path).is_some(), "{path}");
    }
}

#[test]
fn the_smoke_test_gives_parameters_that_the_templates_have() {
    let templates = read("template.yaml") + &read("infra/data/template.yaml");
    let given = entries("stack.py", "PARAMETERS = {");
    assert!(!given.is_empty());
    for name in given.keys() {
        assert!(templates.contains(&format!("\n  {name}:\n    Type: ")), "{name}");
    }
}

/// Returns the entries of a dictionary of texts in one of the test's programs.
fn entries(file: &str, first_line: &str) -> BTreeMap<String, String> {
    let text = read(&format!("infra/smoke/{file}"));
    let lines = text.lines().skip_while(|line| *line != first_line).skip(1).take_while(|line| *line != "}");
    let parts = lines.map(|line| line.split('"').collect::<Vec<_>>());
    parts.map(|parts| (parts[1].to_owned(), parts[3].to_owned())).collect()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(ROOT).join(path)).unwrap()
}
