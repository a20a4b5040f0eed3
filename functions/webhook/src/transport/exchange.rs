//! What goes over a connection, and why a POST got no answer.
//!
//! It notes when the request is written, and reads the rest of the answer after its status is known. Nothing in that rest
//! changes the outcome of the attempt.
//!
//! The endpoint's owner may read the messages of the errors, so they name no address: the owner must not learn what a name
//! resolves to inside our network.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper_util::client::legacy;
use rustls::CertificateError as Certificate;
use thiserror::Error;
use tokio::time::{Instant, timeout};

use webhooks::guard::{AddressRefusal, UrlRefusal};

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

/// Why a POST got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PostError {
    /// The URL is not allowed. Its host name was not looked up.
    #[error("the URL is not allowed: it {0}")]
    Url(UrlRefusal),
    /// There is no such host name, it has no address, or its name servers do not answer.
    #[error("the host name does not resolve")]
    Unresolved,
    /// An address of the host is not public. No connection was made.
    #[error("the host name has an address that is not public")]
    NotPublic,
    /// Every address refused the connection or is unreachable.
    #[error("cannot connect")]
    Unreachable,
    /// There is no TLS connection.
    #[error("TLS: {0}")]
    Tls(TlsFailure),
    /// The deadline passed, whichever step was under way.
    #[error("no answer within {} s", .0.as_secs_f32())]
    NoAnswer(Duration),
    /// The connection was closed or reset. The receiver may have got the request.
    #[error("the connection was closed before an answer")]
    Closed,
    /// The first line or a header of the answer is malformed.
    #[error("the answer is not HTTP/1.1")]
    NotHttp,
    /// The answer's head is longer than 32 KB or has more than 100 headers, or more than 32 informational answers come
    /// before it.
    #[error("the answer's head is too long")]
    HeadTooLong,
}

/// Why there was no TLS connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TlsFailure {
    /// No known authority has issued the certificate, or it is malformed or not meant for servers.
    #[error("the certificate is not trusted")]
    Untrusted,
    /// The certificate is not valid at this time.
    #[error("the certificate has expired or is not valid yet")]
    Expired,
    /// The certificate names other hosts.
    #[error("the certificate is for another name")]
    Name,
    /// There is no common version, cipher or protocol, or the receiver broke off.
    #[error("the handshake failed")]
    Handshake,
}

impl TlsFailure {
    /// Reads the failure from an I/O error of the TLS library; `None` if the error is not about TLS.
    pub(super) fn from_io(error: &io::Error) -> Option<Self> {
        Some(match error.get_ref()?.downcast_ref()? {
            rustls::Error::InvalidCertificate(certificate) => match certificate {
                Certificate::Expired
                | Certificate::ExpiredContext { .. }
                | Certificate::NotValidYet
                | Certificate::NotValidYetContext { .. } => Self::Expired,
                Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => Self::Name,
                _ => Self::Untrusted,
            },
            _ => Self::Handshake,
        })
    }
}

impl From<TlsFailure> for PostError {
    fn from(failure: TlsFailure) -> Self {
        Self::Tls(failure)
    }
}

impl From<AddressRefusal> for PostError {
    fn from(refusal: AddressRefusal) -> Self {
        match refusal {
            AddressRefusal::None => Self::Unresolved,
            AddressRefusal::NotPublic => Self::NotPublic,
        }
    }
}

/// Finds the connector's or the protocol's error, which the client wraps in its own.
impl From<legacy::Error> for PostError {
    fn from(error: legacy::Error) -> Self {
        let mut cause = error.source();
        while let Some(error) = cause {
            if let Some(error) = read_cause(error) {
                return error;
            }
            cause = error.source();
        }
        Self::Closed
    }
}

fn read_cause(cause: &(dyn Error + 'static)) -> Option<PostError> {
    if let Some(error) = cause.downcast_ref::<PostError>() {
        return Some(*error);
    }
    if let Some(error) = cause.downcast_ref::<hyper::Error>() {
        return match error {
            error if error.is_parse_too_large() => Some(PostError::HeadTooLong),
            error if error.is_parse() => Some(PostError::NotHttp),
            _ => None,
        };
    }
    // With TLS 1.3 a server refuses a client, for example one without a certificate, only after the handshake.
    TlsFailure::from_io(cause.downcast_ref()?).map(PostError::Tls)
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
