//! Keeps the files of a crate free of cycles: no file may depend, directly or through others, on a file that depends
//! on it. So each can be read and tested after those that it is made of.
//!
//! A file depends on the file that defines what it imports or names. A `pub use` only passes on, so a parent that
//! re-exports its children depends on none of them, and who imports from the parent depends on the child. Methods are
//! not followed, and tests are left out.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use serde_json::json;
use syn::visit::{self, Visit};
use syn::{Attribute, Ident, ImplItemFn, Item, ItemMod, ItemUse, Meta, UseTree, Visibility};
use tests::metadata;

/// Returns the root files of the workspace's libraries and programs.
fn roots() -> Vec<PathBuf> {
    let metadata = metadata();
    let workspace = Path::new(metadata["workspace_root"].as_str().unwrap());
    let folders = ["shared", "functions", "infra"].map(|folder| workspace.join(folder));
    let mut roots = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        for target in package["targets"].as_array().unwrap() {
            let path = PathBuf::from(target["src_path"].as_str().unwrap());
            let is_built = target["kind"] == json!(["lib"]) || target["kind"] == json!(["bin"]);
            if is_built && folders.iter().any(|folder| path.starts_with(folder)) {
                roots.push(path);
            }
        }
    }
    roots
}

#[test]
fn no_files_depend_on_each_other_in_a_cycle() {
    let mut cycles = Vec::new();
    for root in roots() {
        let (folder, name) = (root.parent().unwrap(), root.file_name().unwrap().to_str().unwrap());
        let graph = Crate::read(name, |file| fs::read_to_string(folder.join(file)).ok()).graph();
        cycles.extend(cycle(&graph).map(|cycle| format!("{}: {cycle}", folder.display())));
    }
    assert!(cycles.is_empty(), "{}", cycles.join("\n"));
}

/// A crate: its modules, of which the first is the root. Those of tests are left out.
struct Crate {
    modules: Vec<Module>,
}

struct Module {
    parent: Option<usize>,
    /// The file that the module stands in, seen from the folder of the root file.
    file: String,
    children: BTreeMap<String, usize>,
    code: Code,
}

impl Crate {
    /// Reads a crate from its root file. `text` returns the text of a file, if there is one.
    fn read(root: &str, text: impl Fn(&str) -> Option<String>) -> Self {
        let mut reader = SourceReader { text, modules: Vec::new() };
        let root_text = (reader.text)(root).unwrap_or_else(|| panic!("no file {root}"));
        reader.file(None, root, &root_text, "");
        Self { modules: reader.modules }
    }
}

struct SourceReader<F> {
    text: F,
    modules: Vec<Module>,
}

impl<F: Fn(&str) -> Option<String>> SourceReader<F> {
    /// Reads the module of a file. Files of its children lie in the folder.
    fn file(&mut self, parent: Option<usize>, file: &str, text: &str, folder: &str) -> usize {
        let parsed = syn::parse_file(text).unwrap_or_else(|error| panic!("{file}: {error}"));
        self.module(parent, file, folder, &parsed.items)
    }

    fn module(&mut self, parent: Option<usize>, file: &str, folder: &str, items: &[Item]) -> usize {
        let index = self.modules.len();
        let (children, code) = (BTreeMap::new(), Code::default());
        self.modules.push(Module { parent, file: file.to_owned(), children, code });
        for item in items {
            match item {
                Item::Mod(module) if is_test(&module.attrs) => {}
                Item::Mod(module) => {
                    let child = self.child(index, file, folder, module);
                    self.modules[index].children.insert(module.ident.to_string(), child);
                }
                item => self.modules[index].code.visit_item(item),
            }
        }
        index
    }

    fn child(&mut self, parent: usize, file: &str, folder: &str, module: &ItemMod) -> usize {
        let name = module.ident.to_string();
        let inner = format!("{folder}{name}/");
        if let Some((_, items)) = &module.content {
            return self.module(Some(parent), file, &inner, items);
        }
        let candidates = [format!("{folder}{name}.rs"), format!("{inner}mod.rs")];
        let found = candidates.iter().find_map(|file| Some((file, (self.text)(file)?)));
        let (child, text) = found.unwrap_or_else(|| panic!("{file} has `mod {name}`, but there is no such file"));
        self.file(Some(parent), child, &text, &inner)
    }
}

