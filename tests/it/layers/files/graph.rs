//! The files of a crate as a graph, and the cycles in it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::source::Crate;

/// Files, the files that each of them depends on, and for each of those a path that it uses from there.
pub(super) type Graph = BTreeMap<String, BTreeMap<String, String>>;

impl Crate {
    pub(super) fn graph(&self) -> Graph {
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
pub(super) fn cycle(graph: &Graph) -> Option<String> {
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
