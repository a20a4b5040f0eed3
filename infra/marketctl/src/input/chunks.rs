//! Parses lines into messages and groups them into chunks. A chunk is worked on as a whole.

use std::io::{self, BufRead};

use feed::Rejection;

use super::lines::{InputLine, InputLines};

/// The most lines of a chunk: enough to fill its transactions and to keep many of them in flight.
const MAX_CHUNK_LINES: u64 = 4_000;
/// A chunk ends with the line that brings it to this many bytes, so that very long lines do not fill the memory.
const MAX_CHUNK_BYTES: u64 = 16 * 1_024 * 1_024;

/// Parses a line into a message.
pub(crate) type Parse<M> = Box<dyn FnMut(&str) -> Result<M, Rejection> + Send>;

/// Consecutive lines. Each message and each refusal carries its line number, counted from 1.
#[derive(Debug)]
pub(crate) struct Chunk<M> {
    pub(crate) messages: Vec<(u64, M)>,
    pub(crate) refused: Vec<(u64, Rejection)>,
    pub(crate) lines: u64,
    pub(crate) bytes: u64,
}

/// Splits a stream into chunks. If reading fails, the lines read so far come first, and the error follows.
pub(super) struct Chunks<R, M> {
    lines: InputLines<R>,
    parse: Parse<M>,
    lines_read: u64,
    error: Option<io::Error>,
}

impl<R: BufRead, M> Chunks<R, M> {
    pub(super) fn new(stream: R, max_bytes: usize, parse: Parse<M>) -> Self {
        Self { lines: InputLines::new(stream, max_bytes), parse, lines_read: 0, error: None }
    }

    fn next_chunk(&mut self) -> io::Result<Option<Chunk<M>>> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let mut chunk = Chunk { messages: Vec::new(), refused: Vec::new(), lines: 0, bytes: 0 };
        while chunk.lines < MAX_CHUNK_LINES && chunk.bytes < MAX_CHUNK_BYTES {
            match self.lines.next() {
                Ok(Some(line)) => {
                    self.lines_read += 1;
                    chunk.add(self.lines_read, &line, &mut self.parse);
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
    fn add(&mut self, number: u64, line: &InputLine<'_>, parse: &mut Parse<M>) {
        self.lines += 1;
        self.bytes += line.bytes;
        let text = line.text.map_err(|unreadable| Rejection::new("", unreadable.to_string()));
        match text.and_then(parse) {
            Ok(message) => self.messages.push((number, message)),
            Err(rejection) => self.refused.push((number, rejection)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feed::{MAX_MESSAGE_BYTES, Message, parse};
    use std::io::{BufReader, Read};
    use types::timestamp::Timestamp;

    const REMOVED: &str = "{\"type\":\"item\",\"id\":\"ak-47\",\"removed\":true,\"version\":2}\n";

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

    #[test]
    fn good_lines_are_kept_and_bad_ones_named_by_number_and_field() {
        let stream = format!("{REMOVED}nonsense\n\n{{\"type\":\"item\",\"id\":\"ak 47\",\"version\":1}}\n{REMOVED}");
        let chunk = chunks(stream.as_bytes()).next().unwrap().unwrap();
        assert_eq!(chunk.messages.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 5]);
        let refused: Vec<_> = chunk.refused.iter().map(|(line, rejection)| (*line, rejection.field.as_str())).collect();
        assert_eq!(refused, [(2, ""), (3, ""), (4, "id")]);
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
}
