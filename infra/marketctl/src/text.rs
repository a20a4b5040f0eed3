//! Text for people: tables, times, and text of unknown origin.

use comfy_table::{Table, presets};
use types::timestamp::Timestamp;

/// The most characters that are quoted of a text of any length.
const MAX_QUOTED_CHARS: usize = 300;

/// Formats rows under a header, with aligned columns.
pub(crate) fn table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    table.add_rows(rows.into_iter().map(|row| row.map(|cell| printable(&cell))));
    table.trim_fmt()
}

/// Formats a time to the minute: a table has no room for more.
pub(crate) fn minute(at: Option<Timestamp>) -> String {
    let Some(at) = at else { return "-".to_owned() };
    let mut text = at.to_string().replace('T', " ");
    text.truncate("YYYY-MM-DD HH:MM".len());
    text.push('Z');
    text
}

/// Puts the text on one line and replaces control characters, which could change the terminal's state.
pub(crate) fn printable(text: &str) -> String {
    let shown = |c: char| match c {
        c if c.is_whitespace() => ' ',
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    text.chars().map(shown).collect()
}

/// Cuts off text after [`MAX_QUOTED_CHARS`] characters: it may quote input of any length.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_reaches_the_terminal_with_an_escape_sequence() {
        let shown = table(["name"], [["\u{1b}[2Jgone\nwild".to_owned()]]);
        assert!(shown.contains("gone wild"));
        assert!(!shown.contains('\u{1b}'));
    }

    #[test]
    fn a_time_is_shown_to_the_minute() {
        assert_eq!(minute(None), "-");
        assert_eq!(minute("2026-11-20T10:00:59.999Z".parse().ok()), "2026-11-20 10:00Z");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(shortened(&"é".repeat(200_000)).chars().count(), MAX_QUOTED_CHARS + 1);
        assert_eq!(shortened("short"), "short");
    }
}
