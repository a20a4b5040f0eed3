//! Prints the results: aligned tables for people, or one JSON document for programs. Progress is shown on standard
//! error, if that is a terminal.

use comfy_table::{CellAlignment, Table, presets};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde::Serialize;

/// The form of the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Text,
    Json,
}

impl Output {
    pub(crate) const fn from_json_flag(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }

    /// Prints a part of the results as soon as it is known, for people, who are waiting.
    pub(crate) fn part(self, text: impl FnOnce() -> String) {
        if self == Self::Text {
            println!("{}\n", text());
        }
    }

    /// Prints the whole result for programs.
    pub(crate) fn whole<D: Serialize>(self, document: &D) -> Result<(), String> {
        if self == Self::Json {
            println!("{}", serde_json::to_string(document).map_err(text)?);
        }
        Ok(())
    }
}

/// Formats rows under a header. The first column holds names; the others hold numbers and are aligned to the right.
pub(crate) fn table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header).add_rows(rows);
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table.trim_fmt()
}

/// Turns an error into its text.
pub(crate) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Formats a number, with one decimal below ten and none above.
pub(crate) fn number(value: f64) -> String {
    if value.abs() < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// Formats bytes as megabytes.
pub(crate) fn megabytes(bytes: u64) -> String {
    number(bytes as f64 / 1e6)
}

/// Returns a progress bar, which may be one of several at the same time.
pub(crate) fn bar(bars: &MultiProgress, what: &'static str, length: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:28} {bar:32} {human_pos} of {human_len}, {per_sec}, {eta} left");
    let bar = ProgressBar::new(length).with_message(what);
    bars.add(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_have_a_decimal() {
        assert_eq!([0.04, 9.94, 9.96, 1_234.5].map(number), ["0.0", "9.9", "10", "1234"]);
    }
}
