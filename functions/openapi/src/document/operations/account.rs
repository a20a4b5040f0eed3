//! The operations of the scopes `orders:read` and `wallet:read`, which return the caller's own records.

use api::error::{FieldCode, FieldError};
use api::routes;
use serde_json::json;
use types::records::{PublicBalance, PublicOrder};

use super::tags::ACCOUNT;
use crate::document::body::ResponseBody;
use crate::document::operation::Get;
use crate::document::parameters::paging;

pub(super) fn orders() -> Get {
    Get {
        route: routes::ORDERS,
        id: "listOrders",
        tag: ACCOUNT,
        summary: "Your orders",
        description: "Returns your own orders, newest first.",
        parameters: paging().into(),
        answer: "A page of orders.",
        body: ResponseBody::page::<PublicOrder>(),
        state: None,
        bad_request: vec![
            FieldError::new("page", FieldCode::OutOfRange, [("min", json!(1))]),
            FieldError::new("page_size", FieldCode::Duplicate, []),
        ],
        not_found: None,
    }
}

pub(super) fn balance() -> Get {
    Get {
        route: routes::BALANCE,
        id: "getBalance",
        tag: ACCOUNT,
        summary: "Your balance",
        description: "Returns your own balance. All amounts are 0.00 until money first moves on the account.",
        parameters: Vec::new(),
        answer: "The balance.",
        body: ResponseBody::record::<PublicBalance>(),
        state: None,
        bad_request: vec![FieldError::new("currency", FieldCode::Unknown, [])],
        not_found: None,
    }
}
