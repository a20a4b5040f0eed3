//! The lines of a stream, each of them bounded: one that is too long is skipped over, never held.

use std::io::{self, BufRead, Read};

use shared::feed::MAX_MESSAGE_BYTES;
use thiserror::Error;

/// The longest line with its line ending, `\r\n`.
const LONGEST: u64 = MAX_MESSAGE_BYTES as u64 + 2;

/// Reads lines one by one into one buffer.
pub(super) struct Lines<R> {
    stream: R,
    buffer: Vec<u8>,
}

/// A line and what it took to read it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// The text without its line ending.
    pub(super) text: Result<&'a str, Unreadable>,
    /// Its bytes in the stream, line ending included.
    pub(super) bytes: u64,
}

/// Why a line cannot hold a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum Unreadable {
    #[error("must not be an empty line")]
    Empty,
    #[error("must be UTF-8")]
    NotUtf8,
    #[error("must have at most {MAX_MESSAGE_BYTES} bytes")]
    TooLong,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn of(stream: R) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    /// The next line; none at the end, before which one empty line may stand.
    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.buffer.clear();
        let mut bytes = (&mut self.stream).take(LONGEST).read_until(b'\n', &mut self.buffer)? as u64;
        if bytes == 0 {
            return Ok(None);
        }
        let ended = self.buffer.ends_with(b"\n");
        if !ended && bytes == LONGEST {
            bytes += self.stream.skip_until(b'\n')? as u64;
            return Ok(Some(Line { text: Err(Unreadable::TooLong), bytes }));
        }
        let text = without_ending(&self.buffer);
        if text.is_empty() && self.stream.fill_buf()?.is_empty() {
            return Ok(None);
        }
        Ok(Some(Line { text: readable(text), bytes }))
    }
}

fn without_ending(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn readable(text: &[u8]) -> Result<&str, Unreadable> {
    if text.len() > MAX_MESSAGE_BYTES {
        return Err(Unreadable::TooLong);
    }
    if text.trim_ascii().is_empty() {
        return Err(Unreadable::Empty);
    }
    str::from_utf8(text).map_err(|_| Unreadable::NotUtf8)
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
