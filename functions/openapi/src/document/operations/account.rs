//! The operations of the scopes `orders:read` and `wallet:read`, which return the caller's own records.

use api::CacheControl;
use api::error::{FieldCode, FieldError};
use serde_json::json;
use types::scope::{Budget, Scope};

use super::tags::ACCOUNT;
use crate::document::operation::Get;
use crate::document::parameters::paging;
use crate::document::schemas::{page_of, record};

pub(super) fn orders() -> Get {
    let order = json!({
        "id": "7d2f4a90-58c1-4f0e-8a35-1c9be0a4d6f2",
        "status": "delivered",
        "source": "checkout",
        "total_usd": "12.50",
        "created_at": "2026-11-20T10:00:00.000Z",
        "delivered_at": "2026-11-20T10:04:31.250Z",
        "items": [{
            "listing_id": "0b0e7b1e-63f1-4b6a-8f0e-3f1a7d0c9b21",
            "price_usd": "12.50",
            "item_id": "ak-47-redline"
        }]
    });
    let example = json!({"items": [order], "page": 1, "page_size": 50, "total": 1});
    Get {
        path: "/v1/public/orders",
        id: "listOrders",
        tag: ACCOUNT,
        summary: "Your orders",
        description: "Returns your own orders, newest first.",
        budget: Some(Budget::Scope(Scope::OrdersRead)),
        cache: CacheControl::NoStore,
        parameters: paging().into(),
        answer: ("A page of orders.", page_of("PublicOrder"), example),
        bad_request: vec![
            FieldError::new("page", FieldCode::OutOfRange, [("min", json!(1))]),
            FieldError::new("page_size", FieldCode::Duplicate, []),
        ],
        not_found: None,
    }
}

pub(super) fn balance() -> Get {
    let example = json!({
        "available_usd": "15.00",
        "store_usd": "10.00",
        "trade_usd": "5.00",
        "withdrawable_usd": "10.00",
        "held_usd": "2.50",
        "escrow_usd": "0.00"
    });
    Get {
        path: "/v1/public/wallet/balance",
        id: "getBalance",
        tag: ACCOUNT,
        summary: "Your balance",
        description: "Returns your own balance. All amounts are 0.00 until money first moves on the account.",
        budget: Some(Budget::Scope(Scope::WalletRead)),
        cache: CacheControl::NoStore,
        parameters: Vec::new(),
        answer: ("The balance.", record("PublicBalance"), example),
        bad_request: vec![FieldError::new("currency", FieldCode::Unknown, [])],
        not_found: None,
    }
}
