//! Turns an outcome into a response (specification 8.3 and 10.2 to 10.4): status, headers, encoding, entity
//! tag, and what headers say about the state that the answer was made from.

use std::io::Write;
use std::time::{Duration, SystemTime};

use common::clock::Moment;
use common::scope::Budget;
use common::timestamp::Timestamp;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::StatusCode;
use http::header::{
    ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue,
    IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, RETRY_AFTER, STRICT_TRANSPORT_SECURITY, VARY, WWW_AUTHENTICATE,
};
use httpdate::{fmt_http_date, parse_http_date};
use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::auth::Rate;
use crate::error::ApiError;
use crate::gateway::{Body, Request, Response, context};

/// Bodies above this many bytes are compressed for clients that accept it.
const COMPRESS_ABOVE_BYTES: usize = 1_024;
/// The window of every budget, in seconds.
const MINUTE_SECONDS: u32 = 60;
/// The `Retry-After` of a 503, in seconds.
const UNAVAILABLE_RETRY_SECONDS: u32 = 1;

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const SERVICE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The scheme of the client's request, which API Gateway sets.
pub(crate) const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
/// A year (RFC 6797). A client that came by https once comes back by nothing else.
const ONLY_HTTPS: HeaderValue = HeaderValue::from_static("max-age=31536000");
/// The methods that every route takes.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD");

/// Who may keep an answer, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheControl {
    /// The client alone, and only if it asks each time whether the answer still holds.
    PrivateNoCache,
    /// Nobody. This is for the account's own data, and for every error.
    NoStore,
    /// Anybody, for five minutes.
    Public,
}

impl CacheControl {
    const fn value(self) -> &'static str {
        match self {
            Self::PrivateNoCache => "private, no-cache",
            Self::NoStore => "no-store",
            Self::Public => "public, max-age=300",
        }
    }
}

/// The content of a 200, before it is adapted to what the client accepts.
#[derive(Debug)]
pub struct Reply {
    /// The body, not compressed.
    pub body: Vec<u8>,
    pub content_type: &'static str,
    pub cache: CacheControl,
    pub state: State,
    /// Further headers, of the 200 and of a 304.
    pub headers: HeaderMap,
}

/// The media type of every JSON body.
pub const JSON: &str = "application/json; charset=utf-8";

/// Turns the outcome of a request into its response. `budget` is what the request is counted against, if it needs a key.
pub fn respond(request: &Request, outcome: Result<Reply, ApiError>, rate: Rate, budget: Option<Budget>) -> Response {
    let mut response = match outcome {
        Ok(reply) => success(request, reply),
        Err(error) => failure(error),
    };
    let headers = response.headers_mut();
    for (name, number) in [(LIMIT, rate.limit), (REMAINING, rate.remaining), (RESET, rate.reset)] {
        headers.insert(name, number.into());
    }
    if let Some(budget) = budget.filter(|_| rate.known) {
        add_rate_limit(headers, budget, rate);
    }
    if request.headers().get(FORWARDED_PROTO).is_some_and(|scheme| scheme == "https") {
        headers.insert(STRICT_TRANSPORT_SECURITY, ONLY_HTTPS);
    }
    let id = context(request).and_then(|context| context.request_id.as_deref());
    if let Some(id) = id.and_then(|id| HeaderValue::from_str(id).ok()) {
        headers.insert(REQUEST_ID, id);
    }
    if request.method() == http::Method::HEAD {
        *response.body_mut() = Body::Empty;
    }
    response
}

/// Adds the budget and its state as draft-ietf-httpapi-ratelimit-headers-11 has them: structured fields, with a policy
/// that is named after the budget.
fn add_rate_limit(headers: &mut HeaderMap, budget: Budget, rate: Rate) {
    let policy = format!("\"{}\";q={};w={MINUTE_SECONDS}", budget.as_str(), rate.limit);
    let left = format!("\"{}\";r={};t={}", budget.as_str(), rate.remaining, rate.reset);
    for (name, value) in [(POLICY, policy), (SERVICE_LIMIT, left)] {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    }
}

