//! The embedded DynamoDB without its server. A call is answered before anything else can happen.

use bytes::Bytes;
use dynoxide::{Database, DynoxideError};
use http::StatusCode;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::answer::Answer;

/// Answers a call of one of the operations that the project uses.
pub(super) fn answer(database: &Database, operation: &str, body: &[u8]) -> Answer {
    let answered = match operation {
        "GetItem" => execute(database, body, Database::get_item),
        "Query" => execute(database, body, Database::query),
        "Scan" => execute(database, body, Database::scan),
        "BatchGetItem" => execute(database, body, Database::batch_get_item),
        "PutItem" => execute(database, body, Database::put_item),
        "UpdateItem" => execute(database, body, Database::update_item),
        "DeleteItem" => execute(database, body, Database::delete_item),
        "TransactGetItems" => execute(database, body, Database::transact_get_items),
        "TransactWriteItems" => execute(database, body, Database::transact_write_items),
        "CreateTable" => execute(database, body, Database::create_table),
        "UpdateTimeToLive" => execute(database, body, Database::update_time_to_live),
        _ => Err(DynoxideError::ValidationException(format!("{operation} is not among the operations served here"))),
    };
    match answered {
        Ok(body) => Answer { status: StatusCode::OK, body },
        Err(error) => {
            let status = StatusCode::from_u16(error.status_code()).unwrap_or(StatusCode::BAD_REQUEST);
            Answer { status, body: error.to_json().into() }
        }
    }
}

fn execute<Q: DeserializeOwned, A: Serialize>(
    database: &Database,
    body: &[u8],
    operation: impl FnOnce(&Database, Q) -> dynoxide::Result<A>,
) -> dynoxide::Result<Bytes> {
    let malformed = |error: serde_json::Error| DynoxideError::SerializationException(error.to_string());
    let request = serde_json::from_slice(body).map_err(malformed)?;
    let answer = operation(database, request)?;
    serde_json::to_vec(&answer).map(Bytes::from).map_err(malformed)
}
