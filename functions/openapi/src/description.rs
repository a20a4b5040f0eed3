//! The function's handler. It builds each body once, when it is first asked for, and responds to every other path with
//! a 404.

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use api::error::ApiError;
use api::line::{Facts, cause, log, log_waiting};
use api::origin::Origin;
use api::pipeline::check_method;
use api::refusals::Refusals;
use api::reply::{JSON, respond};
use api::routes::{DESCRIPTION, DOCS, LLMS, MARKDOWN, PUBLIC};
use api::{GatewayEvent, Handler, Reply, Response, State};
use auth::Rate;
use http::HeaderMap;
use platform::metrics::Meter;
use types::clock::Clock;
use utoipa::openapi::OpenApi;

use crate::{document, page};

const HTML: &str = "text/html; charset=utf-8";
const MARKDOWN_TYPE: &str = "text/markdown; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// Serves the description of the API: the OpenAPI document for programs, the docs page for people, and both texts for
/// programs that read.
pub struct Description {
    origin: Origin,
    refusals: Refusals,
    document: OpenApi,
    /// The document as JSON, or why it could not be serialised.
    json: OnceLock<Result<String, String>>,
    html: OnceLock<String>,
    markdown: OnceLock<String>,
    index: OnceLock<String>,
    clock: Arc<dyn Clock>,
    meter: Arc<Meter>,
}

impl Description {
    /// Builds the document, from which both bodies are made.
    pub fn new(origin: Origin, clock: Arc<dyn Clock>, meter: Arc<Meter>) -> Self {
        Self {
            origin,
            refusals: Refusals::default(),
            document: document::openapi(),
            json: OnceLock::new(),
            html: OnceLock::new(),
            markdown: OnceLock::new(),
            index: OnceLock::new(),
            clock,
            meter,
        }
    }

    /// Responds to an unknown path with 404 whatever the method is: a 405 would have no methods to name in `Allow`.
    fn decide(&self, event: &GatewayEvent) -> Result<Reply, ApiError> {
        self.origin.check(event)?;
        let path = event.raw_path.as_deref().unwrap_or_default();
        if !PUBLIC.contains(&path) {
            return Err(ApiError::RouteNotFound);
        }
        check_method(event)?;
        let document = &self.document;
        let (body, content_type, headers) = match path {
            DOCS => (self.html.get_or_init(|| page::render(document)), HTML, page::headers()),
            MARKDOWN => {
                (self.markdown.get_or_init(|| page::markdown::render(document)), MARKDOWN_TYPE, HeaderMap::new())
            }
            LLMS => (self.index.get_or_init(|| page::index(document)), PLAIN, HeaderMap::new()),
            _ => {
                let json = self.json.get_or_init(|| document.to_json().map_err(|error| error.to_string()));
                (json.as_ref().map_err(|error| ApiError::Internal(error.clone()))?, JSON, HeaderMap::new())
            }
        };
        Ok(Reply {
            body: body.clone().into_bytes(),
            content_type,
            cache: DESCRIPTION.cache,
            state: State::Untold,
            headers,
        })
    }

    fn answer(&self, event: &GatewayEvent) -> Response {
        let started = self.clock.monotonic();
        let outcome = self.decide(event);
        let is_refused =
            matches!(outcome, Err(ApiError::RouteNotFound | ApiError::HostNotAllowed | ApiError::MethodNotAllowed(_)));
        let cause = cause(&outcome);
        let response = respond(event, outcome, Rate::none(self.clock.now()), None);
        let duration = self.clock.monotonic().saturating_sub(started);
        let refusals = if is_refused { self.refusals.note(duration, &*self.clock) } else { Vec::new() };
        if !is_refused || !refusals.is_empty() {
            log(&self.meter, event, &response, &Facts { cause, duration, refusals, ..Facts::default() });
        }
        log_waiting(&self.meter, &self.refusals.take_due(&*self.clock));
        response
    }
}

impl Handler for Description {
    fn warm_up(&self) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>> {
        Box::pin(ready(Ok(())))
    }

    fn handle(&self, event: GatewayEvent) -> Pin<Box<dyn Future<Output = Response> + Send + '_>> {
        Box::pin(async move { self.answer(&event) })
    }
}

#[cfg(test)]
#[path = "description_tests.rs"]
mod tests;