/// The names of a module.
#[derive(Default)]
struct Code {
    /// What `use` declarations bring into scope: names, and the paths that they stand for.
    imports: BTreeMap<String, Vec<String>>,
    /// Every path that is used. What a `pub use` only passes on is not among them.
    paths: BTreeSet<Vec<String>>,
    /// The paths before the `*` of a `use`.
    globs: BTreeSet<Vec<String>>,
}

impl<'ast> Visit<'ast> for Code {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !is_test(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_use(&mut self, declaration: &'ast ItemUse) {
        // A leading `::` begins the path of another crate.
        if declaration.leading_colon.is_none() {
            self.import(&declaration.tree, &[], matches!(declaration.vis, Visibility::Inherited));
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.paths.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    /// Looks for paths among the tokens of macros and attributes, which are not parsed.
    fn visit_token_stream(&mut self, tokens: &'ast TokenStream) {
        self.tokens(tokens.clone());
    }
}

impl Code {
    fn import(&mut self, tree: &UseTree, before: &[String], is_private: bool) {
        let with = |ident: &Ident| before.iter().cloned().chain([ident.to_string()]).collect::<Vec<_>>();
        match tree {
            UseTree::Path(path) => self.import(&path.tree, &with(&path.ident), is_private),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, before, is_private);
                }
            }
            UseTree::Name(name) => self.bind(with(&name.ident), None, is_private),
            UseTree::Rename(rename) => self.bind(with(&rename.ident), Some(rename.rename.to_string()), is_private),
            UseTree::Glob(_) => {
                self.globs.insert(before.to_vec());
            }
        }
    }

    fn bind(&mut self, mut path: Vec<String>, name: Option<String>, is_private: bool) {
        if path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let Some(name) = name.or_else(|| path.last().cloned()) else { return };
        if is_private {
            self.paths.insert(path.clone());
        }
        // `use name` without a path names another crate, or a macro of the same file.
        if path != [&*name] {
            self.imports.insert(name, path);
        }
    }

    fn tokens(&mut self, tokens: TokenStream) {
        let (mut path, mut colons) = (Vec::new(), 0);
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.end(&mut path);
                    }
                    // What follows a leading `::` belongs to another crate or to a type.
                    if colons != 2 || !path.is_empty() {
                        path.push(ident.to_string());
                    }
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                other => {
                    self.end(&mut path);
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.tokens(group.stream());
                    }
                }
            }
        }
        self.end(&mut path);
    }

    fn end(&mut self, path: &mut Vec<String>) {
        if !path.is_empty() {
            self.paths.insert(std::mem::take(path));
        }
    }
}

/// Whether the compiler leaves an item out unless it builds tests.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        Meta::Path(_) | Meta::NameValue(_) => false,
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Where a path leads.
enum PathTarget {
    /// To a module of the crate.
    Module(usize),
    /// To something that this module defines.
    Item(usize),
}

impl Crate {
    /// Returns the module that defines what a path leads to, seen from another module. `None` if the path leads to a
    /// module itself, or out of the crate.
    fn definer(&self, from: usize, path: &[String]) -> Option<usize> {
        match self.target(from, path)? {
            PathTarget::Item(module) => Some(module),
            PathTarget::Module(_) => None,
        }
    }

    /// Whether a path leads to a module of the crate.
    fn is_module(&self, from: usize, path: &[String]) -> bool {
        matches!(self.target(from, path), Some(PathTarget::Module(_)))
    }

    /// Follows a path through modules and re-exports. A name that a module neither imports nor has as a child is taken
    /// for one that it defines, because macros define names, too.
    fn target(&self, from: usize, path: &[String]) -> Option<PathTarget> {
        let (mut module, rest) = self.start(from, path)?;
        for (position, name) in rest.iter().enumerate() {
            let scope = &self.modules[module];
            if name == "super" {
                module = scope.parent?;
                continue;
            }
            // A module and a function may have the same name. Only the module has something in it.
            let is_last = position + 1 == rest.len();
            module = match (scope.children.get(name), scope.code.imports.get(name)) {
                (Some(child), import) if import.is_none() || !is_last => *child,
                // `use time::time` imports from the crate `time`.
                (None, Some(import)) if import.first() == Some(name) => return None,
                (_, Some(import)) => match self.target(module, import)? {
                    PathTarget::Module(imported) => imported,
                    item @ PathTarget::Item(_) => return Some(item),
                },
                (_, None) => return Some(PathTarget::Item(module)),
            };
        }
        Some(PathTarget::Module(module))
    }

