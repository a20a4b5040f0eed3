//! The stream of Server-Sent Events that the page follows.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{Stream, unfold};
use http::{HeaderMap, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use serde_json::json;
use tokio::sync::watch::Receiver;
use tokio::time::timeout;

use super::reply;
use super::store::{Cursor, KeptDeliveries, Update};
use crate::server::Body;

/// An idle connection sends something this often, so that each side notices when the other has gone.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEP_ALIVE_COMMENT: &str = ":\n\n";

/// Sends everything after the event that `Last-Event-ID` names, then whatever arrives, without end.
///
/// An `emptied` event says that the inbox no longer has what the reader has. Each `delivery` event is a delivery as in
/// the list.
pub(super) fn stream(kept: Receiver<KeptDeliveries>, headers: &HeaderMap) -> Response<Body> {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let events = events(kept, last.and_then(|id| id.parse().ok()), KEEP_ALIVE_INTERVAL);
    reply::with_content_type("text/event-stream", StreamBody::new(events).boxed())
}

fn events(
    kept: Receiver<KeptDeliveries>,
    cursor: Option<Cursor>,
    keep_alive: Duration,
) -> impl Stream<Item = io::Result<Frame<Bytes>>> {
    unfold((kept, cursor), move |(mut kept, cursor)| async move {
        let update = match timeout(keep_alive, kept.wait_for(|kept| kept.after(cursor).is_some())).await {
            Ok(Ok(kept)) => kept.after(cursor),
            Ok(Err(_)) => return None,
            Err(_) => None,
        };
        let (cursor, text) = match update {
            Some((next, update)) => (Some(next), event(next, &update)),
            None => (cursor, KEEP_ALIVE_COMMENT.to_owned()),
        };
        Some((Ok(Frame::data(Bytes::from(text))), (kept, cursor)))
    })
}

/// Formats one event. This JSON has no line breaks, so the data is one line.
fn event(cursor: Cursor, update: &Update) -> String {
    match update {
        Update::Emptied => format!("retry: 1000\nid: {cursor}\nevent: emptied\ndata: -\n\n"),
        Update::Arrived(delivery) => format!("id: {cursor}\nevent: delivery\ndata: {}\n\n", json!(delivery)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inbox::store::Store;
    use futures_util::{StreamExt, TryStreamExt};

    #[tokio::test]
    async fn it_keeps_alive_while_nothing_comes_and_ends_with_the_inbox() {
        let store = Store::default();
        let events = events(store.follow(), None, Duration::from_millis(1));
        let mut texts = Box::pin(events.map_ok(|frame| frame.into_data().unwrap()));
        assert!(texts.next().await.unwrap().unwrap().starts_with(b"retry: 1000\nid: "));
        for _ in 0..2 {
            assert_eq!(texts.next().await.unwrap().unwrap(), KEEP_ALIVE_COMMENT);
        }
        drop(store);
        assert!(texts.next().await.is_none());
    }
}
