//! What the programs for people show on a terminal: results, tables, and progress bars. `local`, `marketctl` and `bench`
//! share it.

mod layout;

use std::borrow::Cow;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::timestamp::Timestamp;
use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use serde::Serialize;
use thiserror::Error;

pub use layout::{details, number_table, state, table};

const TICK_INTERVAL: Duration = Duration::from_millis(200);
/// Whether progress bars stay hidden.
static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// The form in which a program prints its results: text and tables for people, or one JSON document for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    Text,
    Json,
}

/// A result that standard output did not take.
#[derive(Debug, Error)]
#[error(transparent)]
pub struct NotPrinted(#[from] io::Error);

impl From<NotPrinted> for String {
    fn from(error: NotPrinted) -> Self {
        error.to_string()
    }
}

impl Output {
    pub const fn from_json_flag(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }

    /// Prints a result to standard output.
    pub fn print<D: Serialize>(self, document: &D, text: impl FnOnce(&D) -> String) -> Result<(), NotPrinted> {
        let result = match self {
            Self::Text => text(document),
            Self::Json => escaped(&serde_json::to_string(document).map_err(io::Error::from)?),
        };
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{result}")?;
        Ok(stdout.flush()?)
    }

    /// Prints a part of the results as soon as it is known, for people, who are waiting.
    pub fn part(self, text: impl FnOnce() -> String) {
        if self == Self::Text {
            println!("{}\n", text());
        }
    }

    /// Prints the whole result for programs. People have seen its parts.
    pub fn whole<D: Serialize>(self, document: &D) -> Result<(), NotPrinted> {
        match self {
            Self::Text => Ok(()),
            Self::Json => self.print(document, |_| String::new()),
        }
    }
}

/// Escapes the control characters that JSON does not, DEL and C1 (U+007F to U+009F). Some terminals obey them.
pub fn escaped(json: &str) -> String {
    let shown = |c: char| if c.is_control() { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    if json.contains(char::is_control) { json.chars().map(shown).collect() } else { json.to_owned() }
}

/// Puts the text on one line. Replaces control characters, which could change the terminal's state, and format
/// characters (Unicode's category Cf), which are invisible or turn the order of what stands beside them around.
pub fn printable(text: &str) -> String {
    let shown = |c: char| match c {
        c if c.is_whitespace() => ' ',
        '\u{ad}'
        | '\u{600}'..='\u{605}'
        | '\u{61c}'
        | '\u{6dd}'
        | '\u{70f}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => char::REPLACEMENT_CHARACTER,
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    text.chars().map(shown).collect()
}

/// Formats a time to the second.
pub fn second(at: Option<Timestamp>) -> String {
    let Some(at) = at else { return "-".to_owned() };
    let mut text = at.to_string();
    text.truncate("YYYY-MM-DDTHH:MM:SS".len());
    text.push('Z');
    text
}

/// Formats a number with commas between thousands.
pub fn count(number: u64) -> String {
    HumanCount(number).to_string()
}

/// Hides the progress bars that begin from now on.
pub fn hide_progress() {
    IS_QUIET.store(true, Ordering::Relaxed);
}

/// Says on standard error what a program does for some seconds, if there is no terminal to show a bar.
pub fn say_without_terminal(what: &str) {
    if !IS_QUIET.load(Ordering::Relaxed) && !io::stderr().is_terminal() {
        // Nobody may be reading.
        let _ = writeln!(io::stderr(), "{what}");
    }
}

/// A progress bar on standard error. It shows nothing if that is not a terminal, and goes away when it is dropped.
pub struct Bar(ProgressBar);

impl Bar {
    /// Shows a bar of this length in the form of a template of `indicatif`, to which `{left}` adds how long it takes.
    pub fn new(template: &str, length: u64) -> Self {
        Self::ticking(ProgressBar::new(length), template)
    }

    /// Shows that something is going on whose length is not known.
    pub fn spinner(template: &str) -> Self {
        Self::ticking(ProgressBar::new_spinner(), template)
    }

    fn ticking(bar: ProgressBar, template: &str) -> Self {
        let bar = Self(bar);
        if IS_QUIET.load(Ordering::Relaxed) {
            bar.0.set_draw_target(ProgressDrawTarget::hidden());
        }
        bar.set_template(template);
        bar.0.enable_steady_tick(TICK_INTERVAL);
        bar
    }

    /// Changes its form.
    pub fn set_template(&self, template: &str) {
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.0.set_style(style.with_key("left", left));
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

/// Writes how long it still takes, once that can be told.
fn left(state: &ProgressState, text: &mut dyn fmt::Write) {
    if state.pos() > 0 && state.len().is_some_and(|len| state.pos() < len) {
        // If there is no room for it, the bar shows the rest.
        let _ = write!(text, ", {:#} left", HumanDuration(state.eta()));
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
        for hidden in ['\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}', '\u{e0041}'] {
            assert_eq!(printable(&format!("a{hidden}b")), "a\u{fffd}b");
        }
    }

    #[test]
    fn json_has_no_control_characters_and_means_the_same() {
        let name = "\u{9b}2J\u{7f}ü\n";
        let text = escaped(&serde_json::to_string(name).unwrap());
        assert!(!text.chars().any(char::is_control), "{text}");
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), name);
    }

    #[test]
    fn a_time_is_shown_to_the_second() {
        assert_eq!(second(None), "-");
        assert_eq!(second("2026-11-20T10:00:59.999Z".parse().ok()), "2026-11-20T10:00:59Z");
    }
}