fn success(request: &Request, reply: Reply) -> Response {
    let compressible = reply.body.len() > COMPRESS_ABOVE_BYTES;
    let compress = compressible && accepts_gzip(request.headers());
    let tag = entity_tag(&reply.body, compress);
    let mut headers = reply.headers;
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(reply.cache.value()));
    if compressible {
        headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    headers.extend(reply.state.header());
    let unchanged = if request.headers().contains_key(IF_NONE_MATCH) {
        matches_tag(request.headers(), &tag)
    } else {
        reply.state.is_unchanged_since(request.headers())
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, tag);
    }
    if unchanged {
        return response(StatusCode::NOT_MODIFIED, headers, Body::Empty);
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(reply.content_type));
    match compress.then(|| gzip(&reply.body)).flatten() {
        Some(compressed) => {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            response(StatusCode::OK, headers, Body::Binary(compressed))
        }
        None => response(StatusCode::OK, headers, text(reply.body)),
    }
}

fn failure(error: ApiError) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(CacheControl::NoStore.value()));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    match &error {
        ApiError::KeyMissing | ApiError::KeyInvalid => {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        ApiError::MethodNotAllowed(_) => {
            headers.insert(ALLOW, METHODS);
        }
        ApiError::RateLimited { retry_after, .. } => {
            headers.insert(RETRY_AFTER, (*retry_after).into());
        }
        ApiError::Unavailable(_) => {
            headers.insert(RETRY_AFTER, UNAVAILABLE_RETRY_SECONDS.into());
        }
        ApiError::Invalid(_)
        | ApiError::HostNotAllowed
        | ApiError::ScopeMissing(_)
        | ApiError::ItemNotFound(_)
        | ApiError::PricesNotFound(_)
        | ApiError::RouteNotFound(_)
        | ApiError::PositionExpired(_)
        | ApiError::Internal(_) => {}
    }
    let status = error.status();
    let body = serde_json::to_vec(&error.envelope()).unwrap_or_default();
    response(status, headers, text(body))
}

fn response(status: StatusCode, headers: HeaderMap, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

fn text(body: Vec<u8>) -> Body {
    String::from_utf8(body).map_or_else(|not_text| Body::Binary(not_text.into_bytes()), Body::Text)
}

fn gzip(body: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    encoder.write_all(body).ok()?;
    encoder.finish().ok()
}

/// A strong entity tag: 128 bits of the uncompressed body's SHA-256, and a suffix if the body is sent compressed
/// (RFC 9110, section 8.8.3).
fn entity_tag(body: &[u8], compressed: bool) -> String {
    let mut half = [0; 16];
    half.copy_from_slice(&Sha256::digest(body)[..16]);
    format!("\"{:032x}{}\"", u128::from_be_bytes(half), if compressed { "-gzip" } else { "" })
}

/// Returns whether `If-None-Match` names the tag (RFC 9110, section 13.1.2: weak comparison).
fn matches_tag(headers: &HeaderMap, tag: &str) -> bool {
    let values = headers.get_all(IF_NONE_MATCH).into_iter();
    let mut candidates = values.flat_map(|value| value.as_bytes().split(|b| *b == b',')).map(<[u8]>::trim_ascii);
    candidates.any(|tags| tags == b"*" || tags.strip_prefix(b"W/").unwrap_or(tags) == tag.as_bytes())
}

/// Returns whether `Accept-Encoding` accepts gzip, by its name or by `*`, with a weight above 0 (RFC 9110, section
/// 12.5.3).
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let mut by_star = false;
    let values = headers.get_all(ACCEPT_ENCODING).into_iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    let values: Vec<_> = values.collect();
    for coding in values.iter().flat_map(|value| value.split(',')) {
        let (name, parameters) = coding.split_once(';').unwrap_or((coding, ""));
        let accepted = !is_weightless(parameters);
        match name.trim().to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => return accepted,
            "*" => by_star = accepted,
            _ => {}
        }
    }
    by_star
}

