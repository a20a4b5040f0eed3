//! Reads the modules of a crate from its files.

use std::collections::BTreeMap;

use syn::visit::Visit;
use syn::{Item, ItemMod};

use super::code::{Code, is_test};

/// A crate: its modules, of which the first is the root. Those of tests are left out.
pub(super) struct Crate {
    pub(super) modules: Vec<Module>,
}

pub(super) struct Module {
    pub(super) parent: Option<usize>,
    /// The file that the module stands in, seen from the folder of the root file.
    pub(super) file: String,
    pub(super) children: BTreeMap<String, usize>,
    pub(super) code: Code,
}

impl Crate {
    /// Reads a crate from its root file. `text` returns the text of a file, if there is one.
    pub(super) fn read(root: &str, text: impl Fn(&str) -> Option<String>) -> Self {
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
