//! The operation that returns the caller's key.

use api::CacheControl;
use api::error::{FieldCode, FieldError};
use serde_json::json;
use types::scope::Budget;

use super::tags::KEY;
use crate::document::operation::Get;
use crate::document::schemas::record;

pub(super) fn me() -> Get {
    let example = json!({
        "api_key_id": "9a1c6f0e-2f7d-4c3b-9a55-5d0f3b1f7c10",
        "user_id": "3e0b1a8c-1f7a-4b58-8f0b-6c3d2a1e9f00",
        "tier": "free",
        "scopes": ["catalog:read", "orders:read"],
        "rate_limit_per_minute": 60
    });
    Get {
        path: "/v1/public/me",
        id: "getMe",
        tag: KEY,
        summary: "Your key",
        description: "Returns the key's owner, tier, scopes and rate limit. This endpoint has a budget of its own.",
        budget: Some(Budget::Me),
        cache: CacheControl::PrivateNoCache,
        parameters: Vec::new(),
        answer: ("The key.", record("PublicMe"), example),
        bad_request: vec![FieldError::new("verbose", FieldCode::Unknown, [])],
        not_found: None,
    }
}
