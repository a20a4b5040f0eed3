//! Reads the lines of a stream, parses them into messages and groups them into chunks, each of which is worked on as a
//! whole. A line that is longer than allowed is skipped and never held in memory. Blank lines mean nothing.

use std::io::{self, BufRead, Read};

use feed::Rejection;

/// The most lines of a chunk: enough to fill its transactions and to keep many of them in flight.
const MAX_CHUNK_LINES: u64 = 4_000;
/// A chunk ends with the line that brings it to this many bytes, so that very long lines do not fill the memory.
const MAX_CHUNK_BYTES: u64 = 16 * 1_024 * 1_024;
/// What some programs write before UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// The bytes of the longest line ending, `\r\n`.
const MAX_ENDING_BYTES: u64 = 2;

/// Parses a line into a message.
pub(super) type Parse<M> = Box<dyn FnMut(&str) -> Result<M, Rejection> + Send>;

/// Consecutive lines. Each message and each refusal carries its line number, counted from 1.
#[derive(Debug)]
pub(crate) struct Chunk<M> {
    pub(crate) messages: Vec<(u64, M)>,
    pub(crate) refused: Vec<(u64, Rejection)>,
    pub(super) lines: u64,
    pub(super) bytes: u64,
}

/// Splits a stream into chunks. If reading fails, the lines read so far come first, and the error follows.
pub(super) struct Chunks<R, M> {
    lines: Lines<R>,
    parse: Parse<M>,
    lines_read: u64,
    has_begun: bool,
    error: Option<io::Error>,
}

impl<R: BufRead, M> Chunks<R, M> {
    /// Reads lines of at most `max_bytes` bytes each, not counting their endings.
    pub(super) fn new(stream: R, max_bytes: usize, parse: Parse<M>) -> Self {
        let lines = Lines { stream, max_bytes, buffer: Vec::new() };
        Self { lines, parse, lines_read: 0, has_begun: false, error: None }
    }

    fn next_chunk(&mut self) -> io::Result<Option<Chunk<M>>> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        if !std::mem::replace(&mut self.has_begun, true) {
            self.lines.begin()?;
        }
        let mut chunk = Chunk { messages: Vec::new(), refused: Vec::new(), lines: 0, bytes: 0 };
        while chunk.lines < MAX_CHUNK_LINES && chunk.bytes < MAX_CHUNK_BYTES {
            match self.lines.next() {
                Ok(Some(line)) => {
                    self.lines_read += 1;
                    chunk.add(self.lines_read, line, &mut self.parse);
                }
                Ok(None) => break,
                Err(error) if chunk.lines == 0 => return Err(error),
                Err(error) => {
                    self.error = Some(error);
                    break;
                }
            }
        }
        Ok((chunk.lines > 0).then_some(chunk))
    }
}

impl<R: BufRead, M> Iterator for Chunks<R, M> {
    type Item = io::Result<Chunk<M>>;

    fn next(&mut self) -> Option<io::Result<Chunk<M>>> {
        self.next_chunk().transpose()
    }
}

impl<M> Chunk<M> {
    fn add(&mut self, number: u64, line: Line<'_>, parse: &mut Parse<M>) {
        self.lines += 1;
        self.bytes += line.bytes;
        if line.text.as_ref().is_ok_and(|text| text.trim_ascii().is_empty()) {
            return;
        }
        match line.text.map_err(|reason| Rejection::new("", reason)).and_then(parse) {
            Ok(message) => self.messages.push((number, message)),
            Err(rejection) => self.refused.push((number, rejection)),
        }
    }
}

/// Reads lines one by one into one buffer.
struct Lines<R> {
    stream: R,
    max_bytes: usize,
    buffer: Vec<u8>,
}

/// A line and its length in the stream.
#[derive(Debug, PartialEq, Eq)]
struct Line<'a> {
    /// The text without its line ending, or why it cannot hold a message.
    text: Result<&'a str, String>,
    /// Its bytes in the stream, line ending included.
    bytes: u64,
}

