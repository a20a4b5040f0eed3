//! `BatchGetItem`, which answers with the keys that it could not read.

use dynoxide::types::{item_size, read_capacity_units_with_consistency};
use serde_json::{Map, Value, json};
use tokio::time::sleep;

use super::answer::Answer;
use super::isolation::show_batch;
use super::report::Refusal;
use super::store::{Call, Store};
use super::tables::{Schema, item};
use super::usage::{Access, Resource, Use};

/// The member of requests and answers that holds the keys by table.
const REQUESTED: &str = "RequestItems";
const UNPROCESSED: &str = "UnprocessedKeys";

/// Reads the keys whose partitions admit it. Refuses the call only if none does.
pub(super) async fn get(store: &Store, mut call: Call) -> Answer {
    let latency = store.limiter.begin(false);
    sleep(latency / 2).await;
    let refused = split(store, &mut call);
    let answer = match refused {
        Some(Refused { first, .. }) if call.request[REQUESTED].as_object().is_some_and(Map::is_empty) => {
            Answer::refused(&first)
        }
        Some(Refused { tables, .. }) => with_unprocessed(read(store, call).await, tables),
        None => read(store, call).await,
    };
    sleep(latency / 2).await;
    answer
}

async fn read(store: &Store, call: Call) -> Answer {
    let mut tables = call.request[REQUESTED].as_object().into_iter().flatten();
    let is_whole = tables.all(|(_, wanted)| wanted["ProjectionExpression"].is_null());
    show_batch(store, is_whole, store.send(call).await)
}

/// The keys that were refused, by table, and why the first of them was.
struct Refused {
    tables: Map<String, Value>,
    first: Refusal,
}

/// Takes the units of each key. Removes the keys that were refused from the request.
fn split(store: &Store, call: &mut Call) -> Option<Refused> {
    let mut refused: Option<Refused> = None;
    let tables = call.request.get_mut(REQUESTED)?.as_object_mut()?;
    tables.retain(|table, wanted| {
        let Some(schema) = store.tables.schema(table) else { return true };
        let is_consistent = wanted["ConsistentRead"] == json!(true);
        let Some(keys) = wanted.get_mut("Keys").and_then(Value::as_array_mut) else { return true };
        let mut left = Vec::new();
        keys.retain(|key| {
            let Some(used) = read_use(store, table, &schema, key, is_consistent) else { return true };
            let Err(refusals) = store.limiter.take(&call.operation, &[vec![used]]) else { return true };
            left.push(key.clone());
            let first = refusals.into_iter().flatten().next();
            if refused.is_none() {
                refused = first.map(|first| Refused { tables: Map::new(), first });
            }
            false
        });
        let is_left = !keys.is_empty();
        if !left.is_empty() {
            let mut rest = wanted.clone();
            rest["Keys"] = Value::Array(left);
            if let Some(refused) = &mut refused {
                refused.tables.insert(table.clone(), rest);
            }
        }
        is_left
    });
    refused
}

fn read_use(store: &Store, table: &str, schema: &Schema, key: &Value, is_consistent: bool) -> Option<Use> {
    let key = item(key)?;
    let size = store.tables.item(table, &key).as_ref().map_or(0, item_size);
    let units = read_capacity_units_with_consistency(size, is_consistent);
    let partition = schema.keys.partition_of(&key);
    Some(Use { resource: Resource::table(table), partition, access: Access::Read, units })
}

/// Adds the keys that were refused to those that the store left over itself.
fn with_unprocessed(answer: Answer, tables: Map<String, Value>) -> Answer {
    let Ok(mut body) = serde_json::from_slice::<Value>(&answer.body) else { return answer };
    if !answer.status.is_success() || !body.is_object() {
        return answer;
    }
    if !body[UNPROCESSED].is_object() {
        body[UNPROCESSED] = json!({});
    }
    for (table, mut rest) in tables {
        if let (Some(keys), Some(own)) = (rest["Keys"].as_array_mut(), body[UNPROCESSED][&table]["Keys"].as_array()) {
            keys.extend(own.iter().cloned());
        }
        body[UNPROCESSED][&table] = rest;
    }
    Answer::json(answer.status, &body)
}
