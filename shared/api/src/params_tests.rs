use proptest::prelude::*;

use super::*;
use crate::error::FieldCode::{Duplicate, Malformed, NotAllowed, OutOfRange, Unknown};
use common::paging::{Paging, Sort};

#[derive(Clone, Debug, PartialEq)]
struct Everything {
    id: Option<VariantId>,
    q: Option<String>,
    min: Option<Usd>,
    sort: Option<Sort>,
    paging: Paging,
}

impl Input for Everything {
    const QUERY: &'static [&'static str] = &["q", "min_price", "sort", "page", "page_size"];

    fn read(params: &mut Params<'_>) -> Option<Self> {
        let id = params.path("id", variant_id);
        let q = params.query("q", |v| Ok(v.to_owned()));
        let min = params.query("min_price", usd);
        let sort = params.query("sort", one_of);
        let paging = crate::paging(params);
        Some(Self { id, q, min, sort, paging })
    }
}

fn bad(id: &str, query: &str) -> Vec<(String, FieldCode)> {
    let path = [("id".to_owned(), id.to_owned())];
    let problems = parse::<Everything>(&path, query).err().unwrap_or_default();
    problems.into_iter().map(|p| (p.field, p.code)).collect()
}

const ID: &str = "6f9619ff-8b86-d011-b42d-00c04fc964ff";

fn named(expected: &[(&str, FieldCode)]) -> Vec<(String, FieldCode)> {
    expected.iter().map(|(field, code)| ((*field).to_owned(), *code)).collect()
}

#[test]
fn every_bad_parameter_is_named_in_order() {
    assert_eq!(
        bad("x", "sort=up&page=0&limit=3&min_price=1e3&page_size=101&q=%ff"),
        named(&[
            ("id", Malformed),
            ("sort", NotAllowed),
            ("page", OutOfRange),
            ("limit", Unknown),
            ("min_price", Malformed),
            ("page_size", OutOfRange),
            ("q", Malformed),
        ])
    );
}

#[test]
fn a_repeated_name_is_one_entry_and_no_other() {
    assert_eq!(bad(ID, "page=x&q=a&page=1"), named(&[("page", Duplicate)]));
    assert_eq!(bad(ID, "zzz=1&zzz=2"), named(&[("zzz", Duplicate)]));
    assert_eq!(bad(ID, "p%61ge=1&page=1"), named(&[("page", Duplicate)]));
}

#[test]
fn a_near_miss_gets_a_suggestion() {
    let near =
        |query: &str| parse::<Everything>(&[("id".to_owned(), ID.to_owned())], query).unwrap_err()[0].params.clone();
    assert_eq!(near("pagesize=1").get("suggestion"), Some(&json!("page_size")));
    assert_eq!(near("Sort=newest").get("suggestion"), Some(&json!("sort")));
    assert!(near("utm_source=x").is_empty());
}

#[test]
fn empty_values_are_malformed_except_of_q() {
    assert_eq!(bad(ID, "q=&q2"), named(&[("q2", Unknown)]));
    assert_eq!(
        bad(ID, "sort=&page=&min_price"),
        named(&[("sort", Malformed), ("page", Malformed), ("min_price", Malformed)])
    );
    assert!(bad(ID, "&&q&").is_empty());
}

#[test]
fn half_an_escape_is_malformed() {
    for query in ["q=%", "q=%4", "q=%zz", "q=100%25%"] {
        assert_eq!(bad(ID, query), named(&[("q", Malformed)]), "{query}");
    }
}

proptest! {
    #[test]
    fn no_query_panics_and_every_problem_names_something_sent(query in "[a-z_%=&+.0-9é-]{0,60}") {
        let names: Vec<String> = pairs(&query).into_iter().map(|(name, _)| name).collect();
        for (field, _) in bad(ID, &query) {
            prop_assert!(names.contains(&field));
        }
    }

    #[test]
    fn any_text_survives_encoding(text in "\\PC{0,30}") {
        let encoded = percent_encoding::utf8_percent_encode(&text, percent_encoding::NON_ALPHANUMERIC).to_string();
        let read = parse::<Everything>(&[("id".to_owned(), ID.to_owned())], &format!("q={encoded}")).unwrap();
        prop_assert_eq!(read.q.unwrap(), text);
    }

    #[test]
    fn integers_agree_with_arithmetic(n in any::<i128>(), max in 1i64..1000) {
        let read = integer(&n.to_string(), 1, Some(max));
        prop_assert_eq!(read.is_ok(), n >= 1 && n <= i128::from(max));
    }
}
