//! What goes over a connection: notes when the request is written, and reads the rest of the answer after its status is
//! known. Nothing in that rest changes the outcome of the attempt.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::{Instant, timeout};

/// How many bytes of a body are read so that the connection can be used again. Beyond that a new connection is cheaper.
const MAX_BODY_BYTES: usize = 64 * 1_024;
/// How long reading the body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(1);
/// The longest excerpt, in bytes.
const MAX_EXCERPT_BYTES: usize = 1_024;

/// When a request was written, once it is. What comes before is the way to the receiver: look-up, connection, handshake. It
/// says nothing about the receiver itself. Clones share the note.
#[derive(Clone, Debug, Default)]
pub struct Written(Arc<OnceLock<Instant>>);

/// A request's body. It is asked for its bytes when the head is written.
pub(super) struct NotingBody {
    body: Full<Bytes>,
    written: Written,
}

impl Written {
    /// Returns when the request was written, if it is.
    pub fn at(&self) -> Option<Instant> {
        self.0.get().copied()
    }

    pub(super) fn noted_by(&self, body: Bytes) -> NotingBody {
        NotingBody { body: Full::new(body), written: self.clone() }
    }
}

impl Body for NotingBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.written.0.get_or_init(Instant::now);
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Reads the rest of an answer. If it is too long or too slow, its connection is dropped. Returns the beginning of the
/// body, or `None` if the body is empty or the status is 2xx.
pub(super) async fn finish(answer: Response<Incoming>) -> Option<String> {
    let wanted = if answer.status().is_success() { 0 } else { MAX_EXCERPT_BYTES };
    let mut kept = Vec::new();
    // What was read is kept, even if the body did not end in time or broke off.
    let _ = timeout(BODY_TIMEOUT, read(answer.into_body(), wanted, &mut kept)).await;
    (!kept.is_empty()).then(|| excerpt(&kept))
}

async fn read(mut body: Incoming, wanted: usize, kept: &mut Vec<u8>) {
    let mut left = MAX_BODY_BYTES;
    while !body.is_end_stream()
        && let Some(Ok(frame)) = body.frame().await
    {
        let Some(data) = frame.data_ref() else { continue };
        let missing = wanted.saturating_sub(kept.len());
        kept.extend_from_slice(&data[..missing.min(data.len())]);
        let Some(rest) = left.checked_sub(data.len()) else { return };
        left = rest;
    }
}

/// Converts bytes to text that is safe to store and show. Characters that control a terminal or change the direction of
/// text become spaces.
fn excerpt(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for c in String::from_utf8_lossy(bytes).chars() {
        let c = if c.is_control() || reorders(c) { ' ' } else { c };
        if text.len() + c.len_utf8() > MAX_EXCERPT_BYTES {
            break;
        }
        text.push(c);
    }
    text
}

/// Returns whether a character is one of Unicode's explicit directional characters.
fn reorders(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_harmless_text_of_at_most_a_kilobyte() {
        assert_eq!(excerpt(b"gone\r\n\x1b[2Jfishing\0"), "gone   [2Jfishing ");
        assert_eq!(excerpt("a\u{202e}b\u{85}ü".as_bytes()), "a b ü");
        assert_eq!(excerpt(b"\xff\xc3"), "\u{fffd}\u{fffd}");
        for bytes in [vec![b'a'; 1_024], vec![0xff; 1_024], "ü".repeat(512).into_bytes()] {
            assert!((1_022..=1_024).contains(&excerpt(&bytes).len()));
        }
    }
}