impl<R: BufRead> Lines<R> {
    /// Passes over a byte order mark. Fails if the stream is something else than lines, each of which would be refused.
    fn begin(&mut self) -> io::Result<()> {
        let head = self.stream.fill_buf()?;
        let mark = if head.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        if let Some(what) = other_than_lines(&head[mark..]) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        self.stream.consume(mark);
        Ok(())
    }

    /// Returns the next line, or `None` at the end.
    fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.buffer.clear();
        let longest = self.max_bytes as u64 + MAX_ENDING_BYTES;
        let mut bytes = (&mut self.stream).take(longest).read_until(b'\n', &mut self.buffer)? as u64;
        if bytes == 0 {
            return Ok(None);
        }
        if !self.buffer.ends_with(b"\n") && bytes == longest {
            bytes += self.stream.skip_until(b'\n')? as u64;
            return Ok(Some(Line { text: Err(too_long(self.max_bytes)), bytes }));
        }
        let line = self.buffer.strip_suffix(b"\n").unwrap_or(&self.buffer);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        Ok(Some(Line { text: readable(line, self.max_bytes), bytes }))
    }
}

fn readable(line: &[u8], max_bytes: usize) -> Result<&str, String> {
    if line.len() > max_bytes {
        return Err(too_long(max_bytes));
    }
    str::from_utf8(line).map_err(|_| "must be UTF-8".to_owned())
}

/// Returns what a stream is that begins like this, and what to do, if it does not hold one message per line.
fn other_than_lines(head: &[u8]) -> Option<&'static str> {
    let first = head.trim_ascii_start().split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
    match first {
        [0x1f, 0x8b, ..] => {
            Some("it is compressed: unpack it first, for example with `gunzip -c`, or give it as a file")
        }
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("it is UTF-16: convert it to UTF-8 first"),
        [b'[', ..] | [b'{', b'\n' | b'\r', ..] => {
            Some("it is one JSON document and not one message per line: make lines of it, for example with `jq -c`")
        }
        _ => None,
    }
}

