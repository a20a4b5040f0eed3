//! Text for people: tables, times, and text of unknown origin.

use types::timestamp::Timestamp;

pub(crate) use terminal::{printable, table};

/// The most characters that are quoted of a text of any length.
const MAX_QUOTED_CHARS: usize = 300;

/// Formats a time to the minute: a table has no room for more.
pub(crate) fn minute(at: Option<Timestamp>) -> String {
    let Some(at) = at else { return "-".to_owned() };
    let mut text = at.to_string().replace('T', " ");
    text.truncate("YYYY-MM-DD HH:MM".len());
    text.push('Z');
    text
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
