//! Notes when a request is written. What comes before is the way to the receiver: look-up, connection, handshake. It says
//! nothing about the receiver itself.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Instant;

/// When a request was written, once it is. Clones share the note.
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
