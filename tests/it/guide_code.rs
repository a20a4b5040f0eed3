//! The code in the guides is the code of programs in `docs`, which tests run.

use std::collections::BTreeMap;
use std::fs;

const DOCS_DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");

/// Returns the text of a file in `docs`.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(format!("{DOCS_DIR}/{path}")).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the regions of a program by name, as `program: name`. The pieces of one region are joined by an empty
/// line.
fn regions(program: &str) -> BTreeMap<String, String> {
    let mut pieces = BTreeMap::<String, Vec<String>>::new();
    let text = read(program);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(name) = remark(line).and_then(|remark| remark.strip_prefix("region: ")) else { continue };
        let piece: Vec<_> = lines.by_ref().take_while(|line| remark(line) != Some("endregion")).collect();
        pieces.entry(format!("{program}: {name}")).or_default().push(piece.join("\n").trim_matches('\n').to_owned());
    }
    pieces.into_iter().map(|(name, pieces)| (name, pieces.join("\n\n"))).collect()
}

/// Returns the text of a line that is a comment.
fn remark(line: &str) -> Option<&str> {
    line.strip_prefix("// ").or_else(|| line.strip_prefix("# "))
}

/// Returns the guide's blocks of code: the source that the comment before a block names, if any, its language, and
/// its text.
pub(crate) fn blocks(guide: &str) -> Vec<(Option<&str>, &str, String)> {
    let (mut blocks, mut before) = (Vec::new(), "");
    let mut lines = guide.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let text: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
            let source = before.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
            blocks.push((source, language, text.join("\n")));
        }
        before = line;
    }
    blocks
}

/// Asserts that all code of a guide in these languages is that of these programs. Each program must have
/// `regions_each` regions, and the guide must show all of them.
pub(crate) fn assert_shows(guide: &str, programs: &[&str], languages: &[&str], regions_each: usize) {
    let mut regions: BTreeMap<_, _> = programs.iter().flat_map(|program| regions(program)).collect();
    assert_eq!(regions.len(), regions_each * programs.len(), "{:?}", regions.keys());
    for (source, language, text) in blocks(guide) {
        assert_eq!(source.is_some(), languages.contains(&language), "a block of {language} from {source:?}");
        if let Some(source) = source {
            let region =
                regions.remove(source).unwrap_or_else(|| panic!("{source} is not a region, or is in the guide twice"));
            assert_eq!(text, region, "{source}");
        }
    }
    assert_eq!(regions.into_keys().collect::<Vec<_>>(), Vec::<String>::new(), "only in the programs");
}
