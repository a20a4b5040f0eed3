//! The guide agrees with the code.

use types::paging::Paging;
use types::scope::{Scope, Tier};

use super::super::guide::markdown;
use super::document;

#[test]
fn every_scope_tier_and_field_code_has_its_row() {
    let text = markdown();
    for scope in Scope::ALL {
        assert!(text.contains(&format!("\n| `{scope}` | ")), "{scope}");
    }
    for tier in Tier::ALL {
        let availability = if tier.is_coming_soon() { "coming soon" } else { "available" };
        let row = format!("\n| `{}` | {} | {availability} |", tier.as_str(), tier.limit());
        assert!(text.contains(&row), "{row}");
    }
    for code in document()["components"]["schemas"]["FieldCode"]["enum"].as_array().unwrap() {
        assert!(text.contains(&format!("\n| `{}` | ", code.as_str().unwrap())), "{code}");
    }
}

#[test]
fn the_bounds_of_a_page_are_told() {
    let text = markdown();
    assert!(text.contains(&format!("1 to {}, and {} unless", Paging::MAX_SIZE, Paging::DEFAULT_SIZE)));
}

#[test]
fn each_section_has_its_heading() {
    let text = markdown();
    let headings: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let expected = ["Authentication", "Rate limits", "Paging", "Requests and responses", "Errors", "Webhooks"];
    assert_eq!(headings, expected);
}
