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
use api::routes::{DESCRIPTION, DOCS};
use api::{GatewayEvent, Handler, Reply, Response};
use auth::Rate;
use platform::metrics::Meter;
use types::clock::Clock;
use utoipa::openapi::OpenApi;

use crate::{document, page};

const HTML: &str = "text/html; charset=utf-8";

/// Serves the description of the API: the OpenAPI document for programs, and the docs page for people.
pub struct Description {
    origin: Origin,
    refusals: Refusals,
    document: OpenApi,
    /// The document as JSON, or why it could not be serialised.
    json: OnceLock<Result<String, String>>,
    html: OnceLock<String>,
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
            clock,
            meter,
        }
    }

    /// Responds to an unknown path with 404 whatever the method is: a 405 would have no methods to name in `Allow`.
    fn decide(&self, event: &GatewayEvent) -> Result<Reply, ApiError> {
        self.origin.check(event)?;
        let path = event.raw_path.as_deref().unwrap_or_default();
        if path != DESCRIPTION.path && path != DOCS {
            return Err(ApiError::RouteNotFound);
        }
        check_method(event)?;
        let (body, content_type) = if path == DOCS {
            (self.html.get_or_init(|| page::render(&self.document)), HTML)
        } else {
            let json = self.json.get_or_init(|| self.document.to_json().map_err(|error| error.to_string()));
            (json.as_ref().map_err(|error| ApiError::Internal(error.clone()))?, JSON)
        };
        Ok(Reply { body: body.clone().into_bytes(), content_type, cache: DESCRIPTION.cache })
    }

    fn answer(&self, event: &GatewayEvent) -> Response {
        let started = self.clock.monotonic();
        let outcome = self.decide(event);
        let is_refused = matches!(outcome, Err(ApiError::RouteNotFound | ApiError::HostNotAllowed));
        let cause = cause(&outcome);
        let response = respond(event, outcome, Rate::none(self.clock.now()));
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
