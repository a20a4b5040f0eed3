//! Reads the lines of a stream, up to a maximum length. A longer line is skipped and never held in memory.

use std::io::{self, BufRead, Read};

use thiserror::Error;

/// The bytes of the longest line ending, `\r\n`.
const MAX_ENDING_BYTES: u64 = 2;

/// Reads lines one by one into one buffer.
pub(super) struct InputLines<R> {
    stream: R,
    max_bytes: usize,
    buffer: Vec<u8>,
}

/// A line and its length in the stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InputLine<'a> {
    /// The text without its line ending.
    pub(super) text: Result<&'a str, UnreadableLine>,
    /// Its bytes in the stream, line ending included.
    pub(super) bytes: u64,
}

/// Why a line cannot hold a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum UnreadableLine {
    #[error("must not be an empty line")]
    Empty,
    #[error("must be UTF-8")]
    NotUtf8,
    #[error("must have at most {max_bytes} bytes")]
    TooLong { max_bytes: usize },
}

impl<R: BufRead> InputLines<R> {
    /// Reads lines of at most `max_bytes` bytes each, not counting their endings.
    pub(super) fn new(stream: R, max_bytes: usize) -> Self {
        Self { stream, max_bytes, buffer: Vec::new() }
    }

    /// Returns the next line, or `None` at the end. One empty line at the very end is ignored.
    pub(super) fn next(&mut self) -> io::Result<Option<InputLine<'_>>> {
        self.buffer.clear();
        let longest = self.max_bytes as u64 + MAX_ENDING_BYTES;
        let mut bytes = (&mut self.stream).take(longest).read_until(b'\n', &mut self.buffer)? as u64;
        if bytes == 0 {
            return Ok(None);
        }
        let ended = self.buffer.ends_with(b"\n");
        if !ended && bytes == longest {
            bytes += self.stream.skip_until(b'\n')? as u64;
            return Ok(Some(InputLine { text: Err(UnreadableLine::TooLong { max_bytes: self.max_bytes }), bytes }));
        }
        let text = without_ending(&self.buffer);
        if text.is_empty() && self.stream.fill_buf()?.is_empty() {
            return Ok(None);
        }
        Ok(Some(InputLine { text: readable(text, self.max_bytes), bytes }))
    }
}

fn without_ending(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn readable(text: &[u8], max_bytes: usize) -> Result<&str, UnreadableLine> {
    if text.len() > max_bytes {
        return Err(UnreadableLine::TooLong { max_bytes });
    }
    if text.is_empty() {
        return Err(UnreadableLine::Empty);
    }
    str::from_utf8(text).map_err(|_| UnreadableLine::NotUtf8)
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
