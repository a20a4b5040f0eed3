//! Reads a leaked text that may be a key.

use std::io::{self, Read};

use auth::{KeyText, KeyTextError};
use serde_json::json;
use thiserror::Error;

use crate::failure::CommandFailure;
use crate::input::Source;

/// More than a key and the white space around it.
const MAX_BYTES: u64 = 4_096;

/// Why a text was not identified as a key. No error repeats the text.
#[derive(Debug, Error)]
pub(super) enum IdentifyError {
    #[error("standard input cannot be read: {0}")]
    Unread(io::Error),
    #[error("the text is not an API key")]
    NotAKey,
    #[error("the text looks like an API key, but its checksum is wrong")]
    WrongChecksum,
    #[error("no key of this stack has this text")]
    Unknown,
}

impl IdentifyError {
    /// Returns the name by which programs tell what the text is.
    fn reason(&self) -> &'static str {
        match self {
            Self::Unread(_) => "unread",
            Self::NotAKey => "not_a_key",
            Self::WrongChecksum => "wrong_checksum",
            Self::Unknown => "unknown",
        }
    }
}

impl From<KeyTextError> for IdentifyError {
    fn from(error: KeyTextError) -> Self {
        match error {
            KeyTextError::NotAKey => Self::NotAKey,
            KeyTextError::WrongChecksum => Self::WrongChecksum,
        }
    }
}

impl From<IdentifyError> for CommandFailure {
    fn from(error: IdentifyError) -> Self {
        let hint = match &error {
            IdentifyError::Unread(_) => "Give the text on standard input.",
            IdentifyError::NotAKey => {
                "A key is `sk_` and 49 letters and digits. Give it alone, without quotes and without other text."
            }
            IdentifyError::WrongChecksum => {
                "No stack has a key with this text: a character is wrong, or somebody made it up."
            }
            IdentifyError::Unknown => {
                "Its checksum is right, so it may be a key of another stack: name that with --stack. Every stack refuses a key that it does not have."
            }
        };
        let reason = json!(error.reason());
        Self::new(error.to_string(), hint).with_member("reason", reason)
    }
}

/// Reads a key.
pub(super) fn read_key(source: &Source) -> Result<KeyText, CommandFailure> {
    let mut bytes = Vec::new();
    source.open()?.stream.take(MAX_BYTES).read_to_end(&mut bytes).map_err(IdentifyError::Unread)?;
    Ok(parse(&bytes)?)
}

fn parse(bytes: &[u8]) -> Result<KeyText, IdentifyError> {
    let text = str::from_utf8(bytes).map_err(|_| IdentifyError::NotAKey)?;
    Ok(KeyText::examine(text.trim())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_a_key_with_white_space_around_it_or_none() {
        let key = KeyText::from_bits([7; 32]);
        let text = key.reveal();
        assert_eq!(parse(format!(" {text}\r\n").as_bytes()).unwrap(), key);
        let mistyped = text.replacen("sk_1", "sk_2", 1);
        for (bytes, reason) in [
            (mistyped.as_bytes(), "wrong_checksum"),
            (&text.as_bytes()[..51], "not_a_key"),
            (format!("Bearer {text}").as_bytes(), "not_a_key"),
            (&b"\xff"[..], "not_a_key"),
            (&b""[..], "not_a_key"),
        ] {
            let refused = parse(bytes).unwrap_err();
            assert_eq!(refused.reason(), reason);
            let failure = CommandFailure::from(refused);
            assert_eq!(failure.document()["reason"], reason);
            assert!(!failure.text().contains(&text[3..10]));
        }
    }
}
