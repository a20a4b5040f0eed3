//! Writes the members of a JSON object one after another. Log lines are put together from them.

use std::error::Error;
use std::fmt::Debug;

use serde::Serialize;
use tracing::field::{Field, Visit};

/// The members of a JSON object in the order in which they were added, without the braces. The caller must not add a
/// name twice.
#[derive(Debug, Default)]
pub(crate) struct Members(String);

impl Members {
    /// Appends a member. A value that JSON cannot hold becomes `null`.
    pub(crate) fn push(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        let json = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
        self.separate();
        self.0.push_str(&serde_json::Value::from(name).to_string());
        self.0.push(':');
        self.0.push_str(&json);
    }

    /// Appends members that are already written as text.
    pub(crate) fn extend(&mut self, members: &str) {
        if !members.is_empty() {
            self.separate();
            self.0.push_str(members);
        }
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }

    fn separate(&mut self) {
        if !self.0.is_empty() {
            self.0.push(',');
        }
    }
}

/// Appends each field of a `tracing` event.
impl Visit for Members {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.push(field.name(), &value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.push(field.name(), &value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.push(field.name(), &value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.push(field.name(), &value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.push(field.name(), value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.push(field.name(), &value.to_string());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.push(field.name(), &format!("{value:?}"));
    }
}
