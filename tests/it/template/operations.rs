//! Holds the operator's pages against the alarms, options and parameters that they name.

use std::collections::BTreeSet;

use tests::Template;
use tests::monitoring::{alarms, probe_alarms};

const GUIDE: &str = include_str!("../../../docs/operations.md");
const RUNBOOK: &str = include_str!("../../../docs/runbook.md");

#[test]
fn the_runbook_has_a_section_for_each_alarm() {
    let sections: BTreeSet<_> = RUNBOOK.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let alarms: Vec<_> = alarms().into_iter().chain(probe_alarms()).collect();
    assert_eq!(sections, alarms.iter().map(|alarm| alarm.name.as_str()).collect());
}

/// What is deployed is always a commit: there is one way to deploy, in a hurry as well.
#[test]
fn the_guide_deploys_by_the_one_command_with_options_and_parameters_that_exist() {
    assert!(!GUIDE.contains("cargo lambda deploy"));
    let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../infra/deploy")).unwrap();
    let command: String = folder.filter_map(|file| std::fs::read_to_string(file.unwrap().path()).ok()).collect();
    let lines: Vec<&str> = GUIDE.lines().map(str::trim).filter(|line| line.starts_with("infra/deploy/run")).collect();
    assert!(!lines.is_empty());
    for word in lines.iter().flat_map(|line| line.split(' ').skip(1)) {
        match word.split_once('=') {
            Some((name, value)) => {
                let parameter = Template::read().parameter(name);
                let allowed = parameter["AllowedValues"].as_array();
                assert!(parameter.is_object() && allowed.is_none_or(|all| all.contains(&value.into())), "{word}");
            }
            None => assert!(!word.starts_with("--") || command.contains(word), "{word}"),
        }
    }
}
