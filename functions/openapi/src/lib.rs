//! The `openapi` function serves the API's description: the OpenAPI document for programs, the docs page for people, and
//! both texts for programs that read. It is also behind the gateway's `$default` route, and responds to every unknown
//! path with a 404.
//!
//! The build makes all bodies from `openapi.yaml` (`build/main.rs`), so nothing is left to fail here.

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use api::auth::Rate;
use api::error::ApiError;
use api::line::{Facts, RequestLog, cause};
use api::origin::Origin;
use api::pipeline::check_method;
use api::reply::{JSON, respond};
use api::routes::{DESCRIPTION, DOCS, LLMS, MARKDOWN, meant};
use api::{Handler, Reply, Request, Response, State};
use common::aws::Missing;
use common::clock::Clock;
use common::runtime::Service;

use http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, CONTENT_SECURITY_POLICY, HeaderMap, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};

/// Includes a file that the build made.
macro_rules! made {
    ($name:literal) => {
        include_str!(concat!(env!("OUT_DIR"), "/", $name))
    };
}

/// The OpenAPI document, in JSON.
pub const OPENAPI: &str = made!("openapi.json");

/// The host that stands in the texts, and gives way to the one that the client has asked.
const HOST: &str = "https://api.example.com";

/// The path, the media type and the body of each text.
const TEXTS: [(&str, &str, &str); 4] = [
    (DESCRIPTION.path, JSON, OPENAPI),
    (DOCS, "text/html; charset=utf-8", made!("docs.html")),
    (MARKDOWN, "text/markdown; charset=utf-8", made!("docs.md")),
    (LLMS, "text/plain; charset=utf-8", made!("llms.txt")),
];

/// The function's handler.
pub struct Description {
    origin: Origin,
    log: RequestLog,
    clock: Arc<dyn Clock>,
}

pub fn api(service: &Service<'_>) -> Result<Description, Missing> {
    let (origin, log) = (Origin::from_service(service), RequestLog::from_service(service));
    Ok(Description::new(origin, log, Arc::clone(&service.clock)))
}

impl Description {
    pub fn new(origin: Origin, log: RequestLog, clock: Arc<dyn Clock>) -> Self {
        Self { origin, log, clock }
    }

    /// Responds to an unknown path with 404 whatever the method is: a 405 would have no methods to name in `Allow`.
    fn decide(&self, request: &Request) -> Result<Reply, ApiError> {
        self.origin.check(request)?;
        let path = request.uri().path();
        let found = TEXTS.into_iter().find(|(known, ..)| *known == path);
        let (path, content_type, body) = found.ok_or_else(|| ApiError::RouteNotFound(meant(path)))?;
        check_method(request)?;
        let body = match self.origin.base_url(request) {
            Some(base_url) => body.replace(HOST, &base_url),
            // The server of the description is the one that it came from.
            None => body.replace(&format!("\"{HOST}\""), "\"/\""),
        };
        let mut headers = if path == DOCS { page_headers() } else { HeaderMap::new() };
        // Tools in browsers read it. Nothing else of the API is open to other origins.
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        let (body, cache) = (body.into_bytes(), DESCRIPTION.cache);
        Ok(Reply { body, content_type, cache, state: State::Untold, headers })
    }

    fn answer(&self, request: &Request) -> Response {
        let started = self.clock.monotonic();
        let outcome = self.decide(request);
        let cause = cause(&outcome);
        let response = respond(request, outcome, Rate::none(self.clock.now()), None);
        let duration = self.clock.monotonic().saturating_sub(started);
        self.log.add(request, &response, Facts { cause, duration, ..Facts::default() });
        response
    }
}

/// Returns the headers that say what the docs page may do.
fn page_headers() -> HeaderMap {
    HeaderMap::from_iter([
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(made!("docs.policy"))),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ])
}

impl Handler for Description {
    fn warm_up(&self) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>> {
        Box::pin(ready(Ok(())))
    }

    fn handle(&self, request: Request) -> Pin<Box<dyn Future<Output = Response> + Send + '_>> {
        Box::pin(async move { self.answer(&request) })
    }
}

#[cfg(test)]
mod tests;
