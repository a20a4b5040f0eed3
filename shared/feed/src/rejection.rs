//! Why a message is not applied, and a reader of JSON whose errors name the field.

use serde::de::DeserializeOwned;
use thiserror::Error;

use super::object::Object;

/// No more offending fields than this are named beside the first.
const MAX_OTHERS: usize = 31;

/// Why a message is not applied.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field}: {reason}")]
pub struct Rejection {
    /// The offending field as a path, such as `variants[3].wear`. It is empty for the message as a whole.
    pub field: String,
    /// The rule that the field breaks.
    pub reason: String,
    /// The other offending fields, at most 31.
    pub others: Vec<BadField>,
}

/// A field that makes a message invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field}: {reason}")]
pub struct BadField {
    /// The field as a path.
    pub field: String,
    /// The rule that the field breaks.
    pub reason: String,
}

impl Rejection {
    pub fn new(field: &str, reason: impl Into<String>) -> Self {
        Self { field: field.to_owned(), reason: reason.into(), others: Vec::new() }
    }

    /// Adds those of the fields that the rejection does not name yet.
    pub(super) fn with_others(mut self, fields: Vec<BadField>) -> Self {
        let is_new = |known: &Self, bad: &BadField| {
            bad.field != known.field && known.others.iter().all(|other| other.field != bad.field)
        };
        for bad in fields {
            if self.others.len() < MAX_OTHERS && is_new(&self, &bad) {
                self.others.push(bad);
            }
        }
        self
    }
}

/// Reads a text that is one JSON object and nothing more.
pub(super) fn read<T: DeserializeOwned>(text: &str) -> Result<T, Rejection> {
    let mut json = serde_json::Deserializer::from_str(text);
    let Object(read) = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        rejection(&path, error.inner())
    })?;
    json.end().map_err(|error| rejection(".", &error))?;
    Ok(read)
}

/// Turns serde's error into a rejection that names the field. If the field is missing, unknown or repeated, its name
/// comes from serde's message.
fn rejection(path: &str, error: &serde_json::Error) -> Rejection {
    let text = error.to_string();
    let reason = text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason);
    let path = if path == "." { "" } else { path };
    let named = ["missing field `", "unknown field `", "duplicate field `"]
        .iter()
        .find_map(|start| reason.strip_prefix(start)?.split('`').next());
    let field = match named {
        Some(name) if path.is_empty() => name.to_owned(),
        Some(name) if path == name || path.ends_with(&format!(".{name}")) => path.to_owned(),
        Some(name) => format!("{path}.{name}"),
        None => path.to_owned(),
    };
    Rejection::new(&field, reason)
}
