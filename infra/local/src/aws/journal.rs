//! Keeps the messages of the queues in a file beside the tables: the emulated SQS has them only in memory.
//!
//! A message is written before its sender is answered, and its end before its consumer is. So a process that is killed
//! loses no message. What was being worked on comes again at once, as after a time-out. A power cut may take the messages
//! of the last seconds, because the file is not synced. Each start writes the file anew, without what has ended.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use common::clock::{Clock, SystemClock};
use common::timestamp::Timestamp;
use rustack_sqs_model::error::SqsError;
use rustack_sqs_model::input::SendMessageInput;
use serde::{Deserialize, Serialize};

const FILE: &str = "queues.jsonl";
/// A file of this size is emptied as soon as no message is left.
const MAX_ENDED_BYTES: u64 = 1_024 * 1_024;

/// The messages that have not ended, and their file.
pub(super) struct Journal {
    file: File,
    bytes: u64,
    next: u64,
    /// The queues of all messages that have not ended, by the numbers of the messages.
    open: BTreeMap<u64, String>,
    /// Their numbers, by the ids that the emulated SQS gave them.
    numbers: HashMap<String, u64>,
    /// What an earlier start left to be sent again, by queue.
    left: HashMap<String, Vec<Kept>>,
    /// The last sequence number of each FIFO queue.
    sequences: HashMap<String, String>,
}

/// What has happened cannot be written. Then the call fails: its sender sends the message again, or it comes again.
#[derive(Debug)]
pub(super) struct Unkept(io::Error);

/// A message, numbered in the order of sending.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) number: u64,
    /// When a consumer may receive it.
    due: Timestamp,
    pub(super) message: SendMessageInput,
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Sent(Kept),
    Ended(Vec<u64>),
}

impl From<io::Error> for Unkept {
    fn from(error: io::Error) -> Self {
        Self(error)
    }
}

impl From<Unkept> for SqsError {
    fn from(Unkept(error): Unkept) -> Self {
        Self::internal_error(format!("{FILE} cannot be written: {error}"))
    }
}

impl Journal {
    /// Opens the file in a folder, and writes it anew with the messages that have not ended.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let (path, new) = (folder.join(FILE), folder.join(format!("{FILE}.new")));
        let text = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            read => read?,
        };
        let kept = unended(&text);
        let mut written = File::create(&new)?;
        let mut bytes = 0;
        let (mut open, mut left) = (BTreeMap::new(), HashMap::<_, Vec<_>>::new());
        for kept in kept.into_values() {
            let queue = queue_name(&kept.message.queue_url).to_owned();
            open.insert(kept.number, queue.clone());
            let line = Line::Sent(kept);
            bytes += write(&mut written, &line)?;
            let Line::Sent(kept) = line else { continue };
            left.entry(queue).or_default().push(kept);
        }
        written.sync_all()?;
        fs::rename(new, &path)?;
        let file = OpenOptions::new().append(true).open(path)?;
        let next = open.keys().last().map_or(0, |last| last + 1);
        let (numbers, sequences) = (HashMap::new(), HashMap::new());
        Ok(Self { file, bytes, next, open, numbers, left, sequences })
    }

    /// Returns the messages that an earlier start left in a queue. They are returned once, to be sent to it again.
    pub(super) fn take_left(&mut self, queue: &str) -> Vec<Kept> {
        self.left.remove(queue).unwrap_or_default()
    }

    /// Adds a message. Returns its number.
    pub(super) fn add(&mut self, message: SendMessageInput) -> Result<u64, Unkept> {
        let number = self.next;
        self.next += 1;
        let queue = queue_name(&message.queue_url).to_owned();
        let due = SystemClock::new().now().plus_millis(i64::from(message.delay_seconds.unwrap_or_default()) * 1_000);
        self.bytes += write(&mut self.file, &Line::Sent(Kept { number, due, message }))?;
        self.open.insert(number, queue);
        Ok(number)
    }

    /// Adds a message that the emulated SQS has taken. If it is a duplicate in a FIFO queue, there is nothing to add.
    pub(super) fn add_taken(
        &mut self,
        message: SendMessageInput,
        id: &str,
        sequence: Option<&str>,
    ) -> Result<(), Unkept> {
        let last = self.sequences.get(queue_name(&message.queue_url)).map(String::as_str);
        if sequence.is_some() && sequence <= last {
            return Ok(());
        }
        let number = self.add(message)?;
        self.take(number, id, sequence);
        Ok(())
    }

    /// Notes under which id, and in a FIFO queue under which sequence number, the emulated SQS has taken a message.
    pub(super) fn take(&mut self, number: u64, id: &str, sequence: Option<&str>) {
        self.numbers.insert(id.to_owned(), number);
        if let (Some(sequence), Some(queue)) = (sequence, self.open.get(&number)) {
            self.sequences.insert(queue.clone(), sequence.to_owned());
        }
    }

    /// Ends the messages with these receipts.
    pub(super) fn end(&mut self, receipts: &[String]) -> Result<(), Unkept> {
        let ended = receipts.iter().filter_map(|receipt| self.numbers.remove(&message_id(receipt)?));
        let ended = ended.collect();
        self.write_ended(ended)
    }

    /// Ends all messages of a queue.
    pub(super) fn end_all(&mut self, queue: &str) -> Result<(), Unkept> {
        let ended: Vec<u64> = self.open.iter().filter(|(_, of)| *of == queue).map(|(number, _)| *number).collect();
        self.write_ended(ended)?;
        let open = &self.open;
        self.numbers.retain(|_, number| open.contains_key(number));
        Ok(())
    }

    fn write_ended(&mut self, mut ended: Vec<u64>) -> Result<(), Unkept> {
        ended.retain(|number| self.open.remove(number).is_some());
        if !ended.is_empty() {
            self.bytes += write(&mut self.file, &Line::Ended(ended))?;
        }
        if self.open.is_empty() && self.bytes > MAX_ENDED_BYTES {
            self.file.set_len(0)?;
            self.bytes = 0;
        }
        Ok(())
    }
}

