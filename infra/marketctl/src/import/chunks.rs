//! Lines parsed and gathered into chunks, as much as is written at a time.

use std::io::{self, BufRead};
use std::sync::Arc;

use shared::clock::Clock;
use shared::feed::{Message, parse};
use shared::timestamp::Timestamp;

use super::lines::{Line, Lines};
use super::report::Refusal;

/// Enough lines to fill the transactions of a chunk and to keep many of them going.
const MAX_LINES: u64 = 4_000;
/// Keeps chunks of very long lines small in memory.
const MAX_BYTES: u64 = 16 * 1_024 * 1_024;

/// Consecutive lines, parsed.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    /// Each with its line number, from 1.
    pub(super) messages: Vec<(u64, Message)>,
    pub(super) refused: Vec<Refusal>,
    pub(super) lines: u64,
    pub(super) bytes: u64,
}

/// Cuts a stream into chunks. What was read before an error comes first, then the error.
pub(super) struct Chunks<R> {
    lines: Lines<R>,
    clock: Arc<dyn Clock>,
    read: u64,
    error: Option<io::Error>,
}

impl<R: BufRead> Chunks<R> {
    pub(super) fn of(stream: R, clock: Arc<dyn Clock>) -> Self {
        Self { lines: Lines::of(stream), clock, read: 0, error: None }
    }

    fn gather(&mut self) -> io::Result<Option<Chunk>> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let (mut chunk, now) = (Chunk::default(), self.clock.now());
        while chunk.lines < MAX_LINES && chunk.bytes < MAX_BYTES {
            match self.lines.next() {
                Ok(Some(line)) => {
                    self.read += 1;
                    chunk.add(self.read, &line, now);
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

impl<R: BufRead> Iterator for Chunks<R> {
    type Item = io::Result<Chunk>;

    fn next(&mut self) -> Option<io::Result<Chunk>> {
        self.gather().transpose()
    }
}

impl Chunk {
    fn add(&mut self, number: u64, line: &Line<'_>, now: Timestamp) {
        self.lines += 1;
        self.bytes += line.bytes;
        match line.text {
            Ok(text) => match parse(text, now) {
                Ok(message) => self.messages.push((number, message)),
                Err(rejection) => self.refused.push(Refusal::of(number, &rejection)),
            },
            Err(unreadable) => self.refused.push(Refusal::whole(number, &unreadable.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::clock::ManualClock;
    use std::io::{BufReader, Read};

    const REMOVED: &str = "{\"type\":\"item\",\"id\":\"ak-47\",\"removed\":true,\"version\":2}\n";

    /// A stream that breaks off.
    struct Broken;

    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::ConnectionReset.into())
        }
    }

    fn chunks<R: Read>(stream: R) -> Chunks<BufReader<R>> {
        Chunks::of(BufReader::new(stream), Arc::new(ManualClock::at(Timestamp::from_millis(0))))
    }

    #[test]
    fn good_lines_are_kept_and_bad_ones_named_by_number_and_field() {
        let stream = format!("{REMOVED}nonsense\n\n{{\"type\":\"item\",\"id\":\"ak 47\",\"version\":1}}\n{REMOVED}");
        let chunk = chunks(stream.as_bytes()).next().unwrap().unwrap();
        assert_eq!(chunk.messages.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 5]);
        let refused: Vec<_> = chunk.refused.iter().map(|refusal| (refusal.line, refusal.field.as_str())).collect();
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
        let mut chunks = chunks(REMOVED.as_bytes().chain(Broken));
        assert_eq!(chunks.next().unwrap().unwrap().lines, 1);
        assert_eq!(chunks.next().unwrap().unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    }
}
