//! Compares the tables of `docs/specification.md`, and what `README.md` has of them, with the lists in the code. A
//! member that is added here or there alone shows as a difference.

use std::collections::BTreeSet;

use api::routes::ROUTES;
use feed::Message;
use serde_json::{Value, json};
use tests::{NOON, uuid};
use types::event::EventKind;
use types::scope::{Scope, Tier};
use types::sort::Sort;

const SPECIFICATION: &str = include_str!("../../docs/specification.md");
const README: &str = include_str!("../../README.md");

/// Returns the cells of the first table below a rule.
fn table(rule: &str) -> Vec<Vec<&'static str>> {
    let (_, below) = SPECIFICATION.split_once(&format!("\n- **{rule}** ")).unwrap_or_else(|| panic!("no rule {rule}"));
    let rows = below.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    rows.skip(2).map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// Returns the texts between back-ticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Returns what the first column of a rule's table quotes, in the order of its rows.
fn names(rule: &str) -> Vec<&'static str> {
    table(rule).into_iter().flat_map(|cells| quoted(cells[0])).collect()
}

/// Returns the fields of a JSON object.
fn fields(object: &Value) -> BTreeSet<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn the_endpoints_are_those_of_the_routes() {
    let keyed = ROUTES.iter().filter_map(|route| Some((route.path, route.budget?.scope())));
    let keyed: Vec<_> = keyed.collect();
    let specified: Vec<_> = table("4.1.1").into_iter().map(|cells| (quoted(cells[0])[0], cells[1])).collect();
    assert_eq!(specified.iter().map(|(path, _)| *path).collect::<Vec<_>>(), names_of(&keyed));
    for ((path, scope), (_, cell)) in keyed.iter().zip(specified) {
        assert_eq!(quoted(cell), scope.iter().map(|scope| scope.as_str()).collect::<Vec<_>>(), "{path}");
    }
    let told = README.lines().filter_map(|line| line.strip_prefix("| `GET ")?.split('`').next());
    assert_eq!(told.collect::<Vec<_>>(), names_of(&keyed));
}

fn names_of(keyed: &[(&'static str, Option<Scope>)]) -> Vec<&'static str> {
    keyed.iter().map(|(path, _)| *path).collect()
}

#[test]
fn the_sorts_are_those_of_the_code() {
    let sorts = Sort::ALL.map(Sort::as_str);
    assert_eq!(names("4.9.2"), sorts);
    let parameters = table("4.2.1");
    let row = parameters.iter().find(|cells| cells[1] == "`sort`").unwrap();
    assert_eq!((quoted(row[3]), quoted(row[4])), (sorts.to_vec(), vec![Sort::DEFAULT.as_str()]));
}

#[test]
fn the_scopes_and_the_tiers_are_those_of_the_code() {
    assert_eq!(names("5.3.1"), Scope::ALL.map(Scope::as_str));
    let tiers = table("8.1.1").into_iter().map(|cells| {
        let limit: u32 = cells[1].replace(',', "").parse().unwrap();
        (quoted(cells[0])[0], limit, cells[2] == "Announced")
    });
    let expected = Tier::ALL.map(|tier| (tier.as_str(), tier.limit(), tier.is_coming_soon()));
    assert_eq!(tiers.collect::<Vec<_>>(), expected);
    assert!(README.contains(&format!("A free key has {}", Tier::Free.limit())));
}

#[test]
fn the_events_and_their_fields_are_those_of_the_code() {
    assert_eq!(names("6.1.1"), EventKind::ALL.map(EventKind::as_str));
    let rows = table("6.2.1");
    let typed: BTreeSet<_> = names("6.2.2").into_iter().collect();
    for kind in EventKind::ALL {
        let row = rows.iter().find(|cells| quoted(cells[0]).contains(&kind.as_str()));
        let row = row.unwrap_or_else(|| panic!("6.2.1 has no row of {kind}"));
        let sample = kind.sample_data();
        assert_eq!(quoted(row[1]).into_iter().collect::<BTreeSet<_>>(), fields(&sample), "{kind}");
        assert!(fields(&sample).is_subset(&typed), "6.2.2 lacks a field of {kind}");
    }
}

#[test]
fn the_records_have_the_fields_of_the_code() {
    let mut checked = 0;
    for message in tests::market(uuid(1).into()) {
        let parts = match feed::parse(&message.to_string(), NOON.parse().unwrap()).unwrap() {
            Message::Item(item, _) => vec![("2.1.1", json!(item.item)), ("2.2.2", json!(item.variants[0]))],
            Message::Marketplace(marketplace, _) => vec![("2.3.1", json!(marketplace))],
            Message::Listing(listing, _) => vec![("2.4.1", json!(listing))],
            Message::Order(_, order, _) => vec![("2.5.1", json!(order)), ("2.6.1", json!(order.items[0]))],
            Message::Balance(_, balance, _) => vec![("2.7.1", json!(balance))],
            _ => Vec::new(),
        };
        for (rule, record) in parts {
            assert_eq!(names(rule).into_iter().collect::<BTreeSet<_>>(), fields(&record), "{rule}");
            checked += 1;
        }
    }
    assert_eq!(checked, 7);
}