/// Returns whether the weight is zero (`q=0`, `q=0.0`, …). With such a weight, a client refuses the coding.
fn is_weightless(parameters: &str) -> bool {
    let weights = parameters.split(';').filter_map(|p| p.trim().strip_prefix(['q', 'Q'])?.trim().strip_prefix('='));
    weights.into_iter().any(|weight| {
        let weight = weight.trim();
        weight.starts_with('0') && weight.bytes().all(|b| matches!(b, b'0' | b'.'))
    })
}

const LOG_POSITION: HeaderName = HeaderName::from_static("x-log-position");

/// A body, and the state that it was made from.
#[derive(Clone, Debug)]
pub struct Stated<T> {
    pub body: T,
    pub state: State,
}

/// Only the body is serialised.
impl<T: Serialize> Serialize for Stated<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.body.serialize(serializer)
    }
}

/// The state that an answer was made from, as far as headers tell it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Nothing but the entity tag tells it.
    #[default]
    Untold,
    /// A position in the log of changes. Two pages with the same one show the same state.
    LogPosition {
        seq: u64,
        /// As of when this was the end of the log.
        as_of: Moment,
    },
    /// Dates of what the answer shows.
    Modified {
        /// What `Last-Modified` shows.
        newest: Timestamp,
        /// Since when the answer has been the same. Never before `newest`.
        changed: Timestamp,
    },
}

impl State {
    /// Returns as of when the state is, if it tells.
    pub(crate) fn as_of(self) -> Option<Moment> {
        if let Self::LogPosition { as_of, .. } = self { Some(as_of) } else { None }
    }

    /// Returns the header that tells the state.
    fn header(self) -> Option<(HeaderName, HeaderValue)> {
        match self {
            Self::Untold => None,
            Self::LogPosition { seq, .. } => Some((LOG_POSITION, seq.into())),
            Self::Modified { newest, .. } => {
                let date = HeaderValue::try_from(fmt_http_date(since_epoch(newest.seconds(), 0)?)).ok()?;
                Some((LAST_MODIFIED, date))
            }
        }
    }

    /// Returns whether nothing has changed since the date in `If-Modified-Since` (RFC 9110, section 13.1.3). A header
    /// that is no date is ignored, and so is any if the state has no date.
    ///
    /// A client sends the date of the newest quote, cut to its second. A change within that second is not seen.
    fn is_unchanged_since(self, headers: &HeaderMap) -> bool {
        let Self::Modified { newest, changed } = self else { return false };
        let Some(date) = headers.get(IF_MODIFIED_SINCE).and_then(|value| parse_http_date(value.to_str().ok()?).ok())
        else {
            return false;
        };
        let changed = if changed == newest { since_epoch(newest.seconds(), 0) } else { precisely(changed) };
        changed.is_some_and(|changed| changed <= date)
    }
}

fn precisely(at: Timestamp) -> Option<SystemTime> {
    since_epoch(at.seconds(), at.millis().rem_euclid(1_000))
}