impl Kept {
    /// Returns the message for the queue with this URL, which another start may have made. It waits for as long as is
    /// left of its delay.
    pub(super) fn again(self, queue_url: &str) -> SendMessageInput {
        let millis = self.due.millis() - SystemClock::new().now().millis();
        let seconds = u64::try_from(millis).unwrap_or_default().div_ceil(1_000);
        let delay_seconds = i32::try_from(seconds).ok().filter(|seconds| *seconds > 0);
        SendMessageInput { queue_url: queue_url.to_owned(), delay_seconds, ..self.message }
    }
}

/// Returns the name of a queue. Behind a proxy its URL has another host.
pub(super) fn queue_name(queue_url: &str) -> &str {
    queue_url.rsplit_once('/').map_or(queue_url, |(_, name)| name)
}

/// Returns the messages that have not ended, by their numbers. The last line may be cut off: then its sender was not
/// answered.
fn unended(text: &[u8]) -> BTreeMap<u64, Kept> {
    let mut kept = BTreeMap::new();
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        match serde_json::from_slice(line) {
            Ok(Line::Sent(sent)) => {
                kept.insert(sent.number, sent);
            }
            Ok(Line::Ended(numbers)) => numbers.iter().for_each(|number| drop(kept.remove(number))),
            Err(error) => tracing::warn!(%error, "a line of {FILE} cannot be read"),
        }
    }
    kept
}

/// Writes a line with one call. Returns its length. It begins with the line break, because the line before may have been
/// cut off.
fn write(file: &mut File, line: &Line) -> io::Result<u64> {
    let mut text = vec![b'\n'];
    serde_json::to_writer(&mut text, line)?;
    file.write_all(&text)?;
    Ok(text.len() as u64)
}

/// Returns the id of the message to which a receipt of the emulated SQS belongs.
fn message_id(receipt: &str) -> Option<String> {
    let text = String::from_utf8(STANDARD.decode(receipt).ok()?).ok()?;
    text.split_once(':').map(|(id, _)| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> SendMessageInput {
        let (queue_url, message_body) = ("http://127.0.0.1:1/000000000000/feed".to_owned(), text.to_owned());
        SendMessageInput { queue_url, message_body, ..SendMessageInput::default() }
    }

    fn left(journal: &mut Journal) -> Vec<String> {
        journal.take_left("feed").into_iter().map(|kept| kept.message.message_body).collect()
    }

    #[test]
    fn a_line_that_was_cut_off_is_left_out_and_the_others_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path()).unwrap();
        for text in ["a", "b"] {
            journal.add_taken(message(text), text, None).unwrap();
        }
        journal.end(&[STANDARD.encode("a:1:nonce")]).unwrap();
        journal.file.write_all(b"\n{\"sent\":{\"number\":2,\"du").unwrap();
        let mut journal = Journal::open(folder.path()).unwrap();
        assert_eq!(left(&mut journal), ["b"]);
        // What is left in a queue that nobody makes again stays, under its number.
        assert_eq!(journal.add(message("c")).unwrap(), 2);
        assert_eq!(left(&mut Journal::open(folder.path()).unwrap()), ["b", "c"]);
    }

    #[test]
    fn a_long_file_is_emptied_once_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path()).unwrap();
        let length = || fs::metadata(folder.path().join(FILE)).unwrap().len();
        for id in ["a", "b"] {
            journal.add_taken(message(&"x".repeat(600_000)), id, None).unwrap();
        }
        journal.end(&[STANDARD.encode("b:1:nonce"), STANDARD.encode("b:2:nonce")]).unwrap();
        assert!(length() > MAX_ENDED_BYTES);
        journal.end_all("feed").unwrap();
        assert_eq!(length(), 0);
        journal.add(message("c")).unwrap();
        assert_eq!(left(&mut Journal::open(folder.path()).unwrap()), ["c"]);
    }
}
