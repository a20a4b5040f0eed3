//! Keeps the files of a crate free of cycles: no file may depend, directly or through others, on a file that depends
//! on it. So each can be read and tested after those that it is made of.
//!
//! A file depends on the file that defines what it imports or names. A `pub use` only passes on, so a parent that
//! re-exports its children depends on none of them, and who imports from the parent depends on the child. Methods are
//! not followed, and tests are left out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use serde_json::json;
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
        let found = Crate::read(name, |file| fs::read_to_string(folder.join(file)).ok()).cycle();
        cycles.extend(found.map(|cycle| format!("{}: {cycle}", folder.display())));
    }
    assert!(cycles.is_empty(), "{}", cycles.join("\n"));
}

/// The names of a path, such as `crate`, `shop` and `Shelf`.
type Names = Vec<String>;

#[derive(Default)]
struct Module {
    parent: Option<usize>,
    /// The file that the module stands in, seen from the folder of the root file.
    file: String,
    children: BTreeMap<String, usize>,
    /// What `use` declarations bring into scope: names, and the paths that they stand for.
    imports: BTreeMap<String, Names>,
    /// Every path that is used. What a `pub use` only passes on is not among them.
    paths: BTreeSet<Names>,
}

/// A crate: its modules, of which the first is the root. Those of tests are left out.
struct Crate<F> {
    /// Returns the text of a file, if there is one.
    text: F,
    modules: Vec<Module>,
}

impl<F: Fn(&str) -> Option<String>> Crate<F> {
    /// Reads a crate from its root file.
    fn read(root: &str, text: F) -> Self {
        let mut read = Self { text, modules: Vec::new() };
        let tokens = read.tokens_of(root).unwrap_or_else(|| panic!("no file {root}"));
        read.add(None, root, "", tokens);
        read
    }

    fn tokens_of(&self, file: &str) -> Option<TokenStream> {
        let text = (self.text)(file)?;
        Some(text.parse().unwrap_or_else(|error| panic!("{file}: {error}")))
    }

    /// Adds a module. Files of its children lie in the folder.
    fn add(&mut self, parent: Option<usize>, file: &str, folder: &str, code: TokenStream) -> usize {
        let module = self.modules.len();
        self.modules.push(Module { parent, file: file.to_owned(), ..Module::default() });
        self.scan(module, folder, code);
        module
    }

    /// Collects modules, imports and paths, also from bodies of functions and from macros.
    fn scan(&mut self, module: usize, folder: &str, code: TokenStream) {
        let tokens: Vec<TokenTree> = code.into_iter().collect();
        let mut rest = &tokens[..];
        while let [first, after @ ..] = rest {
            rest = match (word(first).as_str(), after) {
                ("#", [attribute, item @ ..]) if is_test(attribute) => without_item(item),
                ("mod", [TokenTree::Ident(name), body, after @ ..]) => {
                    let child = self.child(module, folder, &name.to_string(), body);
                    self.modules[module].children.insert(name.to_string(), child);
                    after
                }
                ("pub", [next, after @ ..] | [TokenTree::Group(_), next, after @ ..]) if word(next) == "use" => {
                    self.import(module, after, false)
                }
                ("use", _) => self.import(module, after, true),
                // A member, a lifetime, or what follows a leading `::`, which belongs to a type or to another crate.
                ("." | "'", [_, after @ ..]) => after,
                (":", [colon, after @ ..]) if word(colon) == ":" => path(after).1,
                _ => match first {
                    TokenTree::Ident(_) => {
                        let (names, after) = path(rest);
                        self.modules[module].paths.insert(names);
                        after
                    }
                    TokenTree::Group(group) => {
                        self.scan(module, folder, group.stream());
                        after
                    }
                    TokenTree::Punct(_) | TokenTree::Literal(_) => after,
                },
            };
        }
    }

    fn child(&mut self, parent: usize, folder: &str, name: &str, body: &TokenTree) -> usize {
        let inner = format!("{folder}{name}/");
        if let TokenTree::Group(items) = body {
            let file = self.modules[parent].file.clone();
            return self.add(Some(parent), &file, &inner, items.stream());
        }
        let files = [format!("{folder}{name}.rs"), format!("{inner}mod.rs")];
        let found = files.iter().find_map(|file| Some((file, self.tokens_of(file)?)));
        let (file, code) = found.unwrap_or_else(|| panic!("`mod {name}`, but neither of {files:?}"));
        self.add(Some(parent), file, &inner, code)
    }

