//! One request and its answer on a connection.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::connect::Connection;
use super::error::PostError;
use super::head::{BodyEnd, Framing, Head, read_some};

/// How many bytes of a body are read so that the connection can be used again. Beyond that a new connection is cheaper.
const MAX_BODY_BYTES: usize = 64 * 1_024;
/// How long reading the body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a body may pause whose end is not known, if the connection may stay open. Then it counts as ended.
const PAUSE_TIMEOUT: Duration = Duration::from_millis(100);
/// The longest excerpt, in bytes.
const MAX_EXCERPT_BYTES: usize = 1_024;

/// When a request began to be written, once it did. What comes before is the way to the receiver: look-up, connection, handshake. It
/// says nothing about the receiver itself. Clones share the note.
#[derive(Clone, Debug, Default)]
pub struct Written(Arc<Note>);

#[derive(Debug, Default)]
struct Note {
    at: Mutex<Option<Instant>>,
    changed: Notify,
}

impl Written {
    /// Returns when the request began to be written, if it did.
    pub fn at(&self) -> Option<Instant> {
        *self.0.at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the note has changed since the last time that this was awaited.
    pub async fn changed(&self) {
        self.0.changed.notified().await;
    }

    pub(super) fn set(&self, at: Option<Instant>) {
        *self.0.at.lock().unwrap_or_else(PoisonError::into_inner) = at;
        self.0.changed.notify_one();
    }
}

/// An answer whose head was read. Its body follows on the connection.
pub(super) struct Answer {
    pub(super) status: u16,
    /// Whether it came before the whole request was written.
    pub(super) is_early: bool,
    connection: Connection,
    framing: Framing,
    /// What was read after the head and was not looked at.
    unread: Vec<u8>,
}

/// Writes a request and reads the head of the answer, which may come before everything is written.
pub(super) async fn exchange(
    mut connection: Connection,
    request: &[u8],
    written: &Written,
    head: &mut Head,
) -> Result<Answer, PostError> {
    *head = Head::default();
    written.set(Some(Instant::now()));
    let (mut reader, mut writer) = tokio::io::split(&mut connection);
    let writing = async {
        writer.write_all(request).await?;
        writer.flush().await
    };
    let mut is_early = true;
    let status = {
        let mut reading = pin!(head.read(&mut reader));
        tokio::select! {
            // Nobody acknowledges what was not sent yet.
            biased;
            // A receiver that reads no further may have answered all the same.
            sent = writing => {
                is_early = sent.is_err();
                reading.await?
            }
            status = &mut reading => status?,
        }
    };
    let (framing, unread) = std::mem::take(head).into_framing_and_body();
    Ok(Answer { status, is_early, connection, framing, unread })
}

impl Answer {
    /// Reads the rest of the answer. Returns the beginning of the body if the status is not 2xx and the body not empty,
    /// and the connection if it may be used again: after a 2xx whose body has ended, with nothing after it.
    pub(super) async fn finish(mut self) -> (Option<String>, Option<Connection>) {
        let is_success = (200..=299).contains(&self.status);
        let wanted = if is_success { 0 } else { MAX_EXCERPT_BYTES };
        let mut kept = Vec::new();
        let has_ended = self.read_body(wanted, &mut kept).await;
        let is_reusable =
            is_success && has_ended && self.framing.may_stay_open && !self.is_early && self.unread.is_empty();
        ((!kept.is_empty()).then(|| excerpt(&kept)), is_reusable.then_some(self.connection))
    }

    /// Reads the body within its bounds. Returns whether its end was found.
    async fn read_body(&mut self, wanted: usize, kept: &mut Vec<u8>) -> bool {
        let deadline = Instant::now() + BODY_TIMEOUT;
        let mut left = MAX_BODY_BYTES;
        loop {
            let has_ended = self.framing.end.consume(&mut self.unread, |data| {
                kept.extend_from_slice(&data[..data.len().min(wanted - kept.len())]);
            });
            if has_ended {
                return true;
            }
            let until = match self.framing.end {
                BodyEnd::Unknown if self.framing.may_stay_open => deadline.min(Instant::now() + PAUSE_TIMEOUT),
                _ => deadline,
            };
            match timeout_at(until, read_some(&mut self.connection, &mut self.unread)).await {
                Ok(Ok(read @ 1..)) if read <= left => left -= read,
                _ => return false,
            }
        }
    }
}

/// Converts bytes to text that is safe to store and show. Characters that cannot be seen, control a terminal or change
/// the direction of text become spaces.
fn excerpt(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for c in String::from_utf8_lossy(bytes).chars() {
        let c = if c.is_control() || is_invisible(c) { ' ' } else { c };
        if text.len() + c.len_utf8() > MAX_EXCERPT_BYTES {
            break;
        }
        text.push(c);
    }
    text
}

/// Returns whether a character is shown as nothing, breaks a line, or steers others: the `Default_Ignorable_Code_Point`s
/// of Unicode 16, tags and directional characters among them, its two separators, and the marks of annotations.
const fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_harmless_text_of_at_most_a_kilobyte() {
        assert_eq!(excerpt(b"gone\r\n\x1b[2Jfishing\0"), "gone   [2Jfishing ");
        assert_eq!(excerpt("a\u{202e}b\u{85}ü".as_bytes()), "a b ü");
        assert_eq!(excerpt("a\u{200b}b\u{feff}c\u{2028}d\u{e0041}e\u{ad}f".as_bytes()), "a b c d e f");
        assert_eq!(excerpt(b"\xff\xc3"), "\u{fffd}\u{fffd}");
        for bytes in [vec![b'a'; 1_024], vec![0xff; 1_024], "ü".repeat(512).into_bytes()] {
            assert!((1_022..=1_024).contains(&excerpt(&bytes).len()));
        }
    }
}
