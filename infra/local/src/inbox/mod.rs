//! A webhook receiver for developers, with a page that shows live what arrives and whether it verifies.

mod behaviour;
mod delivery;
mod events;
mod headers;
mod page;
mod receive;
mod reply;
mod secrets;
mod store;
mod verify;

use std::sync::Arc;

use http::header::ALLOW;
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use types::clock::Clock;

pub use secrets::{SecretSource, StoredSecrets};

use crate::server::Body;
use store::Store;

/// The page, and an address for deliveries.
const HOME_PATH: &str = "/dev/inbox";
/// What the page shows, as JSON for scripts.
const LIST_PATH: &str = "/dev/inbox.json";
/// The event stream that the page follows.
const EVENTS_PATH: &str = "/dev/inbox/events";

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
            (HOME_PATH, "GET" | "HEAD") => page::show(),
            (LIST_PATH, "GET" | "HEAD") => {
                reply::json(&self.store.newest_first().iter().map(Arc::as_ref).collect::<Vec<_>>())
            }
            (EVENTS_PATH, "GET") => events::stream(self.store.follow(), request.headers()),
            (HOME_PATH, "DELETE") => {
                self.store.clear();
                reply::text(StatusCode::NO_CONTENT, "")
            }
            (LIST_PATH, _) => not_allowed("GET, HEAD"),
            (_, "POST") => self.receive(request).await,
            (HOME_PATH, _) => not_allowed("GET, HEAD, POST, DELETE"),
            (EVENTS_PATH, _) => not_allowed("GET, POST"),
            _ => not_allowed("POST"),
        }
    }
}

/// Returns what follows `/dev/inbox/` in a path.
fn below_home(path: &str) -> Option<&str> {
    path.strip_prefix(HOME_PATH)?.strip_prefix('/')
}

fn not_allowed(methods: &'static str) -> Response<Body> {
    let mut refusal =
        reply::text(StatusCode::METHOD_NOT_ALLOWED, "send deliveries by POST; the page is at /dev/inbox\n");
    refusal.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    refusal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_its_own_reaches_it() {
        for own in ["/dev/inbox", "/dev/inbox/", "/dev/inbox.json", "/dev/inbox/a/b", "/dev/inbox/status/503"] {
            assert!(Inbox::serves(own), "{own}");
        }
        for other in ["/dev/inboxes", "/dev", "/dev/inbox.json/", "/v1/public/me", "/x/dev/inbox", ""] {
            assert!(!Inbox::serves(other), "{other}");
        }
    }
}