fn too_long(max_bytes: usize) -> String {
    format!("must have at most {max_bytes} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use common::timestamp::Timestamp;
    use feed::{MAX_MESSAGE_BYTES, Message, parse};
    use std::io::BufReader;

    const REMOVED: &str = "{\"type\":\"item\",\"id\":\"ak-47\",\"removed\":true,\"version\":2}\n";
    const MAX_LINE_BYTES: usize = 1_000;

    /// A stream that cannot be read.
    struct BrokenStream;

    impl Read for BrokenStream {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::ConnectionReset.into())
        }
    }

    fn chunks<R: Read>(stream: R) -> Chunks<BufReader<R>, Message> {
        let parse = |line: &str| parse(line, Timestamp::from_millis(0));
        Chunks::new(BufReader::new(stream), MAX_MESSAGE_BYTES, Box::new(parse))
    }

    fn lines<R>(stream: R) -> Lines<R> {
        Lines { stream, max_bytes: MAX_LINE_BYTES, buffer: Vec::new() }
    }

    /// Reads every line of the stream through a buffer of seven bytes, so that longer lines take several reads. A line
    /// that cannot hold a message is shown as the reason in brackets.
    fn read(stream: &[u8]) -> Vec<String> {
        let mut lines = lines(BufReader::with_capacity(7, stream));
        let (mut found, mut bytes) = (Vec::new(), 0);
        while let Some(line) = lines.next().unwrap() {
            bytes += line.bytes;
            found.push(line.text.map_or_else(|reason| format!("<{reason}>"), str::to_owned));
        }
        assert!(bytes <= stream.len() as u64);
        found
    }

    #[test]
    fn good_lines_are_kept_and_bad_ones_named_by_number_and_field() {
        let stream = format!("{REMOVED}nonsense\n\n{{\"type\":\"item\",\"id\":\"ak 47\",\"version\":1}}\n{REMOVED}");
        let chunk = chunks(stream.as_bytes()).next().unwrap().unwrap();
        assert_eq!(chunk.messages.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 5]);
        let refused: Vec<_> = chunk.refused.iter().map(|(line, rejection)| (*line, rejection.field.as_str())).collect();
        assert_eq!(refused, [(2, ""), (4, "id")]);
        assert_eq!((chunk.lines, chunk.bytes), (5, stream.len() as u64));
    }

    #[test]
    fn line_numbers_go_on_from_chunk_to_chunk() {
        let stream = REMOVED.repeat(9_000);
        let found: Vec<_> = chunks(stream.as_bytes()).map(Result::unwrap).collect();
        assert_eq!(found.iter().map(|chunk| chunk.lines).collect::<Vec<_>>(), [4_000, 4_000, 1_000]);
        assert_eq!(found[2].messages.last().unwrap().0, 9_000);
    }

    #[test]
    fn what_was_read_before_an_error_comes_first() {
        let mut chunks = chunks(REMOVED.as_bytes().chain(BrokenStream));
        assert_eq!(chunks.next().unwrap().unwrap().lines, 1);
        assert_eq!(chunks.next().unwrap().unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    }

    #[test]
    fn a_last_line_needs_no_ending_and_an_ending_may_be_that_of_windows() {
        for (stream, expected) in [
            (&b""[..], &[][..]),
            (b"{1}", &["{1}"]),
            (b"{1}\n{2}", &["{1}", "{2}"]),
            (b"{1}\r\n{2}\r\n", &["{1}", "{2}"]),
            (b"{1}\r\n\r\n{2}", &["{1}", "", "{2}"]),
            (b"{1}\n\xff\xfe\n{2}\n", &["{1}", "<must be UTF-8>", "{2}"]),
        ] {
            assert_eq!(read(stream), expected, "{}", stream.escape_ascii());
        }
    }

    #[test]
    fn what_is_no_lines_is_named_once() {
        let [gzip, utf_16] = [&b"\x1f\x8b\x08\0"[..], b"\xff\xfe{\0"];
        for (stream, what) in [
            (gzip, "compressed"),
            (utf_16, "UTF-16"),
            (b"\n[{\"type\":\"item\"}]", "one JSON document"),
            (b"{\n  \"type\": \"item\"\n}\n", "one JSON document"),
            (b"{\r\n", "one JSON document"),
            (b"\xef\xbb\xbf[\n", "one JSON document"),
        ] {
            let error = chunks(stream).next().unwrap().unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
        for stream in [&b""[..], b"{", b"nonsense\n["] {
            assert!(chunks(stream).all(|chunk| chunk.is_ok()), "{}", stream.escape_ascii());
        }
        let marked = chunks(&[BYTE_ORDER_MARK, REMOVED.as_bytes()].concat()[..]).next().unwrap().unwrap();
        assert_eq!((marked.messages.len(), marked.refused.len()), (1, 0));
    }

    #[test]
    fn the_longest_line_is_read_and_a_longer_one_is_not_held() {
        let longest = "é".repeat(MAX_LINE_BYTES / 2);
        for ending in ["", "\n", "\r\n", "\n{2}", "\r\n{2}"] {
            let found = read(format!("{longest}{ending}").as_bytes());
            assert_eq!(found[0].len(), MAX_LINE_BYTES);
            assert_eq!(found.len(), if ending.ends_with('}') { 2 } else { 1 });
        }
        for extra in [1, 2, 3, 1_000_000] {
            let stream = format!("{longest}{}\n{{2}}\n", "x".repeat(extra));
            let mut long = lines(stream.as_bytes());
            let line = long.next().unwrap().unwrap();
            assert_eq!(line, Line { text: Err(too_long(MAX_LINE_BYTES)), bytes: (MAX_LINE_BYTES + extra + 1) as u64 });
            assert_eq!(long.next().unwrap().unwrap().text, Ok("{2}"));
            assert!(long.buffer.capacity() <= 4 * MAX_LINE_BYTES);
        }
        assert_eq!(read(format!("{longest}xxx").as_bytes()), ["<must have at most 1000 bytes>"]);
    }
}