    /// Returns the module that a path starts from, and the names that lead on from there. `None` if it starts outside
    /// of the crate, or from something that its own module defines.
    fn start<'p>(&self, from: usize, path: &'p [String]) -> Option<(usize, &'p [String])> {
        let scope = &self.modules[from];
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => Some((0, rest)),
            "self" => Some((from, rest)),
            "super" => Some((from, path)),
            name if scope.children.contains_key(name) || scope.code.imports.contains_key(name) => Some((from, path)),
            _ => None,
        }
    }
}

/// Files, the files that each of them depends on, and for each of those a path that it uses from there.
type Graph = BTreeMap<String, BTreeMap<String, String>>;

impl Crate {
    fn graph(&self) -> Graph {
        let mut graph = Graph::new();
        for (index, module) in self.modules.iter().enumerate() {
            for glob in &module.code.globs {
                let path = glob.join("::");
                assert!(!self.is_module(index, glob), "{}: `{path}::*` hides what it takes: name it", module.file);
            }
            // The longest path says most about why a file depends on another.
            let mut paths: Vec<_> = module.code.paths.iter().chain(&module.code.globs).collect();
            paths.sort_by_key(|path| Reverse(path.len()));
            for path in paths {
                let Some(definer) = self.definer(index, path) else { continue };
                let file = &self.modules[definer].file;
                if *file != module.file {
                    let uses = graph.entry(module.file.clone()).or_default();
                    uses.entry(file.clone()).or_insert_with(|| path.join("::"));
                }
            }
        }
        graph
    }
}

/// Returns a shortest cycle as text, such as `a.rs -> b.rs (uses b::f) -> a.rs (uses super::g)`.
fn cycle(graph: &Graph) -> Option<String> {
    let cycles = graph.keys().filter_map(|file| way_back(graph, file));
    let shortest = cycles.min_by_key(Vec::len)?;
    let steps = shortest.windows(2).map(|step| format!("{} (uses {})", step[1], graph[step[0]][step[1]]));
    Some(format!("{} -> {}", shortest[0], steps.collect::<Vec<_>>().join(" -> ")))
}

/// Returns the shortest way from a file back to itself.
fn way_back<'g>(graph: &'g Graph, start: &'g str) -> Option<Vec<&'g str>> {
    let (mut seen, mut ways) = (BTreeSet::new(), VecDeque::from([vec![start]]));
    while let Some(way) = ways.pop_front() {
        for next in graph.get(*way.last()?).into_iter().flat_map(BTreeMap::keys) {
            let longer: Vec<&str> = way.iter().copied().chain([next.as_str()]).collect();
            if next == start {
                return Some(longer);
            }
            if seen.insert(next) {
                ways.push_back(longer);
            }
        }
    }
    None
}

/// A crate: its files and their texts.
type Files<'a> = &'a [(&'a str, &'a str)];

fn read_crate(files: Files<'_>) -> Crate {
    let text = |file: &str| files.iter().find(|(name, _)| *name == file).map(|(_, text)| (*text).to_owned());
    Crate::read("lib.rs", text)
}

/// Returns the dependencies as text, such as `a.rs -> b.rs (uses crate::b::B)`.
fn dependencies(files: Files<'_>) -> Vec<String> {
    let graph = read_crate(files).graph();
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
fn the_shortest_cycle_is_told_with_its_reasons() {
    let mut files = [
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::b::B;"),
        ("b.rs", "use crate::c::C; pub struct B;"),
        ("c.rs", "pub struct C(super::a::A);"),
    ];
    let told = "a.rs -> b.rs (uses crate::b::B) -> c.rs (uses crate::c::C) -> a.rs (uses super::a::A)";
    assert_eq!(cycle(&read_crate(&files).graph()).as_deref(), Some(told));
    files[3].1 = "pub struct C(super::b::B);";
    let told = "b.rs -> c.rs (uses crate::c::C) -> b.rs (uses super::b::B)";
    assert_eq!(cycle(&read_crate(&files).graph()).as_deref(), Some(told));
    files[3].1 = "pub struct C;";
    assert_eq!(cycle(&read_crate(&files).graph()), None);
}
