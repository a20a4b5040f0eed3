//! Compares the operator's guide with the alarms that it explains.

use std::collections::BTreeSet;

use tests::monitoring::alarms;

const GUIDE: &str = include_str!("../../../docs/operations.md");

#[test]
fn the_guide_explains_each_alarm() {
    let section = GUIDE.split("\n## ").find(|section| section.starts_with("Alarms\n")).unwrap();
    let explained: BTreeSet<_> = section.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let alarms = alarms();
    assert_eq!(explained, alarms.iter().map(|alarm| alarm.name.as_str()).collect());
    let watched: usize = alarms.iter().map(|alarm| alarm.watched.len()).sum();
    assert!(GUIDE.contains(&format!("they look at {watched} metrics")), "{watched}");
}
