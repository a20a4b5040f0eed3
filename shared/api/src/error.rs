//! The errors that a request can end in, and the JSON body that reports them.

use http::StatusCode;
use serde::Serialize;
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::auth::Refusal;
use common::closed_enum;
use common::ids::VariantId;
use common::scope::{Budget, Scope};
use common::store::StoreError;

/// An error that a request can end in (specification 7.2.1). A variant carries what its response shows, or the cause
/// for the log.
#[derive(Debug, Error)]
pub enum ApiError {
    /// 400: one entry per bad parameter.
    #[error("invalid request")]
    Invalid(Vec<FieldError>),
    /// 401: no `Authorization: Bearer` header.
    #[error("no API key")]
    KeyMissing,
    /// 401: a bearer token that is malformed, unknown, revoked or expired. The response does not say which.
    #[error("unacceptable API key")]
    KeyInvalid,
    /// 403: the request did not come through the deployment's edge.
    #[error("host not allowed")]
    HostNotAllowed,
    /// 403: a valid key without the scope.
    #[error("scope {0} missing")]
    ScopeMissing(Scope),
    /// 404: no item has this id. Holds the id as it was requested.
    #[error("no such item")]
    ItemNotFound(String),
    /// 404: no prices for the variant.
    #[error("no prices for variant {0}")]
    PricesNotFound(VariantId),
    /// 404: no such path. Holds the one that was probably meant.
    #[error("no such route")]
    RouteNotFound(Option<String>),
    /// 410: the log of changes no longer goes back to this position.
    #[error("position {0} expired")]
    PositionExpired(u64),
    /// 405: the path exists, but takes only `GET` and `HEAD`. Holds the method.
    #[error("method {0} not allowed")]
    MethodNotAllowed(String),
    /// 429: the budget for this minute is used up.
    #[error("rate limit exceeded")]
    RateLimited {
        budget: Budget,
        /// Tokens per minute.
        limit: u32,
        /// Seconds until the next minute, 1 to 60.
        retry_after: u32,
    },
    /// 500: a bug in the service, or stored data that cannot be read. Holds the cause.
    #[error("internal: {0}")]
    Internal(String),
    /// 503: the store did not answer, or not in time. Holds the cause.
    #[error("unavailable: {0}")]
    Unavailable(String),
}

impl ApiError {
    /// Returns the HTTP status.
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::Invalid(_) => StatusCode::BAD_REQUEST,
            Self::KeyMissing | Self::KeyInvalid => StatusCode::UNAUTHORIZED,
            Self::HostNotAllowed | Self::ScopeMissing(_) => StatusCode::FORBIDDEN,
            Self::ItemNotFound(_) | Self::PricesNotFound(_) | Self::RouteNotFound(_) => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::PositionExpired(_) => StatusCode::GONE,
            Self::RateLimited { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Returns the stable code that clients match on.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "request.invalid",
            Self::KeyMissing => "api_keys.missing",
            Self::KeyInvalid => "api_keys.invalid",
            Self::HostNotAllowed => "hosts.not_allowed",
            Self::ScopeMissing(_) => "api_keys.scope_missing",
            Self::ItemNotFound(_) => "items.not_found",
            Self::PricesNotFound(_) => "prices.not_found",
            Self::RouteNotFound(_) => "routes.not_found",
            Self::MethodNotAllowed(_) => "routes.method_not_allowed",
            Self::PositionExpired(_) => "positions.expired",
            Self::RateLimited { .. } => "rate_limits.exceeded",
            Self::Internal(_) => "service.internal",
            Self::Unavailable(_) => "service.unavailable",
        }
    }

    fn params(&self) -> Map<String, Value> {
        match self {
            Self::ScopeMissing(scope) => object([("scope", json!(scope))]),
            Self::ItemNotFound(id) => object([("id", json!(id))]),
            Self::PricesNotFound(id) => object([("variant_id", json!(id))]),
            Self::RouteNotFound(Some(meant)) => object([("suggestion", json!(meant))]),
            Self::MethodNotAllowed(method) => object([("method", json!(method))]),
            Self::PositionExpired(position) => object([("position", json!(position))]),
            Self::RateLimited { budget, limit, retry_after } => object([
                ("scope", json!(budget.as_str())),
                ("limit", json!(limit)),
                ("retry_after", json!(retry_after)),
            ]),
            Self::Invalid(_)
            | Self::KeyMissing
            | Self::KeyInvalid
            | Self::HostNotAllowed
            | Self::RouteNotFound(None)
            | Self::Internal(_)
            | Self::Unavailable(_) => Map::new(),
        }
    }

    /// Returns the body: what the client may know. It never contains the cause.
    pub fn envelope(self) -> ErrorEnvelope {
        let (code, params) = (self.code().to_owned(), self.params());
        let fields = if let Self::Invalid(fields) = self { Some(fields) } else { None };
        ErrorEnvelope { error: ErrorBody { code, params, fields } }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::InvalidRequest(_) | StoreError::Corrupt { .. } | StoreError::Defect(_) => {
                Self::Internal(error.to_string())
            }
            StoreError::Conflict | StoreError::Throttled | StoreError::Unavailable(_) => {
                Self::Unavailable(error.to_string())
            }
        }
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::KeyInvalid => Self::KeyInvalid,
            Refusal::ScopeMissing(scope) => Self::ScopeMissing(scope),
            Refusal::BudgetSpent { budget, limit, retry_after } => Self::RateLimited { budget, limit, retry_after },
            Refusal::Store(error) => error.into(),
        }
    }
}

/// The body of every error response (specification 7.1).
#[derive(Debug, PartialEq, Serialize)]
pub struct ErrorEnvelope {
    /// What went wrong.
    pub error: ErrorBody,
}

/// What went wrong.
#[derive(Debug, PartialEq, Serialize)]
pub struct ErrorBody {
    /// The error's code. It is stable: match on it.
    pub code: String,
    /// The values for the placeholders of the code's message. Always present, but may be empty.
    pub params: Map<String, Value>,
    /// One entry for each bad parameter. Present only on a 400.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<FieldError>>,
}

/// One bad parameter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FieldError {
    /// The parameter's name, as it was sent.
    pub field: String,
    /// What is wrong with the parameter.
    pub code: FieldCode,
    /// The values for the placeholders of the code's message. May be empty.
    pub params: Map<String, Value>,
}

closed_enum! {
    /// What is wrong with a parameter.
    pub enum FieldCode {
        /// The endpoint needs the parameter.
        Required = "required",
        /// The value does not have the parameter's format.
        Malformed = "malformed",
        /// The format is right, but the value is outside its bounds.
        OutOfRange = "out_of_range",
        /// The value is not one of the allowed values.
        NotAllowed = "not_allowed",
        /// The endpoint has no such parameter.
        Unknown = "unknown",
        /// The parameter is given more than once.
        Duplicate = "duplicate",
        /// The minimum is above its maximum.
        Inverted = "inverted",
        /// The record has more than can be included.
        TooMany = "too_many",
    }
}

impl FieldError {
    /// Creates an entry with these details.
    pub fn new<const N: usize>(field: &str, code: FieldCode, params: [(&str, Value); N]) -> Self {
        Self { field: field.to_owned(), code, params: object(params) }
    }
}

fn object<const N: usize>(entries: [(&str, Value); N]) -> Map<String, Value> {
    entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
