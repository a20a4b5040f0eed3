//! What the programs for people show on a terminal: tables, and progress bars. `local`, `marketctl` and `bench` share it.

use std::borrow::Cow;
use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use indicatif::{HumanCount, ProgressBar, ProgressStyle};

const TICK_INTERVAL: Duration = Duration::from_millis(200);

/// Formats rows under a header, with aligned columns.
pub fn table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    aligned(header, rows, CellAlignment::Left)
}

/// Formats rows under a header. The first column holds names; the others hold numbers and are aligned to the right.
pub fn number_table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    aligned(header, rows, CellAlignment::Right)
}

fn aligned<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
    alignment: CellAlignment,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    table.add_rows(rows.into_iter().map(|row| row.map(|cell| printable(&cell))));
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(alignment));
    table.trim_fmt()
}

/// Puts the text on one line and replaces control characters, which could change the terminal's state.
pub fn printable(text: &str) -> String {
    let shown = |c: char| match c {
        c if c.is_whitespace() => ' ',
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    text.chars().map(shown).collect()
}

/// Formats a number with commas between thousands.
pub fn count(number: u64) -> String {
    HumanCount(number).to_string()
}

/// A progress bar on standard error. It shows nothing if that is not a terminal, and goes away when it is dropped.
pub struct Bar(ProgressBar);

impl Bar {
    /// Shows a bar of this length in the form of a template of `indicatif`.
    pub fn new(template: &str, length: u64) -> Self {
        Self::ticking(ProgressBar::new(length), template)
    }

    /// Shows that something is going on whose length is not known.
    pub fn spinner(template: &str) -> Self {
        Self::ticking(ProgressBar::new_spinner(), template)
    }

    fn ticking(bar: ProgressBar, template: &str) -> Self {
        let bar = Self(bar);
        bar.set_template(template);
        bar.0.enable_steady_tick(TICK_INTERVAL);
        bar
    }

    /// Changes its form.
    pub fn set_template(&self, template: &str) {
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.0.set_style(style);
        }
    }

    /// Changes the text of `{msg}` in its template.
    pub fn set_message(&self, message: impl Into<Cow<'static, str>>) {
        self.0.set_message(message);
    }

    /// Adds what has been done since the last call.
    pub fn advance(&self, done: u64) {
        self.0.inc(done);
    }

    /// Shows how much has been done in all, and how much there is to do.
    pub fn show(&self, done: u64, of: u64) {
        self.0.set_length(of);
        self.0.set_position(done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
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
}
