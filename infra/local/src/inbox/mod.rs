//! A webhook receiver for developers, with a page that shows live what arrives and whether it verifies.

mod delivery;
mod secrets;
mod store;

use std::io;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use common::clock::Clock;
use futures_util::stream::{Stream, unfold};
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

pub use secrets::{SecretSource, StoredSecrets};

use crate::server::{Body, full};
use delivery::ReceivedDelivery;
use store::{Cursor, KeptDeliveries, Store, Update};

/// The page, and an address for deliveries.
const HOME_PATH: &str = "/dev/inbox";
/// What the page shows, as JSON for scripts.
const LIST_PATH: &str = "/dev/inbox.json";
/// The event stream that the page follows.
const EVENTS_PATH: &str = "/dev/inbox/events";
/// The longest body that is kept, in bytes.
const MAX_BODY_BYTES: usize = 256 * 1024;
/// An idle event stream sends something this often, so that each side notices when the other has gone.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEP_ALIVE_COMMENT: &str = ":\n\n";

/// The page. It is self-contained and holds nothing of a delivery; the script inserts deliveries as text only.
const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// The latest deliveries that came to `/dev/inbox` or below it, in memory.
pub struct Inbox {
    store: Store,
    secrets: Arc<dyn SecretSource>,
    clock: Arc<dyn Clock>,
}

impl Inbox {
    /// Creates an empty inbox that verifies with these secrets, at this clock's time.
    pub fn new(secrets: Arc<dyn SecretSource>, clock: Arc<dyn Clock>) -> Self {
        Self { store: Store::default(), secrets, clock }
    }

    /// Returns whether requests to this path belong to the inbox.
    pub fn serves(path: &str) -> bool {
        [HOME_PATH, LIST_PATH].contains(&path) || below_home(path).is_some()
    }

    /// Answers one request.
    pub async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        match (request.uri().path(), request.method().as_str()) {
            (HOME_PATH, "GET" | "HEAD") => page(),
            (LIST_PATH, "GET" | "HEAD") => {
                let kept = self.store.newest_first();
                let kept: Vec<_> = kept.iter().map(Arc::as_ref).collect();
                match serde_json::to_string(&kept) {
                    Ok(json) => reply(StatusCode::OK, "application/json", full(json)),
                    Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
                }
            }
            (EVENTS_PATH, "GET") => {
                let events = StreamBody::new(events(self.store.follow(), KEEP_ALIVE_INTERVAL)).boxed();
                reply(StatusCode::OK, "text/event-stream", events)
            }
            (HOME_PATH, "DELETE") => {
                self.store.clear();
                text(StatusCode::NO_CONTENT, "")
            }
            (LIST_PATH, _) => not_allowed("GET, HEAD"),
            (_, "POST") => self.receive(request).await,
            (HOME_PATH, _) => not_allowed("GET, HEAD, POST, DELETE"),
            (EVENTS_PATH, _) => not_allowed("GET, POST"),
            _ => not_allowed("POST"),
        }
    }

    /// Keeps a delivery, whatever its body is, and then answers as its path says. Refuses a body that is too long.
    async fn receive(&self, request: Request<Incoming>) -> Response<Body> {
        let received_at = self.clock.now();
        let (head, body) = request.into_parts();
        let body = match read(body).await {
            Ok(Some(body)) => body,
            Ok(None) => return text(StatusCode::PAYLOAD_TOO_LARGE, "the inbox accepts up to 256 KB\n"),
            Err(error) => return text(StatusCode::BAD_REQUEST, &format!("{error}\n")),
        };
        let secrets = self.secrets.secrets_for(&head).await;
        self.store.add(ReceivedDelivery::from_request(&head, body, &secrets, received_at));
        let Some((status, delay)) = behaviour(head.uri.path()) else {
            return text(StatusCode::BAD_REQUEST, "in status/N, N must be 200 to 599; in slow/N, 0 to 60\n");
        };
        sleep(delay).await;
        text(status, "")
    }
}

/// Returns how the deliveries to a path are answered, which lets receivers misbehave: `status/N` with status N, `slow/N`
/// with 200 after N seconds, everything else with 200 at once. Returns `None` if `N` is not a number within its bounds.
fn behaviour(path: &str) -> Option<(StatusCode, Duration)> {
    match below_home(path).and_then(|rest| rest.split_once('/')) {
        Some(("status", code)) => Some((StatusCode::from_u16(number(code, &(200..=599))?).ok()?, Duration::ZERO)),
        Some(("slow", seconds)) => Some((StatusCode::OK, Duration::from_secs(number(seconds, &(0..=60))?))),
        _ => Some((StatusCode::OK, Duration::ZERO)),
    }
}

