//! The embedded DynamoDB below its API: answers to calls, and the keys and stored items of its tables.

use bytes::Bytes;
use dynoxide::actions::get_item::GetItemRequest;
use dynoxide::types::{GlobalSecondaryIndex, KeySchemaElement, KeyType, ProjectionType};
use dynoxide::{AttributeValue, Database, DynoxideError, Item};
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::server::{Body, full};

/// The tables. A call is answered before anything else can happen to them.
pub(super) struct Tables(pub(super) Database);

/// An answer whose body is at hand.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
}

/// The keys of a table and of its indexes.
pub(super) struct Schema {
    pub(super) keys: KeyNames,
    pub(super) indexes: Vec<Index>,
}

/// The attributes that are the keys of a table or index.
pub(super) struct KeyNames {
    pub(super) partition: String,
    sort: Option<String>,
}

/// A global secondary index.
pub(super) struct Index {
    pub(super) name: String,
    pub(super) keys: KeyNames,
    /// The attributes that it holds beside all keys, or `None` if it holds every attribute.
    others: Option<Vec<String>>,
}

impl Tables {
    /// Answers a call without limits.
    pub(super) fn answer(&self, operation: &str, body: &[u8]) -> Answer {
        let database = &self.0;
        let answered = match operation {
            "GetItem" => execute(database, body, Database::get_item),
            "Query" => execute(database, body, Database::query),
            "Scan" => execute(database, body, Database::scan),
            "BatchGetItem" => execute(database, body, Database::batch_get_item),
            "PutItem" => execute(database, body, Database::put_item),
            "UpdateItem" => execute(database, body, Database::update_item),
            "DeleteItem" => execute(database, body, Database::delete_item),
            "BatchWriteItem" => execute(database, body, Database::batch_write_item),
            "TransactGetItems" => execute(database, body, Database::transact_get_items),
            "TransactWriteItems" => execute(database, body, Database::transact_write_items),
            "ExecuteStatement" => execute(database, body, Database::execute_statement),
            "CreateTable" => execute(database, body, Database::create_table),
            "DescribeTable" => execute(database, body, Database::describe_table),
            "UpdateTable" => execute(database, body, Database::update_table),
            "DeleteTable" => execute(database, body, Database::delete_table),
            "ListTables" => execute(database, body, Database::list_tables),
            "UpdateTimeToLive" => execute(database, body, Database::update_time_to_live),
            "DescribeTimeToLive" => execute(database, body, Database::describe_time_to_live),
            "TagResource" => execute(database, body, Database::tag_resource),
            "UntagResource" => execute(database, body, Database::untag_resource),
            "ListTagsOfResource" => execute(database, body, Database::list_tags_of_resource),
            _ => {
                let message = format!("{operation} is not among the operations served here");
                return Answer::error("UnknownOperationException", json!({ "message": message }));
            }
        };
        answered.unwrap_or_else(|error| {
            let status = StatusCode::from_u16(error.status_code()).unwrap_or(StatusCode::BAD_REQUEST);
            Answer { status, body: error.to_json().into() }
        })
    }

    pub(super) fn schema(&self, table: &str) -> Option<Schema> {
        let metadata = self.0.get_table_metadata(table).ok()??;
        let indexes: Vec<GlobalSecondaryIndex> =
            metadata.gsi_definitions.map_or_else(|| Some(Vec::new()), |json| serde_json::from_str(&json).ok())?;
        let indexes = indexes.into_iter().map(Index::new).collect::<Option<Vec<_>>>()?;
        Some(Schema { keys: KeyNames::new(&serde_json::from_str::<Vec<_>>(&metadata.key_schema).ok()?)?, indexes })
    }

    /// Returns the item that is stored now.
    pub(super) fn item(&self, table: &str, key: &Item) -> Option<Item> {
        let (table_name, key) = (table.to_owned(), key.clone());
        let request = GetItemRequest { table_name, key, consistent_read: Some(true), ..GetItemRequest::default() };
        self.0.get_item(request).ok()?.item
    }
}

