//! The operation that serves this document.

use api::routes;
use serde_json::json;
use utoipa::openapi::{ObjectBuilder, Type};

use super::tags::DESCRIPTION;
use crate::document::body::ResponseBody;
use crate::document::constants::VERSION;
use crate::document::operation::Get;

pub(super) fn description() -> Get {
    let schema = ObjectBuilder::new().schema_type(Type::Object).description(Some("An OpenAPI 3.1 document."));
    let example = json!({
        "openapi": "3.1.0",
        "info": {"title": "Marketplace Public API", "version": VERSION},
        "paths": {}
    });
    Get {
        route: routes::DESCRIPTION,
        id: "getDescription",
        tag: DESCRIPTION,
        summary: "This description",
        description: "Returns this description of the API as OpenAPI 3.1. `/docs` serves it as a page for people.",
        parameters: Vec::new(),
        answer: "The description.",
        body: ResponseBody::other(schema, example),
        state: None,
        bad_request: Vec::new(),
        not_found: None,
    }
}