/// Returns `None` for a time before 1970, which no HTTP date of a quote is.
fn since_epoch(seconds: i64, millis: i64) -> Option<SystemTime> {
    let (seconds, millis) = (u64::try_from(seconds).ok()?, u64::try_from(millis).ok()?);
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds) + Duration::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;
    use common::clock::SystemClock;

    fn accepting(value: &str) -> bool {
        accepts_gzip(&HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_bytes(value.as_bytes()).unwrap())]))
    }

    #[test]
    fn an_answer_to_head_has_no_body() {
        let mut request = Request::default();
        *request.method_mut() = http::Method::HEAD;
        let rate = Rate { limit: 60, remaining: 59, reset: 17, known: true };
        let response = respond(&request, Err(ApiError::RouteNotFound(None)), rate, None);
        assert!(matches!(response.body(), Body::Empty));
    }

    #[test]
    fn only_who_came_by_https_is_told_to_come_back_by_it() {
        for (scheme, told) in [(Some("https"), Some("max-age=31536000")), (Some("http"), None), (None, None)] {
            let mut request = Request::default();
            request.headers_mut().extend(scheme.map(|scheme| (FORWARDED_PROTO, HeaderValue::from_static(scheme))));
            for outcome in [Err(ApiError::KeyMissing), Err(ApiError::RouteNotFound(None))] {
                let response = respond(&request, outcome, Rate::none(Timestamp::from_millis(0)), None);
                let header = response.headers().get(STRICT_TRANSPORT_SECURITY).map(|value| value.to_str().unwrap());
                assert_eq!(header, told, "{scheme:?}");
            }
        }
    }

    #[test]
    fn gzip_is_used_only_where_it_is_accepted() {
        for yes in ["gzip", "★, gzip", "br, gzip;q=0.5", "*", "GZIP", "deflate,*;q=0.1"] {
            assert!(accepting(yes), "{yes}");
        }
        for no in ["", "br", "gzip;q=0", "gzip; q=0.000, *", "identity", "*;q=0"] {
            assert!(!accepting(no), "{no}");
        }
    }

    #[test]
    fn a_tag_matches_weakly_in_a_list_or_by_star() {
        let tag = entity_tag(b"x", false);
        let given = |value: &str| {
            matches_tag(
                &HeaderMap::from_iter([(IF_NONE_MATCH, HeaderValue::from_bytes(value.as_bytes()).unwrap())]),
                &tag,
            )
        };
        assert!(given(&format!("\"★\", {tag}")) && given(&format!("W/\"é\",W/{tag}")));
        assert!(given("*") && given(&tag) && given(&format!("\"a\", W/{tag}")));
        assert!(!given("\"a\"") && !given(&entity_tag(b"x", true)) && !given(&entity_tag(b"y", false)));
    }

    /// 2026-11-20T10:00:00.700Z
    const NEWEST: i64 = 1_795_168_800_700;

    fn state(changed_after_millis: i64) -> State {
        let newest = Timestamp::from_millis(NEWEST);
        State::Modified { newest, changed: newest.plus_millis(changed_after_millis) }
    }

    fn since(state: State, date: &'static str) -> bool {
        state.is_unchanged_since(&HeaderMap::from_iter([(IF_MODIFIED_SINCE, HeaderValue::from_static(date))]))
    }

    #[test]
    fn the_date_is_cut_to_its_second() {
        let (name, value) = state(0).header().unwrap();
        assert_eq!((name, value.to_str().unwrap()), (LAST_MODIFIED, "Fri, 20 Nov 2026 10:00:00 GMT"));
        assert_eq!(State::Untold.header(), None);
        let as_of = Moment::now(&SystemClock::new());
        let position = State::LogPosition { seq: 7, as_of };
        assert_eq!(position.header(), Some((LOG_POSITION, 7.into())));
    }

    #[test]
    fn nothing_has_changed_since_the_date_that_was_sent_or_a_later_one() {
        for (date, expected) in [
            ("Fri, 20 Nov 2026 09:59:59 GMT", false),
            ("Fri, 20 Nov 2026 10:00:00 GMT", true),
            ("Friday, 20-Nov-26 10:00:01 GMT", true),
            ("2026-11-20T10:00:01Z", false),
            ("", false),
        ] {
            assert_eq!(since(state(0), date), expected, "{date}");
        }
        assert!(!since(
            State::LogPosition { seq: 7, as_of: Moment::now(&SystemClock::new()) },
            "Fri, 20 Nov 2026 10:00:01 GMT"
        ));
    }

    #[test]
    fn a_change_after_the_newest_quote_is_seen_to_the_millisecond() {
        assert!(!since(state(300), "Fri, 20 Nov 2026 10:00:00 GMT"));
        assert!(since(state(300), "Fri, 20 Nov 2026 10:00:01 GMT"));
        assert!(!since(state(301), "Fri, 20 Nov 2026 10:00:01 GMT"));
    }
}
