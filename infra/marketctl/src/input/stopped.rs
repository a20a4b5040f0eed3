//! Why an import or a sending stopped before the end of its input.

use std::fmt;

/// Why an import or a sending stopped before the end of its input.
#[derive(Debug)]
pub(crate) struct Stopped {
    /// What was being done with the lines: `imported` or `sent`.
    pub(crate) action: &'static str,
    /// The number of the last line that was read; 0 if none was.
    pub(crate) line: u64,
    pub(crate) reason: String,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "nothing was {}: {}", self.action, self.reason),
            line => write!(f, "stopped after line {line}: {}", self.reason),
        }
    }
}
