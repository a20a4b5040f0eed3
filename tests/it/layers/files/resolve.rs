//! Finds the module that defines what a path leads to.

use super::source::Crate;

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
    pub(super) fn definer(&self, from: usize, path: &[String]) -> Option<usize> {
        match self.target(from, path)? {
            PathTarget::Item(module) => Some(module),
            PathTarget::Module(_) => None,
        }
    }

    /// Whether a path leads to a module of the crate.
    pub(super) fn is_module(&self, from: usize, path: &[String]) -> bool {
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
