//! Compares the operator's guide with the alarms, graphs, metrics and functions that it names.

use std::collections::{BTreeMap, BTreeSet};

use platform::metrics::Metric;
use platform::resources::{OBJECT_KEEP, Table};
use tests::Template;
use tests::monitoring::{alarms, graphs, probe_alarms, rollback_alarms};
use webhooks::drain::{FULL_AT, IN_FLIGHT};
use webhooks::endpoint::MAX_ENDPOINTS;

const GUIDE: &str = include_str!("../../../docs/operations.md");

/// Words in italics that name no graph: how the guide explains its italics, and names from AWS's console.
const NO_GRAPHS: [&str; 3] = ["italics", "AWS Lambda", "Concurrent executions"];

fn section() -> &'static str {
    GUIDE.split("\n## ").find(|section| section.starts_with("Alarms\n")).unwrap()
}

#[test]
fn the_guide_explains_each_alarm_and_says_how_urgent_it_is() {
    let explained: BTreeSet<_> = section().lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let alarms: Vec<_> = alarms().into_iter().chain(probe_alarms()).collect();
    assert_eq!(explained, alarms.iter().map(|alarm| alarm.name.as_str()).collect());
    for name in explained {
        assert!(section().contains(&format!("[{name}](#{name})")), "{name} is not in the table");
    }
}

#[test]
fn the_guide_sends_nobody_to_a_graph_that_does_not_exist() {
    let titles: BTreeSet<_> = graphs().into_iter().map(|graph| graph.name).collect();
    let text = section().replace("**", "");
    for name in text.split('*').skip(1).step_by(2).filter(|name| !NO_GRAPHS.contains(name)) {
        assert!(titles.contains(name), "{name}");
    }
}

#[test]
fn the_guide_sends_nobody_to_a_log_group_that_does_not_exist() {
    let groups = Template::read().resources("AWS::Logs::LogGroup");
    let names = groups.values().map(|group| group["Properties"]["LogGroupName"].as_str().unwrap());
    let names: BTreeSet<String> = names.map(|name| name.replace("marketplace", "<stack>")).collect();
    let mentioned = GUIDE.split("`/aws/").skip(1).map(|rest| format!("/aws/{}", rest.split('`').next().unwrap()));
    assert_eq!(mentioned.collect::<BTreeSet<_>>(), names);
}

#[test]
fn the_guide_counts_the_metrics_that_cost_money() {
    let watched: usize = alarms().iter().map(|alarm| alarm.watched.len()).sum();
    assert!(GUIDE.contains(&format!("they look at {watched} metrics")), "{watched}");
    let published: usize = Metric::ALL.into_iter().map(|metric| Template::read().publishers(metric).len()).sum();
    assert!(GUIDE.contains(&format!("and at most {published}.")), "{published}");
}

#[test]
fn the_guide_explains_each_rollback_alarm_and_counts_what_they_cost() {
    let alarms = rollback_alarms();
    for alarm in &alarms {
        assert!(GUIDE.contains(&format!("| `marketplace-{}` |", alarm.name)), "{}", alarm.name);
    }
    let watched: usize = alarms.iter().map(|alarm| alarm.watched.len()).sum();
    assert!(GUIDE.contains(&format!("| the rollback alarms: they look at {watched} metrics |")), "{watched}");
}

/// What is deployed is always a commit: there is one way to deploy, in a hurry as well.
#[test]
fn the_guide_deploys_by_the_one_command_with_options_and_parameters_that_exist() {
    assert!(!GUIDE.contains("cargo lambda deploy"));
    let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../infra/deploy")).unwrap();
    let command: String = folder.filter_map(|file| std::fs::read_to_string(file.unwrap().path()).ok()).collect();
    let lines: Vec<&str> = GUIDE.lines().map(str::trim).filter(|line| line.starts_with("infra/deploy/run")).collect();
    assert!(lines.contains(&"infra/deploy/run --service-only --parameter Rollout=AllAtOnce"), "{lines:?}");
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

#[test]
fn to_restore_the_keys_the_guide_stops_and_starts_every_function_that_uses_them() {
    let lists = GUIDE.lines().filter_map(|line| line.strip_prefix("for function in ")?.strip_suffix("; do"));
    let lists: Vec<BTreeSet<_>> = lists.map(|list| list.split(' ').collect()).collect();
    let using = Template::read().functions_that(|function| function.uses(Table::Keys));
    assert_eq!(lists, [using.clone(), using]);
}

#[test]
fn each_limit_in_the_guide_has_a_basis_and_ours_are_those_of_the_code() {
    let section = GUIDE.split("\n## ").find(|section| section.starts_with("Limits\n")).unwrap();
    let rows = section.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        Some((cells.next()?, (cells.next()?, cells.next()?)))
    });
    let limits: BTreeMap<&str, (&str, &str)> = rows.skip(1).collect();
    for (what, (_, basis)) in &limits {
        assert!(["AWS", "computed", "measured", "computed and measured", "ours"].contains(basis), "{what}");
    }
    for (what, limit) in [
        ("endpoints of an account", MAX_ENDPOINTS.to_string()),
        ("attempts to slow receivers at a time", format!("{IN_FLIGHT} per endpoint")),
        ("first attempts that wait", format!("{},000 per endpoint, for a day", FULL_AT / 1_000)),
        ("bases", format!("kept for {} days", OBJECT_KEEP.as_secs() / (24 * 60 * 60))),
    ] {
        assert_eq!(limits[what].0, limit, "{what}");
    }
}
