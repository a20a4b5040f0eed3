//! A webhook receiver for developers, with a page that shows what arrives and whether it verifies.

mod delivery;

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use common::aws::{Missing, Patience};
use common::clock::Clock;
use common::ids::DeliveryId;
use common::preflight;
use common::runtime::Service;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::{sleep, timeout};
use uuid::Uuid;
use webhooks::secrets::{EndpointSecret, KeyringCache};
use webhooks::store::WebhookStore;

use crate::demo::demo_user;
use crate::server::{Body, full};
use delivery::ReceivedDelivery;

/// The page, and an address for deliveries.
const HOME_PATH: &str = "/dev/inbox";
/// What the page shows, as JSON for scripts.
const LIST_PATH: &str = "/dev/inbox.json";
/// The longest body that is kept, in bytes.
const MAX_BODY_BYTES: usize = 256 * 1024;
/// The most deliveries that are kept.
const MAX_DELIVERIES: usize = 200;
/// The most bytes that are kept of all deliveries together. The page asks for all of them every second.
const MAX_KEPT_BYTES: usize = 4 * 1024 * 1024;
/// The longest wait for secrets. Meanwhile the sender waits for the inbox's answer.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);

/// The page. It is self-contained and holds nothing of a delivery; the script inserts deliveries as text only.
const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// The latest deliveries that came to `/dev/inbox` or below it, in memory.
pub struct Inbox {
    newest_first: Mutex<VecDeque<ReceivedDelivery>>,
    store: WebhookStore,
    keyring: KeyringCache,
    clock: Arc<dyn Clock>,
}

impl Inbox {
    /// Creates an empty inbox. It verifies deliveries of the stack's own endpoints, with the webhooks table and the
    /// keyring that a function would use in this environment.
    pub fn new(service: &Service<'_>) -> Result<Self, Missing> {
        let store = WebhookStore::from_service(service, Patience::Request, preflight::get)?;
        let keyring = KeyringCache::from_service(service)?;
        Ok(Self { newest_first: Mutex::default(), store, keyring, clock: Arc::clone(&service.clock) })
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
                let json = self.kept(|newest_first| serde_json::to_string(newest_first));
                match json {
                    Ok(json) => reply(StatusCode::OK, "application/json", full(json)),
                    Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
                }
            }
            (HOME_PATH, "DELETE") => {
                self.kept(VecDeque::clear);
                text(StatusCode::NO_CONTENT, "")
            }
            (LIST_PATH, _) => not_allowed("GET, HEAD"),
            (_, "POST") => self.receive(request).await,
            (HOME_PATH, _) => not_allowed("GET, HEAD, POST, DELETE"),
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
        let secrets = timeout(LOOKUP_TIMEOUT, self.secrets(&head)).await.ok().flatten().unwrap_or_default();
        self.keep(ReceivedDelivery::from_request(&head, body, &secrets, received_at));
        let Some((status, delay)) = behaviour(head.uri.path()) else {
            return text(StatusCode::BAD_REQUEST, "in status/N, N must be 200 to 599; in slow/N, 0 to 60\n");
        };
        sleep(delay).await;
        text(status, "")
    }

    /// Returns the currently valid secrets of the endpoint to which the sender sent a delivery with this head.
    async fn secrets(&self, head: &Parts) -> Option<Vec<EndpointSecret>> {
        let id: DeliveryId = head.headers.get("x-service-delivery-id")?.to_str().ok()?.parse().ok()?;
        let delivery = self.store.delivery(id).await.ok()??;
        let endpoint = self.store.endpoint(delivery.account_id, delivery.endpoint_id).await.ok()??;
        let secrets = self.keyring.open(endpoint.id, &endpoint.secrets).await.ok()?;
        Some(secrets.valid(self.clock.now()).cloned().collect())
    }

    /// Keeps a delivery, counts how often its id has arrived, and forgets the oldest ones beyond [`MAX_DELIVERIES`] and
    /// [`MAX_KEPT_BYTES`].
    fn keep(&self, mut delivery: ReceivedDelivery) {
        self.kept(|newest_first| {
            let mut same = newest_first.iter().filter(|one| one.id.is_some() && one.id == delivery.id);
            delivery.seen = same.next().map_or(1, |latest| latest.seen + 1);
            newest_first.push_front(delivery);
            let sizes = newest_first.iter().scan(0, |sum, one| {
                *sum += one.bytes();
                Some(*sum)
            });
            let kept = sizes.take(MAX_DELIVERIES).take_while(|sum| *sum <= MAX_KEPT_BYTES).count();
            newest_first.truncate(kept);
        });
    }

    fn kept<T>(&self, act: impl FnOnce(&mut VecDeque<ReceivedDelivery>) -> T) -> T {
        act(&mut self.newest_first.lock().unwrap_or_else(PoisonError::into_inner))
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

/// Returns the page. Its policy lets it run its own script and connect to its own origin, and nothing else.
fn page() -> Response<Body> {
    let nonce = Uuid::new_v4().simple().to_string();
    let policy = format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let Ok(policy) = HeaderValue::try_from(policy) else { return text(StatusCode::INTERNAL_SERVER_ERROR, "") };
    let page = PAGE.replace("{nonce}", &nonce).replace("{style}", STYLE).replace("{script}", SCRIPT);
    let page = page.replace("{user}", &demo_user().to_string());
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
}
