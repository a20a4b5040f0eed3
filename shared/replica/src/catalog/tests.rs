use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::base::Columns;

/// Makes an item. Depending on `id` and `name`, it has a name, a slug and an image or lacks some of them.
fn item(id: u16, name: &str, kind: &str) -> PublicItem {
    PublicItem {
        id: format!("item-{id}").parse().unwrap(),
        kind: kind.parse().unwrap(),
        name: name.parse().ok(),
        slug: (id.is_multiple_of(3)).then(|| format!("slug {id}").parse().unwrap()),
        image: id.is_multiple_of(2).then(|| format!("https://img.example.com/{id}").parse().unwrap()),
    }
}

fn built(items: &[PublicItem]) -> Catalog {
    Catalog::build(items.chunks(50).map(Columns::from_records).collect())
}

fn catalog(names: &[&str]) -> Catalog {
    built(&(0..).zip(names).map(|(id, name)| item(id, name, "skin")).collect::<Vec<_>>())
}

fn page(catalog: &Catalog, q: &str, kind: Option<&str>, page: i64, page_size: i64) -> (Vec<PublicItem>, usize) {
    let query = CatalogQuery { q: q.to_owned(), kind: kind.map(str::to_owned) };
    catalog.page(&query, Paging { page, page_size })
}

fn hits(catalog: &Catalog, q: &str) -> Vec<String> {
    page(catalog, q, None, 1, 100).0.into_iter().map(|item| item.name.unwrap().as_str().to_owned()).collect()
}

#[test]
fn search_ignores_case_in_any_script_and_trims_nothing() {
    let catalog = catalog(&["AK-47 | Redline", "ÄRGER", "★ Karambit", "Dragon 龍王", "StatTrak™ M4", "ΌΣ"]);
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
        ("\u{a0}", 4),
        ("★\tkaram", 1),
        ("e\nä", 0),
        ("\0", 0),
    ] {
        assert_eq!(page(&catalog, q, None, 1, 50).1, hits, "{q:?}");
    }
}

#[test]
fn a_name_is_found_by_any_form_of_its_letters() {
    let catalog =
        catalog(&["İzmir", "i\u{307}stanbul", "STRAẞE", "10 \u{212a}", "ΣΑΣ", "λόγος", "Caf\u{e9}", "Ole\u{301}"]);
    for (q, name) in [
        ("izm", "İzmir"),
        ("i\u{307}z", "İzmir"),
        ("İZ", "İzmir"),
        ("ISTANBUL", "i\u{307}stanbul"),
        ("İs", "i\u{307}stanbul"),
        ("aße", "STRAẞE"),
        ("ſtra", "STRAẞE"),
        ("strasse", "STRAẞE"),
        ("RASS", "STRAẞE"),
        ("0 k", "10 \u{212a}"),
        ("σασ", "ΣΑΣ"),
        ("ας", "ΣΑΣ"),
        ("ΓΟΣ", "λόγος"),
        ("γοσ", "λόγος"),
        ("λο\u{301}Γ", "λόγος"),
        ("CAFE\u{301}", "Caf\u{e9}"),
        ("ol\u{c9}", "Ole\u{301}"),
    ] {
        assert_eq!(hits(&catalog, q), [name], "{q:?}");
    }
    for q in ["ızmir", "λογος", "cafe", "ole", "\u{301}"] {
        assert_eq!(hits(&catalog, q), [""; 0], "{q:?}");
    }
}

/// Returns a query's total, and in how many blocks the text was searched for a page of it.
fn searches(catalog: &Catalog, q: &str, kind: Option<&str>) -> (usize, usize) {
    let searches = || catalog.blocks.iter().map(ItemBlock::searches).sum::<usize>();
    let before = searches();
    let (_, total) = page(catalog, q, kind, 3, 20);
    (total, searches() - before)
}

#[test]
fn few_blocks_are_searched() {
    let trees = ["Alder", "Birch", "Cedar"];
    let tree = |id: u16| {
        item(id, &format!("{} {id:04}", trees[usize::from(id % 3)]), ["skin", "case"][usize::from(id % 3 / 2)])
    };
    let items: Vec<_> = (0..6_000).map(tree).collect();
    let mut catalog = built(&items);
    catalog.apply(vec![Change::Put(item(6_000, "Alder 6000", "case")), Change::Remove(items[4].id.clone())]);
    // Three blocks hold the items of a page, and one has both kinds.
    for (q, kind, total, most) in [
        ("r", None, 6_000, 3),
        ("R", Some("case"), 2_001, 5),
        ("ce", Some("case"), 2_000, 4),
        ("ce", Some("skin"), 0, 1),
        ("x", None, 0, 0),
        ("4", Some("skin"), 1_572, 5),
        ("zebra 7", None, 0, 5),
        ("cedar 5999", None, 1, 15),
    ] {
        let (found, searched) = searches(&catalog, q, kind);
        assert_eq!(found, total, "{q:?}, {kind:?}");
        assert!(searched <= most, "{searched} of {} blocks for {q:?}, {kind:?}", catalog.blocks.len());
    }
}

#[test]
fn a_few_newer_items_do_not_make_a_load_sort_all_of_them_again() {
    let base: Vec<_> = (0..20_000).map(|id| item(id, &format!("{id:05}"), "skin")).collect();
    let newer = |id: u16| item(20_000 + id, &format!("{:05} new", u32::from(id) * 7_919 % 20_000), "skin");
    let newer: Vec<_> = (0..50).map(newer).collect();
    let catalog = Catalog::build(vec![Columns::from_records(&base), Columns::from_records(&newer)]);
    let looks = catalog.rows.looks.load(Ordering::Relaxed);
    assert!(looks < 8 * 20_050, "{looks} looks at 20,050 items");
    assert_eq!(page(&catalog, "", None, 1, 1).0, [base[0].clone()]);
    assert_eq!(page(&catalog, "", None, 2, 1).0, [newer[0].clone()]);
}

