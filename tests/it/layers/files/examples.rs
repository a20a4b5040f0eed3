//! Tests of the analysis itself, on crates that are made up.

use super::graph::cycle;
use super::source::Crate;

/// A crate: its files and their texts.
type Files<'a> = &'a [(&'a str, &'a str)];

fn read(files: Files<'_>) -> Crate {
    let text = |file: &str| files.iter().find(|(name, _)| *name == file).map(|(_, text)| (*text).to_owned());
    Crate::read("lib.rs", text)
}

/// Returns the dependencies as text, such as `a.rs -> b.rs (uses crate::b::B)`.
fn dependencies(files: Files<'_>) -> Vec<String> {
    let graph = read(files).graph();
    let each = graph
        .iter()
        .flat_map(|(from, uses)| uses.iter().map(move |(to, path)| format!("{from} -> {to} (uses {path})")));
    each.collect()
}

#[test]
fn an_import_leads_to_the_file_that_defines_the_item() {
    let files = [
        ("lib.rs", "mod shop; mod till;"),
        ("shop/mod.rs", "mod shelf; mod cart; pub use shelf::{Shelf as Rack, label};"),
        ("shop/shelf.rs", "pub struct Shelf; pub fn label() {}"),
        ("shop/cart.rs", "use super::Rack; fn take(_: Rack) {}"),
        ("till.rs", "use crate::shop::{self, label}; fn ring() { label(); shop::label(); }"),
    ];
    let expected =
        ["shop/cart.rs -> shop/shelf.rs (uses super::Rack)", "till.rs -> shop/shelf.rs (uses crate::shop::label)"];
    assert_eq!(dependencies(&files), expected);
}

#[test]
fn what_a_parent_defines_itself_is_taken_from_the_parent() {
    let files = [
        ("lib.rs", "mod till; pub use till::Till; pub struct Coin; use till::open as open_till;"),
        ("till.rs", "use super::Coin; pub struct Till(Coin); pub fn open() {}"),
    ];
    let expected = ["lib.rs -> till.rs (uses till::open)", "till.rs -> lib.rs (uses super::Coin)"];
    assert_eq!(dependencies(&files), expected);
}

#[test]
fn a_re_export_is_a_dependency_only_of_a_file_that_uses_the_name_too() {
    let child = ("till.rs", "pub struct Till;");
    assert_eq!(dependencies(&[("lib.rs", "mod till; pub use till::Till;"), child]), [""; 0]);
    let files = [("lib.rs", "mod till; pub use till::Till; fn open() -> Till { Till }"), child];
    assert_eq!(dependencies(&files), ["lib.rs -> till.rs (uses Till)"]);
}

#[test]
fn paths_are_followed_wherever_they_stand() {
    for code in [
        "fn f() { crate::till::open() }",
        "fn f() { super::till::open() }",
        "fn f(_: super::till::Till) {}",
        "use crate::till; fn f() { till::open() }",
        "fn f() { use crate::till; till::open() }",
        "fn f() { println!(\"{}\", crate::till::open()) }",
        "fn f() { vec![(1, { super::till::open() })] }",
        "#[derive(Till)] #[till(with = crate::till::open)] struct S;",
        "mod inner { use super::super::till::Till; }",
    ] {
        let files = [("lib.rs", "mod shop; mod till;"), ("shop.rs", code), ("till.rs", "")];
        let found = dependencies(&files);
        assert!(matches!(&found[..], [one] if one.starts_with("shop.rs -> till.rs ")), "{code}: {found:?}");
    }
}

#[test]
fn a_module_and_a_function_may_have_one_name() {
    let files = [
        ("lib.rs", "mod shop; mod till;"),
        ("shop.rs", "use crate::till::sweep; fn f() { sweep() }"),
        ("till/mod.rs", "mod sweep; pub use sweep::{Swept, sweep};"),
        ("till/sweep.rs", "pub struct Swept; pub fn sweep() {}"),
    ];
    assert_eq!(dependencies(&files), ["shop.rs -> till/sweep.rs (uses crate::till::sweep)"]);
}

#[test]
fn other_crates_are_left_out() {
    let files = [
        ("lib.rs", "mod time; mod url; pub use time::now;"),
        (
            "time.rs",
            "use time::time; use http::{self, url}; use ::url::Url; fn now() { time::now(); ::url::f(); http::f() }",
        ),
        ("url.rs", "use serde; use url::Url; fn f(_: Url) { println!(\"{}\", ::time::now()) }"),
    ];
    assert_eq!(dependencies(&files), [""; 0]);
}

#[test]
fn tests_are_left_out() {
    let files = [
        ("lib.rs", "mod shop; mod till; #[cfg(test)] mod no_such_file;"),
        ("shop.rs", "#[cfg(test)] mod tests { use crate::till::Till; } #[cfg(test)] use crate::till::open;"),
        ("till.rs", "struct Till; impl Till { #[cfg(test)] fn f() { crate::shop::f() } }"),
    ];
    assert_eq!(dependencies(&files), [""; 0]);
}

#[test]
fn a_macro_belongs_to_its_file() {
    let files = [
        ("lib.rs", "mod ids; mod packed;"),
        ("ids.rs", "use crate::packed::packed; packed!(Id);"),
        ("packed.rs", "macro_rules! packed { ($name:ident) => { struct $name; } } pub(crate) use packed;"),
    ];
    assert_eq!(dependencies(&files), ["ids.rs -> packed.rs (uses crate::packed::packed)"]);
}

#[test]
#[should_panic(expected = "till.rs: `super::*` hides what it takes")]
fn a_glob_over_a_module_is_refused() {
    dependencies(&[("lib.rs", "mod till;"), ("till.rs", "use super::*;")]);
}

#[test]
fn the_shortest_cycle_is_told_with_its_reasons() {
    let mut files = [
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::b::B;"),
        ("b.rs", "use crate::c::C; pub struct B;"),
        ("c.rs", "pub struct C(super::a::A);"),
    ];
    let told = "a.rs -> b.rs (uses crate::b::B) -> c.rs (uses crate::c::C) -> a.rs (uses super::a::A)";
    assert_eq!(cycle(&read(&files).graph()).as_deref(), Some(told));
    files[3].1 = "pub struct C(super::b::B);";
    let told = "b.rs -> c.rs (uses crate::c::C) -> b.rs (uses super::b::B)";
    assert_eq!(cycle(&read(&files).graph()).as_deref(), Some(told));
    files[3].1 = "pub struct C;";
    assert_eq!(cycle(&read(&files).graph()), None);
}
