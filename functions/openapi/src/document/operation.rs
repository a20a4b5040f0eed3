//! One operation: what differs between operations is declared, the rest is the same for all.

use api::CacheControl;
use api::error::{ApiError, FieldError};
use serde_json::Value;
use types::scope::{Budget, Scope};
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::path::{Operation, OperationBuilder, Parameter};
use utoipa::openapi::{RefOr, Schema, SecurityRequirement};

use super::{API_KEY, errors, parameters, success};

/// The scope that an operation needs, for programs that do not read security requirements of bearer schemes.
/// No second extension beside it: the library keeps them in a hash map, and the bytes would differ by instance.
const REQUIRED_SCOPE: &str = "x-required-scope";

/// A `GET`, as the description tells it.
pub(super) struct Get {
    /// The path template of its route.
    pub(super) path: &'static str,
    /// The operation's id; generated clients name their methods by it.
    pub(super) id: &'static str,
    pub(super) tag: &'static str,
    pub(super) summary: &'static str,
    pub(super) description: &'static str,
    /// What a request is counted against; `None` where no key is needed.
    pub(super) budget: Option<Budget>,
    pub(super) cache: CacheControl,
    pub(super) parameters: Vec<Parameter>,
    /// What a 200 holds: in words, as schema, by example.
    pub(super) answer: (&'static str, RefOr<Schema>, Value),
    /// The example of a 400.
    pub(super) bad_request: Vec<FieldError>,
    /// The example of a 404, where an id may name nothing.
    pub(super) not_found: Option<ApiError>,
}

impl Get {
    /// The operation with everything that a request of it can end in.
    pub(super) fn operation(self) -> Operation {
        let (in_words, schema, example) = self.answer;
        let scope = self.budget.and_then(Budget::scope);
        let operation = OperationBuilder::new()
            .tags(Some([self.tag]))
            .summary(Some(self.summary))
            .description(Some(format!("{} {}", self.description, need(self.budget))))
            .operation_id(Some(self.id))
            .parameters((!self.parameters.is_empty()).then_some(self.parameters))
            .securities(Some(self.budget.map(|_| SecurityRequirement::new(API_KEY, scope.map(Scope::as_str)))))
            .extensions(scope.map(|scope| Extensions::from_iter([(REQUIRED_SCOPE, scope.as_str())])))
            .parameter_ref(parameters::reference(parameters::IF_NONE_MATCH))
            .response("200", success::ok(in_words, schema, example, self.cache))
            .response("304", success::not_modified(self.cache));
        let refusals = self.budget.map(|budget| errors::of_key(budget, self.bad_request)).unwrap_or_default();
        let refusals = refusals.into_iter().chain(self.not_found.map(errors::of_id)).chain([errors::of_method()]);
        refusals.fold(operation, |operation, (status, response)| operation.response(status, response)).build()
    }
}

fn need(budget: Option<Budget>) -> String {
    match budget {
        None => "No key is needed.".to_owned(),
        Some(Budget::Me) => "Any valid key will do, whatever its scopes.".to_owned(),
        Some(Budget::Scope(scope)) => format!("Needs the scope `{scope}`."),
    }
}