    /// Takes the tree of a `use` from the start of some tokens. Returns the others.
    fn import<'t>(&mut self, module: usize, tokens: &'t [TokenTree], is_used: bool) -> &'t [TokenTree] {
        let end = tokens.iter().position(|token| word(token) == ";").unwrap_or_default();
        self.bind(module, &[], &tokens[..end], is_used);
        &tokens[end..]
    }

    fn bind(&mut self, module: usize, before: &[String], trees: &[TokenTree], is_used: bool) {
        for tree in trees.split(|token| word(token) == ",") {
            let (names, rest) = path(tree);
            let mut names = [before, &names].concat();
            if names.is_empty() {
                continue;
            }
            names.pop_if(|last| last == "self");
            let module_names = &mut self.modules[module];
            let name = match rest {
                [TokenTree::Group(trees)] => {
                    let trees: Vec<TokenTree> = trees.stream().into_iter().collect();
                    self.bind(module, &names, &trees, is_used);
                    continue;
                }
                [star] => {
                    names.push(word(star));
                    module_names.paths.insert(names);
                    continue;
                }
                [_, renamed] => word(renamed),
                _ => names[names.len() - 1].clone(),
            };
            if is_used {
                module_names.paths.insert(names.clone());
            }
            // `use name` without a path names another crate, or a macro of the same file.
            if names != [name.as_str()] {
                module_names.imports.insert(name, names);
            }
        }
    }

    /// Returns the module that defines what a path leads to, seen from another module. `None` if the path leads to a
    /// module itself, to something of the same module, or out of the crate. A name that a module neither imports nor
    /// has as a child is taken for one that it defines, because macros define names, too.
    fn definer(&self, from: usize, path: &[String]) -> Option<usize> {
        let (mut module, mut names, mut is_first) = (from, VecDeque::from(path.to_vec()), true);
        while let Some(name) = names.pop_front() {
            let scope = &self.modules[module];
            // A module and a function may have the same name. Only the module has something in it.
            let import = scope.imports.get(&name).filter(|_| names.is_empty() || !scope.children.contains_key(&name));
            match (name.as_str(), import, scope.children.get(&name)) {
                ("crate", ..) => module = 0,
                ("self", ..) => {}
                ("super", ..) => module = scope.parent?,
                ("*", ..) => panic!("{}: `{}` hides what it takes: name it", self.modules[from].file, path.join("::")),
                // `use time::time` imports from the crate `time`.
                (_, Some(import), _) if import[0] == name && !scope.children.contains_key(&name) => return None,
                (_, Some(import), _) => {
                    names = import.iter().cloned().chain(names).collect();
                    is_first = true;
                    continue;
                }
                (_, None, Some(child)) => module = *child,
                _ => return Some(module).filter(|_| !is_first),
            }
            is_first = false;
        }
        None
    }

    /// Returns a cycle as text, such as `a.rs -> b.rs (uses b::f) -> a.rs (uses super::g)`.
    fn cycle(&self) -> Option<String> {
        // Files, the files that each of them depends on, and for each of those a path that it uses from there.
        let mut graph = BTreeMap::<&str, BTreeMap<&str, String>>::new();
        for (index, Module { file, paths, .. }) in self.modules.iter().enumerate() {
            for path in paths {
                let definer = self.definer(index, path).map(|definer| self.modules[definer].file.as_str());
                if let Some(other) = definer.filter(|definer| definer != file) {
                    graph.entry(file).or_default().insert(other, path.join("::"));
                }
            }
        }
        // Leaves only files that depend on others that are left.
        let mut count = usize::MAX;
        while graph.len() < count {
            count = graph.len();
            let left: BTreeSet<&str> = graph.keys().copied().collect();
            graph.retain(|_, uses| {
                uses.retain(|file, _| left.contains(file));
                !uses.is_empty()
            });
        }
        let mut way = vec![*graph.keys().next()?];
        loop {
            let (next, _) = graph[way[way.len() - 1]].first_key_value()?;
            let met = way.iter().position(|file| file == next);
            way.push(next);
            if let Some(start) = met {
                let steps = way[start..].windows(2);
                let steps = steps.map(|step| format!(" -> {} (uses {})", step[1], graph[step[0]][step[1]]));
                return Some(format!("{next}{}", steps.collect::<String>()));
            }
        }
    }
}

