//! The operation that returns the caller's key.

use api::CacheControl;
use api::error::{FieldCode, FieldError};
use types::records::PublicMe;
use types::scope::Budget;

use super::tags::KEY;
use crate::document::body::Body;
use crate::document::operation::Get;

pub(super) fn me() -> Get {
    Get {
        path: "/v1/public/me",
        id: "getMe",
        tag: KEY,
        summary: "Your key",
        description: "Returns the key's owner, tier, scopes and rate limit. This endpoint has a budget of its own.",
        budget: Some(Budget::Me),
        cache: CacheControl::PrivateNoCache,
        parameters: Vec::new(),
        answer: "The key.",
        body: Body::record::<PublicMe>(),
        bad_request: vec![FieldError::new("verbose", FieldCode::Unknown, [])],
        not_found: None,
    }
}
