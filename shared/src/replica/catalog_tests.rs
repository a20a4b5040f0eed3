use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn built(items: &[PublicItem]) -> Catalog {
    Catalog::build(vec![crate::market::Columns::of(items)])
}

fn item(id: u8, name: Option<&str>, kind: &str) -> PublicItem {
    PublicItem {
        id: format!("item-{id}").parse().unwrap(),
        kind: kind.parse().unwrap(),
        name: name.map(|name| name.parse().unwrap()),
        slug: None,
        image: None,
    }
}

fn ids(catalog: &Catalog, q: &str, kind: Option<&str>, page: i64, page_size: i64) -> (Vec<String>, usize) {
    let query = CatalogQuery { q: q.to_owned(), kind: kind.map(str::to_owned) };
    let (items, total) = catalog.page(&query, Paging { page, page_size });
    (items.into_iter().map(|item| item.id.to_string()).collect(), total)
}

#[test]
fn search_ignores_case_in_any_script_and_trims_nothing() {
    let names = ["AK-47 | Redline", "ÄRGER", "★ Karambit", "Dragon 龍王", "StatTrak™ M4", "ΌΣ"];
    let catalog = built(&(0..).zip(names).map(|(id, name)| item(id, Some(name), "skin")).collect::<Vec<_>>());
    for (q, hits) in [
        ("redLINE", 1),
        ("ä", 1),
        ("★", 1),
        ("龍王", 1),
        ("™", 1),
        ("ak-47 | ", 1),
        (" ", 4),
        ("  ", 0),
        ("r", 5),
        ("όσ", 1),
        ("\n", 0),
        ("e\nä", 0),
    ] {
        assert_eq!(ids(&catalog, q, None, 1, 50).1, hits, "{q:?}");
    }
}

#[test]
fn items_without_a_name_come_last_and_match_no_search() {
    let catalog = built(&[item(1, None, "case"), item(3, Some("z"), "case"), item(2, None, "case")]);
    assert_eq!(ids(&catalog, "", None, 1, 50), (vec!["item-3".into(), "item-1".into(), "item-2".into()], 3));
    assert_eq!(ids(&catalog, "z", None, 1, 50).1, 1);
}

/// What a plain list says to the same question.
fn naive(model: &BTreeMap<u8, PublicItem>, q: &str, kind: Option<&str>) -> Vec<String> {
    let lower = |text: &str| text.chars().flat_map(char::to_lowercase).collect::<String>();
    let name = |item: &PublicItem| item.name.as_ref().map(|name| name.as_str().to_owned());
    let mut hits: Vec<&PublicItem> = model
        .values()
        .filter(|item| kind.is_none_or(|kind| item.kind.as_str() == kind))
        .filter(|item| q.is_empty() || name(item).is_some_and(|name| lower(&name).contains(&lower(q))))
        .collect();
    hits.sort_by_key(|item| (item.name.is_none(), name(item), item.id.to_string()));
    hits.into_iter().map(|item| item.id.to_string()).collect()
}

proptest! {
    #[test]
    fn any_history_answers_like_a_plain_list(
        initial in 0u8..200,
        steps in prop::collection::vec((any::<u8>(), prop::option::of("[aAbBäÄ★ ]{1,4}"), any::<bool>(), any::<bool>()), 0..120),
        q in "[aAbBäÄ★ ]{0,2}",
        page_size in 1i64..60,
    ) {
        let mut model: BTreeMap<u8, PublicItem> =
            (0..initial).map(|id| (id, item(id, Some(&format!("A{}", id % 50)), "skin"))).collect();
        let mut catalog = Catalog::build(vec![crate::market::Columns::of(model.values())]);
        let mut changes = Vec::new();
        for (id, name, is_case, remove) in steps {
            let new = item(id, name.as_deref(), if is_case { "case" } else { "skin" });
            if remove {
                model.remove(&id);
                changes.push(Change::Remove(new.id));
            } else {
                model.insert(id, new.clone());
                changes.push(Change::Put(new));
            }
        }
        let later = changes.split_off(changes.len() / 2);
        catalog.apply(changes);
        catalog.apply(later);
        for kind in [None, Some("skin"), Some("case"), Some("none")] {
            let expected = naive(&model, &q, kind);
            let mut walked = Vec::new();
            for page in 1.. {
                let (ids, total) = ids(&catalog, &q, kind, page, page_size);
                prop_assert_eq!(total, expected.len());
                if ids.is_empty() {
                    break;
                }
                walked.extend(ids);
            }
            prop_assert_eq!(walked, expected);
        }
    }
}
