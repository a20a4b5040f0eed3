//! The rest of an answer once its status is known. It changes nothing about the verdict.

use std::time::Duration;

use http::Response;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::time::timeout;

/// How much of a body is read so that the connection can be used again; past it a new one is cheaper.
const MAX_BODY: usize = 64 * 1_024;
/// How long that may take.
const PATIENCE: Duration = Duration::from_secs(1);
/// The longest excerpt, in bytes.
const MAX_EXCERPT: usize = 1_024;

/// Reads what is left of an answer, within bounds, past which its connection is dropped. Returns how the
/// body of an answer other than 2xx begins.
pub(super) async fn finish(answer: Response<Incoming>) -> Option<String> {
    let wanted = if answer.status().is_success() { 0 } else { MAX_EXCERPT };
    let mut kept = Vec::new();
    // Whether it ended in time, or broke off, makes no difference to what there is of it.
    let _ = timeout(PATIENCE, read(answer.into_body(), wanted, &mut kept)).await;
    (!kept.is_empty()).then(|| excerpt(&kept))
}

async fn read(mut body: Incoming, wanted: usize, kept: &mut Vec<u8>) {
    let mut left = MAX_BODY;
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

/// The bytes as text to be stored and shown: nothing in it controls a terminal or turns the reading round.
fn excerpt(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for c in String::from_utf8_lossy(bytes).chars() {
        let c = if c.is_control() || reorders(c) { ' ' } else { c };
        if text.len() + c.len_utf8() > MAX_EXCERPT {
            break;
        }
        text.push(c);
    }
    text
}

/// Whether a character is one of Unicode's explicit directional ones.
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