/// Returns a name or a mark. Groups and literals have none.
fn word(token: &TokenTree) -> String {
    match token {
        TokenTree::Ident(_) | TokenTree::Punct(_) => token.to_string(),
        TokenTree::Group(_) | TokenTree::Literal(_) => String::new(),
    }
}

/// Takes names that are joined by `::` from the start of some tokens. Returns also the other tokens.
fn path(mut tokens: &[TokenTree]) -> (Names, &[TokenTree]) {
    let mut names = Names::new();
    while let [TokenTree::Ident(name), after @ ..] = tokens {
        names.push(name.to_string());
        match after {
            [one, other, rest @ ..] if word(one) == ":" && word(other) == ":" => tokens = rest,
            _ => return (names, after),
        }
    }
    (names, tokens)
}

/// Whether an attribute makes the compiler leave an item out unless it builds tests.
fn is_test(attribute: &TokenTree) -> bool {
    attribute.to_string().replace(' ', "") == "[cfg(test)]"
}

/// Returns what follows the item at the start of some tokens, which ends with a `;` or with braces.
fn without_item(tokens: &[TokenTree]) -> &[TokenTree] {
    let ends = |token: &TokenTree| {
        word(token) == ";" || matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
    };
    tokens.iter().position(ends).map_or(&[], |end| &tokens[end + 1..])
}

/// Returns the cycle of a crate with these files.
fn cycle_of(files: &[(&str, &str)]) -> Option<String> {
    let text = |file: &str| files.iter().find(|(name, _)| *name == file).map(|(_, text)| (*text).to_owned());
    Crate::read("lib.rs", text).cycle()
}

#[test]
fn a_cycle_is_found_wherever_paths_stand_and_through_re_exports() {
    let root = ("lib.rs", "mod shop; mod till;");
    let till = ("till.rs", "use crate::shop::Shop; pub struct Till; pub fn open(_: Shop) {}");
    for code in [
        "fn f() { crate::till::open() }",
        "fn f(_: super::till::Till) {}",
        "use crate::till; fn f() { till::open() }",
        "fn f() { use crate::till::{self, Till as T}; till::open() }",
        "fn f() { println!(\"{}\", vec![(1, crate::till::open())]) }",
        "#[derive(Till)] #[till(with = crate::till::open)] struct S;",
        "mod inner { use super::super::till::Till; }",
        "#[cfg(test)] mod tests { fn f() {} } fn f() { crate::till::open() }",
    ] {
        let found = cycle_of(&[root, ("shop.rs", &format!("pub struct Shop; {code}")), till]);
        let found = found.unwrap_or_else(|| panic!("no cycle with {code}"));
        assert!(
            found.starts_with("shop.rs -> till.rs (uses ") && found.ends_with(" -> shop.rs (uses crate::shop::Shop)")
        );
    }
    let shop = ("shop/mod.rs", "mod shelf; mod cart; pub use shelf::{Shelf as Rack, label};");
    let cart = ("shop/cart.rs", "use super::Rack; pub fn take(_: Rack) {}");
    let till = ("till.rs", "use crate::shop::{self, label}; fn ring() { label(); shop::label(); }");
    for (shelf, cycle) in [
        ("pub struct Shelf; pub fn label() {} #[cfg(test)] mod tests { use crate::till::ring; }", None),
        (
            "pub struct Shelf; pub fn label() { super::cart::take() }",
            Some("shop/cart.rs -> shop/shelf.rs (uses super::Rack) -> shop/cart.rs (uses super::cart::take)"),
        ),
    ] {
        assert_eq!(cycle_of(&[root, shop, ("shop/shelf.rs", shelf), cart, till]).as_deref(), cycle);
    }
}
