//! Tables and lists of details, as wide as the terminal allows. A table that is too wide becomes a list of its rows, so
//! that ids can still be copied.

use console::{Style, measure_text_width};
use textwrap::{Options, WordSeparator, WordSplitter};

use crate::printable;

/// What stands between two columns.
const GAP: &str = "  ";
/// The columns whose cells begin with the state of something.
const STATE_COLUMNS: [&str; 2] = ["STATUS", "STATE"];
/// The room that a value gets at least, however narrow the terminal is.
const MIN_VALUE_WIDTH: usize = 20;

/// Formats rows under a header, with aligned columns.
pub fn table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    Layout::new(header, rows).fit(columns(), false)
}

/// Formats rows under a header. The first column holds names; the others hold numbers and are aligned to the right.
pub fn number_table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    Layout::new(header, rows).fit(columns(), true)
}

/// Formats what is known of one thing, a line for each fact.
pub fn details<const N: usize>(facts: [(&str, String); N]) -> String {
    let shown = |what: &str, value: &str| {
        let value = printable(value);
        if what.eq_ignore_ascii_case("status") { state(&value) } else { value }
    };
    let facts = facts.map(|(what, value)| (what, shown(what, &value)));
    listed(&facts, columns())
}

/// Returns the text in the colour of the state that is its first word. Without such a word, and where colours are not
/// wanted, it stays as it is.
pub fn state(text: &str) -> String {
    let word = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next().unwrap_or_default();
    let style = match word {
        "ok" | "enabled" | "active" | "delivered" => Style::new().green(),
        "failed" | "disabled" | "revoked" | "expired" => Style::new().red(),
        "pending" | "held" | "replaced" | "failing" | "slow" | "full" => Style::new().yellow(),
        _ => return text.to_owned(),
    };
    format!("{}{}", style.apply_to(word), &text[word.len()..])
}

/// Returns how many columns the terminal has. `COLUMNS` goes first, as with many programs. Nothing is returned if standard
/// output is no terminal.
fn columns() -> Option<usize> {
    let named = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    named.or_else(|| console::Term::stdout().size_checked().map(|(_, columns)| columns.into()))
}

struct Layout<const N: usize> {
    header: [String; N],
    rows: Vec<[String; N]>,
    widths: [usize; N],
}

impl<const N: usize> Layout<N> {
    fn new(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> Self {
        let header = header.map(str::to_owned);
        let rows: Vec<_> = rows.into_iter().map(|row| row.map(|cell| printable(&cell))).collect();
        let widest = |column: usize| {
            let cells = rows.iter().chain([&header]).map(|row| measure_text_width(&row[column]));
            cells.max().unwrap_or_default()
        };
        Self { widths: std::array::from_fn(widest), header, rows }
    }

    fn fit(&self, columns: Option<usize>, is_right_aligned: bool) -> String {
        let width = self.widths.iter().sum::<usize>() + GAP.len() * N.saturating_sub(1);
        if columns.is_some_and(|columns| columns < width) {
            return self.records(columns);
        }
        let lines = [&self.header].into_iter().chain(&self.rows).map(|row| self.line(row, is_right_aligned));
        lines.collect::<Vec<_>>().join("\n")
    }

    fn line(&self, row: &[String; N], is_right_aligned: bool) -> String {
        let cells = row.iter().zip(self.widths).enumerate().map(|(column, (cell, width))| {
            let padding = " ".repeat(width - measure_text_width(cell));
            let cell = self.shown(column, cell);
            if is_right_aligned && column > 0 { padding + &cell } else { cell + &padding }
        });
        cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
    }

    /// Returns each row as a list of its cells. Those that say nothing are left out.
    fn records(&self, columns: Option<usize>) -> String {
        let records = self.rows.iter().map(|row| {
            let cells = self.header.iter().zip(row).enumerate().filter(|(_, (_, cell))| *cell != "-");
            let facts: Vec<_> = cells.map(|(column, (name, cell))| (name.as_str(), self.shown(column, cell))).collect();
            listed(&facts, columns)
        });
        records.collect::<Vec<_>>().join("\n\n")
    }

    fn shown(&self, column: usize, cell: &str) -> String {
        if STATE_COLUMNS.contains(&self.header[column].as_str()) { state(cell) } else { cell.to_owned() }
    }
}

/// Returns a line for each fact. Long values are wrapped.
fn listed(facts: &[(&str, String)], columns: Option<usize>) -> String {
    let names = facts.iter().map(|(name, _)| measure_text_width(name)).max().unwrap_or_default() + GAP.len();
    let room = columns.map_or(usize::MAX, |columns| columns.saturating_sub(names).max(MIN_VALUE_WIDTH));
    // A long id or URL stays whole, so that it can be copied.
    let wrapped = Options::new(room)
        .break_words(false)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation);
    let lines = facts.iter().map(|(name, value)| {
        let indent = " ".repeat(names);
        let value = textwrap::wrap(value, &wrapped).join(&format!("\n{indent}"));
        format!("{name}{}{value}", &indent[measure_text_width(name)..]).trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "6f9619ff-8b86-d011-b42d-00c04fc964ff";

    fn layout() -> Layout<3> {
        let row = |id: &str, status: &str, note: &str| [id, status, note].map(str::to_owned);
        Layout::new(["ID", "STATUS", "NOTE"], [row(ID, "held", "é é ".repeat(20).as_str()), row("b", "ok (now)", "-")])
    }

    #[test]
    fn columns_are_aligned_and_lines_have_no_space_at_their_ends() {
        let rows = [["a", "1"], ["long", "100"]].map(|row| row.map(str::to_owned));
        let layout = Layout::new(["NAME", "N"], rows);
        assert_eq!(layout.fit(None, false), "NAME  N\na     1\nlong  100");
        assert_eq!(layout.fit(Some(9), true), "NAME    N\na       1\nlong  100");
        assert!(layout.fit(Some(8), true).starts_with("NAME  a\nN     1\n\nNAME  long"));
    }

    #[test]
    fn a_table_that_is_too_wide_becomes_a_list_with_whole_ids() {
        let text = layout().fit(Some(60), false);
        assert!(text.lines().all(|line| measure_text_width(line) <= 60), "{text}");
        assert!(text.contains(&format!("ID      {ID}\n")), "{text}");
        assert!(text.ends_with("\n\nID      b\nSTATUS  ok (now)"), "{text}");
        assert_eq!(layout().fit(Some(200), false).lines().count(), 3);
    }

    #[test]
    fn a_state_has_its_colour_and_nothing_else_has_one() {
        console::set_colors_enabled(true);
        assert_eq!(state("disabled (owner)"), "\u{1b}[31mdisabled\u{1b}[0m (owner)");
        assert_eq!(state("unknown"), "unknown");
        let row = ["ok".to_owned(), "ok".to_owned()];
        let text = Layout::new(["NAME", "STATE"], [row]).fit(None, false);
        console::set_colors_enabled(false);
        assert_eq!(text, "NAME  STATE\nok    \u{1b}[32mok\u{1b}[0m");
    }
}
