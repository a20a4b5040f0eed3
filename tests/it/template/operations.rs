//! Compares the operator's guide with the alarms, graphs, metrics and functions that it names.

use std::collections::BTreeSet;

use platform::metrics::Metric;
use platform::resources::Table;
use tests::Template;
use tests::monitoring::{alarms, graphs};

const GUIDE: &str = include_str!("../../../docs/operations.md");

/// Words in italics that name no graph: how the guide explains its italics, and names from AWS's console.
const NO_GRAPHS: [&str; 3] = ["italics", "AWS Lambda", "Concurrent executions"];

fn section() -> &'static str {
    GUIDE.split("\n## ").find(|section| section.starts_with("Alarms\n")).unwrap()
}

#[test]
fn the_guide_explains_each_alarm_and_says_how_urgent_it_is() {
    let explained: BTreeSet<_> = section().lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let alarms = alarms();
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
fn the_guide_counts_the_metrics_that_cost_money() {
    let watched: usize = alarms().iter().map(|alarm| alarm.watched.len()).sum();
    assert!(GUIDE.contains(&format!("they look at {watched} metrics")), "{watched}");
    let published: usize = Metric::ALL.into_iter().map(|metric| Template::read().publishers(metric).len()).sum();
    assert!(GUIDE.contains(&format!("and at most {published}.")), "{published}");
}

#[test]
fn to_restore_the_keys_the_guide_stops_and_starts_every_function_that_uses_them() {
    let lists = GUIDE.lines().filter_map(|line| line.strip_prefix("for function in ")?.strip_suffix("; do"));
    let lists: Vec<BTreeSet<_>> = lists.map(|list| list.split(' ').collect()).collect();
    let using = Template::read().functions_that(|function| function.uses(Table::Keys));
    assert_eq!(lists, [using.clone(), using]);
}
