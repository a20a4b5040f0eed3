//! The gateway's answers to what never becomes a request: a head that is too long, or not HTTP.
//!
//! hyper answers those by itself, with an empty body, and offers no way to change that. API Gateway sends a message in
//! JSON. So this stands between hyper and the connection, and writes such an answer in hyper's place.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The statuses that hyper answers with by itself.
const STATUSES: [StatusCode; 3] =
    [StatusCode::BAD_REQUEST, StatusCode::URI_TOO_LONG, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE];
/// What hyper's own answers have, and no other error.
const EMPTY: &str = "\r\ncontent-length: 0\r\n";

/// A connection on which hyper's own answers are replaced.
pub(crate) struct Explained<S> {
    connection: S,
    /// What is left to write of an answer in place of hyper's.
    answer: Vec<u8>,
}

impl<S> Explained<S> {
    pub(crate) const fn new(connection: S) -> Self {
        Self { connection, answer: Vec::new() }
    }
}

/// Returns the answer that takes the place of hyper's. Returns `None` if the text is anything else.
fn explained(text: &[u8]) -> Option<String> {
    let text = str::from_utf8(text).ok().filter(|text| text.ends_with("\r\n\r\n"))?;
    let (first, rest) = text.split_once("\r\n")?;
    let status = STATUSES.iter().find(|status| first == format!("HTTP/1.1 {status}"))?;
    let rest = format!("\r\n{rest}");
    let (before, behind) = rest.split_once(EMPTY)?;
    let body = message(status.canonical_reason()?);
    let length = body.len();
    Some(format!("{first}{before}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{behind}{body}"))
}

/// Returns the body of an answer that the gateway gives by itself, in API Gateway's form.
pub(crate) fn message(text: &str) -> String {
    format!(r#"{{"message":"{text}"}}"#)
}

impl<S: AsyncWrite + Unpin> Explained<S> {
    /// Writes the answer in place of `text`, if that is one of hyper's own. Returns `None` if it is not.
    fn poll_explain(&mut self, context: &mut Context<'_>, text: &[u8]) -> Option<Poll<io::Result<usize>>> {
        if self.answer.is_empty() {
            self.answer = explained(text)?.into_bytes();
        }
        while !self.answer.is_empty() {
            match Pin::new(&mut self.connection).poll_write(context, &self.answer) {
                Poll::Ready(Ok(0)) => return Some(Poll::Ready(Ok(0))),
                Poll::Ready(Ok(written)) => drop(self.answer.drain(..written)),
                other => return Some(other),
            }
        }
        Some(Poll::Ready(Ok(text.len())))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Explained<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Explained<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.poll_explain(context, bytes) {
            Some(outcome) => outcome,
            None => Pin::new(&mut self.connection).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.poll_explain(context, parts.first().map_or(&[], |part| part)) {
            Some(outcome) => outcome,
            None => Pin::new(&mut self.connection).poll_write_vectored(context, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(context)
    }
}
