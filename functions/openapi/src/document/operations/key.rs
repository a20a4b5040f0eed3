//! The operation that returns the caller's key.

use api::error::{FieldCode, FieldError};
use api::routes;
use types::records::PublicMe;

use super::tags::KEY;
use crate::document::body::ResponseBody;
use crate::document::operation::Get;

pub(super) fn me() -> Get {
    Get {
        route: routes::ME,
        id: "getMe",
        tag: KEY,
        summary: "Your key",
        description: "Returns the key's owner, tier, scopes and rate limit. This endpoint has a budget of its own.",
        parameters: Vec::new(),
        answer: "The key.",
        body: ResponseBody::record::<PublicMe>(),
        state: None,
        bad_request: vec![FieldError::new("verbose", FieldCode::Unknown, [])],
        not_found: None,
    }
}
