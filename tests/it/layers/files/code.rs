//! What the code of a module names: the paths that it imports, and those that it writes where it uses them.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Ident, ImplItemFn, Item, ItemUse, Meta, UseTree, Visibility};

/// The names of a module.
#[derive(Default)]
pub(super) struct Code {
    /// What `use` declarations bring into scope: names, and the paths that they stand for.
    pub(super) imports: BTreeMap<String, Vec<String>>,
    /// Every path that is used. What a `pub use` only passes on is not among them.
    pub(super) paths: BTreeSet<Vec<String>>,
    /// The paths before the `*` of a `use`.
    pub(super) globs: BTreeSet<Vec<String>>,
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
pub(super) fn is_test(attributes: &[Attribute]) -> bool {
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