#[test]
fn the_next_page_of_a_search_searches_only_the_blocks_that_it_shows_and_those_that_changed() {
    let items: Vec<_> = (0..1_200).map(|id| item(id, &format!("{id:04} tested"), "skin")).collect();
    let mut catalog = built(&items);
    let (found, searched) = searches(&catalog, "tested", None);
    assert!((found, searched > 100) == (1_200, true), "{found} in {searched} blocks");
    let (found, searched) = searches(&catalog, "Tested", None);
    assert!((found, searched <= 3) == (1_200, true), "{found} in {searched} blocks");
    let put = |id, name| Change::Put(item(id, name, "skin"));
    catalog.apply(vec![Change::Remove(items[7].id.clone()), put(2_000, "0003 untested"), put(2_001, "0004 none")]);
    let (found, searched) = searches(&catalog, "tested", None);
    assert!((found, searched <= 4) == (1_200, true), "{found} in {searched} blocks");
    assert_eq!(searches(&catalog, "tested", Some("skin")).0, 1_200);
}

fn folded(text: &str) -> String {
    let mut folded = String::new();
    push_folded(&mut folded, text);
    folded
}

/// Returns what a plain list answers to the same query.
fn naive(model: &BTreeMap<u16, PublicItem>, q: &str, kind: Option<&str>) -> Vec<PublicItem> {
    let name = |item: &PublicItem| item.name.as_ref().map(|name| name.as_str().to_owned());
    let mut hits: Vec<PublicItem> = model
        .values()
        .filter(|item| kind.is_none_or(|kind| item.kind.as_str() == kind))
        .filter(|item| q.is_empty() || name(item).is_some_and(|name| folded(&name).contains(&folded(q))))
        .cloned()
        .collect();
    hits.sort_by_key(|item| (item.name.is_none(), name(item), item.id.to_string()));
    hits
}

/// Generates names that share beginnings, ends, or nothing. Some consist of two letters only, so that many parts look
/// like the needle.
fn name() -> impl Strategy<Value = String> {
    let long = "Souvenir Sawed-Off | Snake Camo ".repeat(9);
    let beginnings = ["", "A", "aab", "AK-47 | ", "StatTrak™ Knife", "İİİİ", &long].map(str::to_owned);
    let ends = ["", "", "a", " (Field-Tested)"];
    let parts = (select(beginnings.to_vec()), "[aAbBkKiI\u{212a}\u{301}\u{307}İáßẞΣς★ 1]{0,5}", select(ends.to_vec()));
    prop_oneof![parts.prop_map(|(beginning, middle, end)| beginning + &middle + end), "[ab]{0,30}"]
}

/// Generates any text, or a part of a possible name.
fn needle() -> impl Strategy<Value = String> {
    let part = (name(), any::<prop::sample::Index>(), 0usize..40);
    let part = part.prop_map(|(name, from, len)| name.chars().skip(from.index(name.len() + 1)).take(len).collect());
    prop_oneof!["[aAbBk\u{212a}iİs\u{301}\u{307}ÁßΣσς★ \n1]{0,3}", "[ab]{4,10}", part]
}

fn kind() -> impl Strategy<Value = &'static str> {
    select(vec!["skin", "case"])
}

proptest! {
    #[test]
    fn any_history_answers_like_a_plain_list(
        initial in prop::collection::btree_map(0u16..200, (name(), kind()), 0..150),
        is_sorted: bool,
        steps in prop::collection::vec((0u16..200, prop::option::of((name(), kind()))), 0..120),
        needles in prop::collection::vec(needle(), 1..8),
        page_size in 1i64..60,
    ) {
        let mut model: BTreeMap<u16, PublicItem> =
            initial.into_iter().map(|(id, (name, kind))| (id, item(id, &name, kind))).collect();
        let records: Vec<_> = if is_sorted { naive(&model, "", None) } else { model.values().cloned().collect() };
        let mut catalog = built(&records);
        let mut changes = Vec::new();
        for (id, put) in steps {
            let old = model.get(&id).and_then(|item| item.name.as_ref()).map_or(String::new(), ToString::to_string);
            if let Some((name, kind)) = put {
                // Items with odd ids keep their names.
                let new = item(id, if id.is_multiple_of(2) { &name } else { &old }, kind);
                model.insert(id, new.clone());
                changes.push(Change::Put(new));
            } else {
                model.remove(&id);
                changes.push(Change::Remove(item(id, "", "skin").id));
            }
        }
        let later = changes.split_off(changes.len() / 2);
        catalog.apply(changes);
        // These counts are kept, and some of them are no longer right after the next changes.
        for kind in [None, Some("skin"), Some("case")] {
            page(&catalog, &needles[0], kind, 1, page_size);
        }
        catalog.apply(later);
        for q in needles.iter().map(String::as_str).chain([""]) {
            for kind in [None, Some("skin"), Some("case"), Some("none")] {
                let expected = naive(&model, q, kind);
                let mut walked = Vec::new();
                for number in 1.. {
                    let (items, total) = page(&catalog, q, kind, number, page_size);
                    prop_assert_eq!(total, expected.len(), "{:?}", q);
                    if items.is_empty() {
                        break;
                    }
                    walked.extend(items);
                }
                prop_assert_eq!(walked, expected, "{:?}", q);
            }
        }
    }
}
