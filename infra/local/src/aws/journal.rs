//! Keeps the messages of the queues in files beside the tables: the emulated SQS has them only in memory.
//!
//! A message is written before its sender is answered, and removed before its consumer is. So a process that is killed
//! loses no message. What was being worked on comes again at once, as after a time-out. A power cut may take the messages
//! of the last seconds, because the files are not synced.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use common::clock::{Clock, SystemClock};
use common::timestamp::Timestamp;
use rustack_sqs_model::error::SqsError;
use rustack_sqs_model::input::SendMessageInput;
use serde::{Deserialize, Serialize};

use super::files::Files;

/// The messages that have not ended: a folder for each queue, with a file for each message.
pub(super) struct Journal {
    files: Files,
    next: u64,
    /// The messages, by the ids that the emulated SQS gave them.
    open: HashMap<String, Place>,
    /// The last sequence number of each FIFO queue.
    sequences: HashMap<String, String>,
    /// The queues whose messages of an earlier start were returned.
    resumed: HashSet<String>,
}

/// Where a message is kept: its queue, and its number in the order of sending.
#[derive(Clone)]
pub(super) struct Place {
    queue: String,
    number: u64,
}

/// What has happened cannot be written. Then the call fails: its sender sends the message again, or it comes again.
#[derive(Debug)]
pub(super) struct Unkept(io::Error);

/// A message as it is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// When a consumer may receive it.
    due: Timestamp,
    message: SendMessageInput,
}

impl From<io::Error> for Unkept {
    fn from(error: io::Error) -> Self {
        Self(error)
    }
}

impl From<Unkept> for SqsError {
    fn from(Unkept(error): Unkept) -> Self {
        Self::internal_error(format!("messages cannot be kept: {error}"))
    }
}

impl Journal {
    /// Opens the folder `queues` of a folder.
    pub(super) fn open(data: &Path) -> io::Result<Self> {
        let files = Files(data.join("queues"));
        let mut next = 0;
        for queue in files.folders()? {
            let numbers = files.read(&queue, None)?.into_iter().filter_map(|(name, _)| name.parse::<u64>().ok());
            next = numbers.map(|number| number + 1).fold(next, u64::max);
        }
        Ok(Self { files, next, open: HashMap::new(), sequences: HashMap::new(), resumed: HashSet::new() })
    }

    /// Returns the messages that an earlier start left in the queue with this URL, which has another one now, in the order
    /// of sending, and once. Each waits for as long as is left of its delay.
    pub(super) fn left(&mut self, queue_url: &str) -> Result<Vec<(Place, SendMessageInput)>, Unkept> {
        let (queue, now) = (queue_name(queue_url), SystemClock::new().now());
        let mut left = Vec::new();
        if !self.resumed.insert(queue.to_owned()) {
            return Ok(left);
        }
        for (name, content) in self.files.read(queue, None)? {
            let (Ok(number), Ok(Kept { due, message })) = (name.parse(), serde_json::from_slice(&content)) else {
                tracing::warn!(queue, name, "a kept message cannot be read");
                continue;
            };
            let seconds = u64::try_from(due.millis() - now.millis()).unwrap_or_default().div_ceil(1_000);
            let delay_seconds = i32::try_from(seconds).ok().filter(|seconds| *seconds > 0);
            let message = SendMessageInput { queue_url: queue_url.to_owned(), delay_seconds, ..message };
            left.push((Place { queue: queue.to_owned(), number }, message));
        }
        left.sort_by_key(|(place, _)| place.number);
        Ok(left)
    }

    /// Adds a message. Returns where it is kept.
    pub(super) fn add(&mut self, message: SendMessageInput) -> Result<Place, Unkept> {
        let place = Place { queue: queue_name(&message.queue_url).to_owned(), number: self.next };
        self.next += 1;
        let due = SystemClock::new().now().plus_millis(i64::from(message.delay_seconds.unwrap_or_default()) * 1_000);
        let content = serde_json::to_vec(&Kept { due, message }).map_err(io::Error::from)?;
        self.files.put(&place.queue, &place.number.to_string(), &content)?;
        Ok(place)
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
        let place = self.add(message)?;
        self.take(place, id, sequence);
        Ok(())
    }

    /// Notes under which id, and in a FIFO queue under which sequence number, the emulated SQS has taken a message.
    pub(super) fn take(&mut self, place: Place, id: &str, sequence: Option<&str>) {
        if let Some(sequence) = sequence {
            self.sequences.insert(place.queue.clone(), sequence.to_owned());
        }
        self.open.insert(id.to_owned(), place);
    }

    /// Ends the messages with these receipts.
    pub(super) fn end(&mut self, receipts: &[String]) -> Result<(), Unkept> {
        for id in receipts.iter().filter_map(|receipt| message_id(receipt)) {
            if let Some(Place { queue, number }) = self.open.remove(&id) {
                self.files.remove(&queue, &number.to_string())?;
            }
        }
        Ok(())
    }

    /// Ends all messages of a queue.
    pub(super) fn end_all(&mut self, queue: &str) -> Result<(), Unkept> {
        self.open.retain(|_, place| place.queue != queue);
        Ok(self.files.remove_all(queue)?)
    }
}

/// Returns the name of a queue. Behind a proxy its URL has another host.
pub(super) fn queue_name(queue_url: &str) -> &str {
    queue_url.rsplit_once('/').map_or(queue_url, |(_, name)| name)
}

/// Returns the id of the message to which a receipt of the emulated SQS belongs.
fn message_id(receipt: &str) -> Option<String> {
    let text = String::from_utf8(STANDARD.decode(receipt).ok()?).ok()?;
    text.split_once(':').map(|(id, _)| id.to_owned())
}
