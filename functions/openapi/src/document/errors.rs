//! The error responses. Their example bodies are serialised from `ApiError`, as the real ones are.

use api::CacheControl;
use api::error::{ApiError, ErrorEnvelope, FieldCode, FieldError};
use types::scope::{Budget, Scope};
use utoipa::ToSchema;
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::{Content, ContentBuilder, Ref, RefOr, Response, ResponseBuilder};
use uuid::uuid;

use super::constants::JSON;
use super::headers;

const UNAUTHORIZED: &str = "Unauthorized";
const METHOD_NOT_ALLOWED: &str = "MethodNotAllowed";
const INTERNAL: &str = "Internal";
const UNAVAILABLE: &str = "Unavailable";

/// Every error that the service responds with, and when it does. The texts are the last column of the guide's table.
pub(super) fn catalogue() -> [(ApiError, &'static str); 12] {
    let invalid = FieldError::new("page_size", FieldCode::Malformed, []);
    let variant = uuid!("302e3e41-4703-51e3-9cc2-e551bdcec11e").into();
    [
        (ApiError::Invalid(vec![invalid]), "one or more parameters are bad; `fields` lists them"),
        (ApiError::KeyMissing, "the request has no `Authorization: Bearer` header"),
        (ApiError::KeyInvalid, "the key is malformed, unknown, revoked or expired"),
        (ApiError::ScopeMissing(Scope::CatalogRead), "the key lacks the scope that the endpoint needs"),
        (ApiError::ItemNotFound("no-such-item".to_owned()), "there is no item with this id"),
        (ApiError::PricesNotFound(variant), "there are no prices for the variant"),
        (ApiError::RouteNotFound, "there is no such path"),
        (method_not_allowed(), "the path takes only `GET` and `HEAD`"),
        (rate_limited(Budget::Scope(Scope::CatalogRead)), "the budget for this minute is used up"),
        (internal(), "an error inside the service"),
        (unavailable(), "the service cannot answer right now; try again"),
        (ApiError::HostNotAllowed, "the API has another base URL"),
    ]
}

/// Returns the names of an error's `params`.
pub(super) fn params(error: ApiError) -> Vec<String> {
    error.envelope().error.params.into_iter().map(|(name, _)| name).collect()
}

/// Returns the responses that every operation shares, for the document's components.
pub(super) fn shared() -> [(&'static str, Response); 4] {
    let unauthorized = [ApiError::KeyMissing, ApiError::KeyInvalid];
    [
        (UNAUTHORIZED, response("The key is missing or not valid.", unauthorized, &["WWW-Authenticate"])),
        (
            METHOD_NOT_ALLOWED,
            response("The path takes only `GET` and `HEAD`. No key is needed.", [method_not_allowed()], &["Allow"]),
        ),
        (INTERNAL, response("An error inside the service.", [internal()], &headers::BUDGET_IF_KNOWN)),
        (
            UNAVAILABLE,
            response(
                "The service cannot answer right now; try again.",
                [unavailable()],
                &["Retry-After.trouble", headers::BUDGET_IF_KNOWN[0], headers::BUDGET_IF_KNOWN[1]],
            ),
        ),
    ]
}

/// Returns the error responses of an operation that needs a key: 400, 401, 429, 500, 503, and 403 if it needs a scope.
pub(super) fn of_key(budget: Budget, fields: Vec<FieldError>) -> Vec<(&'static str, RefOr<Response>)> {
    let mut responses = vec![
        ("400", response("One or more parameters are bad.", [ApiError::Invalid(fields)], &headers::BUDGET).into()),
        ("401", reference(UNAUTHORIZED)),
        ("429", spent(budget).into()),
        ("500", reference(INTERNAL)),
        ("503", reference(UNAVAILABLE)),
    ];
    responses.extend(budget.scope().map(|scope| {
        let description = format!("The key lacks the scope `{scope}`.");
        ("403", response(&description, [ApiError::ScopeMissing(scope)], &headers::BUDGET).into())
    }));
    responses
}

/// Returns the response to a method other than `GET` and `HEAD`.
pub(super) fn of_method() -> (&'static str, RefOr<Response>) {
    ("405", reference(METHOD_NOT_ALLOWED))
}

/// Returns the response to an id that does not exist.
pub(super) fn of_id(error: ApiError) -> (&'static str, RefOr<Response>) {
    ("404", response(&sentence(&error), [error], &headers::BUDGET).into())
}

/// Returns when the service responds with an error, as a sentence.
fn sentence(error: &ApiError) -> String {
    let known = catalogue().into_iter().find(|(known, _)| known.code() == error.code());
    // Every error is in the catalogue, as a test makes sure.
    let when = known.map_or("not found", |(_, when)| when);
    let (first, rest) = when.split_at(1);
    format!("{}{rest}.", first.to_ascii_uppercase())
}

fn spent(budget: Budget) -> Response {
    let headers = ["Retry-After.budget", headers::BUDGET[0], headers::BUDGET[1]];
    response("The budget for this minute is used up.", [rate_limited(budget)], &headers)
}

fn reference(name: &str) -> RefOr<Response> {
    Ref::from_response_name(name).into()
}

fn response<const N: usize>(description: &str, errors: [ApiError; N], extra: &[&str]) -> Response {
    let response = ResponseBuilder::new().description(description).content(JSON, content(errors));
    let response = headers::add(response, &headers::EVERY);
    let response = headers::add(response, &[headers::cache_control(CacheControl::NoStore)]);
    headers::add(response, extra).build()
}

fn content<const N: usize>(errors: [ApiError; N]) -> Content {
    let examples = errors.map(|error| {
        let code = error.code();
        let body = serde_json::to_value(error.envelope()).unwrap_or_default();
        (code, ExampleBuilder::new().value(Some(body)))
    });
    ContentBuilder::new()
        .schema(Some(Ref::from_schema_name(ErrorEnvelope::name())))
        .examples_from_iter(examples)
        .build()
}

fn method_not_allowed() -> ApiError {
    ApiError::MethodNotAllowed("POST".to_owned())
}

fn rate_limited(budget: Budget) -> ApiError {
    ApiError::RateLimited { budget, limit: 60, retry_after: 17 }
}

fn internal() -> ApiError {
    ApiError::Internal(String::new())
}

fn unavailable() -> ApiError {
    ApiError::Unavailable(String::new())
}