fn number<N: FromStr + PartialOrd>(text: &str, bounds: &RangeInclusive<N>) -> Option<N> {
    text.parse().ok().filter(|number| bounds.contains(number))
}

/// Returns what follows `/dev/inbox/` in a path.
fn below_home(path: &str) -> Option<&str> {
    path.strip_prefix(HOME_PATH)?.strip_prefix('/')
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

/// Sends what is kept, then whatever arrives, without end. An `emptied` event says that the inbox no longer has what the
/// reader has. Each `delivery` event is a delivery as in the list.
fn events(kept: watch::Receiver<KeptDeliveries>, keep_alive: Duration) -> impl Stream<Item = io::Result<Frame<Bytes>>> {
    unfold((kept, Cursor::default()), move |(mut kept, cursor)| async move {
        let update = match timeout(keep_alive, kept.wait_for(|kept| kept.after(cursor).is_some())).await {
            Ok(Ok(kept)) => kept.after(cursor),
            Ok(Err(_)) => return None,
            Err(_) => None,
        };
        // This JSON has no line breaks, so the data is one line.
        let (cursor, text) = match update {
            Some((next, Update::Emptied)) => (next, "retry: 1000\nevent: emptied\ndata: -\n\n".to_owned()),
            Some((next, Update::Arrived(one))) => (next, format!("event: delivery\ndata: {}\n\n", json!(one))),
            None => (cursor, KEEP_ALIVE_COMMENT.to_owned()),
        };
        Some((Ok(Frame::data(Bytes::from(text))), (kept, cursor)))
    })
}

/// Returns the page. Its policy lets it run its own script and connect to its own origin, and nothing else.
fn page() -> Response<Body> {
    let nonce = Uuid::new_v4().simple().to_string();
    let policy = format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let Ok(policy) = HeaderValue::try_from(policy) else { return text(StatusCode::INTERNAL_SERVER_ERROR, "") };
    let page = PAGE.replace("{nonce}", &nonce).replace("{style}", STYLE).replace("{script}", SCRIPT);
    let mut response = reply(StatusCode::OK, "text/html; charset=utf-8", full(page));
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    response.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

fn not_allowed(methods: &'static str) -> Response<Body> {
    let mut refusal = text(StatusCode::METHOD_NOT_ALLOWED, "send deliveries by POST; the page is at /dev/inbox\n");
    refusal.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    refusal
}

/// Answers with plain text, which may be empty.
fn text(status: StatusCode, text: &str) -> Response<Body> {
    reply(status, "text/plain; charset=utf-8", full(text.to_owned()))
}

/// Answers with a body that a browser may neither store nor take for another type.
fn reply(status: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    for (name, value) in
        [(CONTENT_TYPE, content_type), (CACHE_CONTROL, "no-store"), (X_CONTENT_TYPE_OPTIONS, "nosniff")]
    {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{StreamExt, TryStreamExt};

    #[tokio::test]
    async fn the_event_stream_keeps_alive_while_nothing_comes_and_ends_with_the_inbox() {
        let store = Store::default();
        let events = events(store.follow(), Duration::from_millis(1));
        let mut texts = Box::pin(events.map_ok(|frame| frame.into_data().unwrap()));
        assert!(texts.next().await.unwrap().unwrap().starts_with(b"retry: 1000\n"));
        for _ in 0..2 {
            assert_eq!(texts.next().await.unwrap().unwrap(), KEEP_ALIVE_COMMENT);
        }
        drop(store);
        assert!(texts.next().await.is_none());
    }

    #[test]
    fn the_page_fetches_nothing_and_makes_no_markup_of_what_arrived() {
        for foreign in ["http:", "https:", "src=", "@import", "url(", "<link"] {
            assert!(![PAGE, STYLE, SCRIPT].concat().contains(foreign), "{foreign}");
        }
        let sinks = ["HTML", "document.write", "eval", "Function(", "setAttribute", "DOMParser", "createContextual"];
        for sink in sinks {
            assert!(!SCRIPT.contains(sink), "{sink}");
        }
        assert!(!SCRIPT.contains("</"), "this would end the script element");
    }

    #[test]
    fn each_page_has_a_nonce_of_its_own() {
        let policy = || page().headers()[CONTENT_SECURITY_POLICY].clone();
        assert_ne!(policy(), policy());
    }
}