fn execute<Q: DeserializeOwned, A: Serialize>(
    database: &Database,
    body: &[u8],
    operation: impl FnOnce(&Database, Q) -> dynoxide::Result<A>,
) -> dynoxide::Result<Answer> {
    let malformed = |error: serde_json::Error| DynoxideError::SerializationException(error.to_string());
    let answer = operation(database, serde_json::from_slice(body).map_err(malformed)?)?;
    let body = serde_json::to_vec(&answer).map_err(malformed)?.into();
    Ok(Answer { status: StatusCode::OK, body })
}

impl Answer {
    pub(super) fn json(status: StatusCode, body: &Value) -> Self {
        Self { status, body: body.to_string().into() }
    }

    pub(super) fn error(name: &str, mut body: Value) -> Self {
        body["__type"] = json!(format!("com.amazonaws.dynamodb.v20120810#{name}"));
        Self::json(StatusCode::BAD_REQUEST, &body)
    }

    /// Changes the body, unless the call failed or `change` returns `None`.
    pub(super) fn changed(self, change: impl FnOnce(&mut Value) -> Option<()>) -> Self {
        let body = serde_json::from_slice::<Value>(&self.body).ok().filter(|_| self.status.is_success());
        let changed = body.and_then(|mut body| change(&mut body).map(|()| Self::json(self.status, &body)));
        changed.unwrap_or(self)
    }

    pub(super) fn into_response(self) -> Response<Body> {
        let mut response = Response::new(full(self.body));
        *response.status_mut() = self.status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-amz-json-1.0"));
        response
    }
}

impl Schema {
    pub(super) fn index(&self, name: &str) -> Option<&Index> {
        self.indexes.iter().find(|index| index.name == name)
    }
}

impl KeyNames {
    pub(super) fn new(elements: &[KeySchemaElement]) -> Option<Self> {
        let name = |kind: KeyType| {
            let element = elements.iter().find(|element| element.key_type == kind)?;
            Some(element.attribute_name.clone())
        };
        Some(Self { partition: name(KeyType::HASH)?, sort: name(KeyType::RANGE) })
    }

    /// Returns the key of an item, unless a part of it is missing.
    pub(super) fn key_of(&self, item: &Item) -> Option<Item> {
        let names = std::iter::once(&self.partition).chain(&self.sort);
        names.map(|name| Some((name.clone(), item.get(name)?.clone()))).collect()
    }

    /// Returns the key of an item of an answer, unless a part of it is missing.
    pub(super) fn key_of_json(&self, row: &Value) -> Option<Item> {
        let names = std::iter::once(&self.partition).chain(&self.sort);
        names.map(|name| Some((name.clone(), serde_json::from_value(row.get(name)?.clone()).ok()?))).collect()
    }

    /// Returns an item's partition key as reports show it.
    pub(super) fn partition_of(&self, item: &Item) -> Option<String> {
        item.get(&self.partition).map(|value| match value {
            AttributeValue::S(text) => text.clone(),
            other => other.to_string(),
        })
    }
}

impl Index {
    fn new(definition: GlobalSecondaryIndex) -> Option<Self> {
        let others = match definition.projection.projection_type {
            Some(ProjectionType::KEYS_ONLY) => Some(Vec::new()),
            Some(ProjectionType::INCLUDE) => definition.projection.non_key_attributes,
            Some(ProjectionType::ALL) | None => None,
        };
        Some(Self { name: definition.index_name, keys: KeyNames::new(&definition.key_schema)?, others })
    }

    /// Returns what the index holds of an item, if it has the index's keys.
    pub(super) fn entry(&self, table: &KeyNames, item: &Item) -> Option<Item> {
        let mut entry = self.keys.key_of(item)?;
        let Some(others) = &self.others else { return Some(item.clone()) };
        entry.extend(table.key_of(item)?);
        entry.extend(others.iter().filter_map(|name| Some((name.clone(), item.get(name)?.clone()))));
        Some(entry)
    }
}

/// Reads an item or a key from a request or an answer.
pub(super) fn item(json: &Value) -> Option<Item> {
    serde_json::from_value(json.clone()).ok()
}
