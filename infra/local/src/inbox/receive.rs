//! Receives a delivery.

use bytes::{Bytes, BytesMut};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::behaviour::Behaviour;
use super::delivery::ReceivedDelivery;
use super::{Inbox, reply};
use crate::server::Body;

/// The longest body that is kept, in bytes.
const MAX_BODY_BYTES: usize = 256 * 1024;

impl Inbox {
    /// Keeps a delivery, whatever its body is, and then answers as its path says. Refuses a body that is too long.
    pub(super) async fn receive(&self, request: Request<Incoming>) -> Response<Body> {
        let received_at = self.clock.now();
        let (head, body) = request.into_parts();
        let body = match read(body).await {
            Ok(Some(body)) => body,
            Ok(None) => return reply::text(StatusCode::PAYLOAD_TOO_LARGE, "the inbox accepts up to 256 KB\n"),
            Err(error) => return reply::text(StatusCode::BAD_REQUEST, &format!("{error}\n")),
        };
        let secrets = self.secrets.secrets_for(&head).await;
        self.store.add(ReceivedDelivery::from_request(&head, body, &secrets, received_at));
        let Some(behaviour) = Behaviour::from_path(head.uri.path()) else {
            return reply::text(StatusCode::BAD_REQUEST, "in status/N, N must be 200 to 599; in slow/N, 0 to 60\n");
        };
        tokio::time::sleep(behaviour.delay).await;
        reply::text(behaviour.status, "")
    }
}

/// Reads a body; `None` if it is too long. Even then it is read to its end, since otherwise the sender might never see
/// the answer.
async fn read(mut body: Incoming) -> hyper::Result<Option<Bytes>> {
    let (mut kept, mut length) = (BytesMut::new(), 0);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        length += data.len();
        if length <= MAX_BODY_BYTES {
            kept.extend_from_slice(&data);
        }
    }
    Ok((length <= MAX_BODY_BYTES).then(|| kept.freeze()))
}
