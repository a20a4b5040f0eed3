//! Builds one operation: `Get` declares what differs between operations, the rest is the same for all of them.

use api::error::{ApiError, FieldError};
use api::routes::Route;
use types::scope::{Budget, Scope};
use utoipa::openapi::SecurityRequirement;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::path::{Operation, OperationBuilder, Parameter};

use super::body::ResponseBody;
use super::constants::API_KEY;
use super::{errors, headers, parameters, success};

/// Names the scope that an operation needs, for programs that do not read the security requirements of bearer schemes.
/// Do not add a second extension: the library keeps extensions in a hash map, so the order of two would differ between
/// instances, and with it the document's bytes.
const REQUIRED_SCOPE: &str = "x-required-scope";

/// A `GET` operation.
pub(super) struct Get {
    pub(super) route: Route,
    /// The `operationId`. Generated clients name their methods after it.
    pub(super) id: &'static str,
    pub(super) tag: &'static str,
    pub(super) summary: &'static str,
    pub(super) description: &'static str,
    pub(super) parameters: Vec<Parameter>,
    /// The description of the 200.
    pub(super) answer: &'static str,
    /// The body of the 200.
    pub(super) body: ResponseBody,
    /// The header of a 200, and of its 304, that tells the state which the answer was made from.
    pub(super) state: Option<&'static str>,
    /// The fields in the example of a 400.
    pub(super) bad_request: Vec<FieldError>,
    /// The example of a 404, if the path has an id that may not exist.
    pub(super) not_found: Option<ApiError>,
}

impl Get {
    /// Builds the operation, with every response that it can give.
    pub(super) fn operation(self) -> Operation {
        let Route { budget, cache, .. } = self.route;
        let scope = budget.and_then(Budget::scope);
        let mut extra = if budget.is_some() { headers::BUDGET.to_vec() } else { Vec::new() };
        extra.extend(self.state);
        let operation = OperationBuilder::new()
            .tags(Some([self.tag]))
            .summary(Some(self.summary))
            .description(Some(format!("{} {}", self.description, need(budget))))
            .operation_id(Some(self.id))
            .parameters((!self.parameters.is_empty()).then_some(self.parameters))
            .securities(Some(budget.map(|_| SecurityRequirement::new(API_KEY, scope.map(Scope::as_str)))))
            .extensions(scope.map(|scope| Extensions::from_iter([(REQUIRED_SCOPE, scope.as_str())])))
            .parameter_ref(parameters::reference(parameters::IF_NONE_MATCH))
            .response("200", success::ok(self.answer, self.body, cache, &extra))
            .response("304", success::not_modified(cache, &extra));
        let operation = match self.state {
            Some(headers::LAST_MODIFIED) => {
                operation.parameter_ref(parameters::reference(parameters::IF_MODIFIED_SINCE))
            }
            _ => operation,
        };
        let refusals = budget.map(|budget| errors::of_key(budget, self.bad_request)).unwrap_or_default();
        let refusals = refusals.into_iter().chain(self.not_found.map(errors::of_id)).chain([errors::of_method()]);
        refusals.fold(operation, |operation, (status, response)| operation.response(status, response)).build()
    }
}

fn need(budget: Option<Budget>) -> String {
    match budget {
        None => "Needs no key.".to_owned(),
        Some(Budget::Me) => "Accepts any valid key, whatever its scopes.".to_owned(),
        Some(Budget::Scope(scope)) => format!("Needs the scope `{scope}`."),
    }
}
