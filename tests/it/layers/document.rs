//! Reads the drawing and the table of the crates in `ARCHITECTURE.md`.

use std::collections::{BTreeMap, BTreeSet};

const TEXT: &str = include_str!("../../../ARCHITECTURE.md");

/// Crates, and the crates of the workspace that each of them names in its manifest.
pub(super) type Uses = BTreeMap<String, BTreeSet<String>>;

/// A function's row of the table.
pub(super) struct FunctionRow {
    pub(super) uses: BTreeSet<String>,
    /// How many packages the function is built from.
    pub(super) packages: usize,
}

/// Returns the arrows of the first drawing, whose lines are such as `feed --> accounts & market`.
pub(super) fn drawing() -> Uses {
    let lines = TEXT.lines().skip_while(|line| *line != "```mermaid").skip(1).take_while(|line| *line != "```");
    let arrows = lines.filter_map(|line| line.split_once("-->"));
    arrows.map(|(from, to)| (from.trim().to_owned(), to.split('&').map(|to| to.trim().to_owned()).collect())).collect()
}

/// Returns the rows of the table of functions. Its columns are the function, the crates that it uses, and the number
/// of its packages before the common code was divided and now.
pub(super) fn functions() -> BTreeMap<String, FunctionRow> {
    let rows = TEXT.lines().skip_while(|line| !line.starts_with("| Function |")).skip(2);
    rows.take_while(|line| line.starts_with('|')).map(row).collect()
}

fn row(line: &str) -> (String, FunctionRow) {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let [name, uses, _, packages] = cells[..] else { panic!("four columns, not {line}") };
    let word = |text: &str| text.trim_matches('`').to_owned();
    let packages = packages.parse::<usize>().unwrap_or_else(|error| panic!("{error} in {line}"));
    (word(name), FunctionRow { uses: uses.split(", ").map(word).collect(), packages })
}
