//! Why the work ended before its input did.

use std::fmt;

/// Why the work ended before its input did.
#[derive(Debug)]
pub(crate) struct Stopped {
    /// What is done with lines, such as `sent`.
    pub(crate) done: &'static str,
    /// The last line that was read.
    pub(crate) line: u64,
    pub(crate) reason: String,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "nothing was {}: {}", self.done, self.reason),
            line => write!(f, "stopped after line {line}: {}", self.reason),
        }
    }
}
