//! Reads of one partition or of a whole table: `GetItem`, `Query` and `Scan`.

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::answer::Answer;
use super::isolation::Half;
use super::store::{Call, Store};
use super::tables::{Tables, key_text};
use super::usage::{Access, Resource, Use};

/// Reads if the partition admits it. What the read costs is known only once it was made, so an answer may be thrown
/// away.
pub(super) async fn read(store: &Store, mut call: Call) -> Answer {
    let Some(mut used) = target(&store.tables, &call) else { return store.send(call).await };
    let latency = store.limiter.begin(false);
    sleep(latency / 2).await;
    let operation = call.operation.clone();
    let half = Half::from_call(&call);
    let mut answer = match admit(store, &operation, &used) {
        Ok(()) => {
            meter(&mut call.request);
            store.send(call).await
        }
        Err(refused) => refused,
    };
    if answer.status.is_success() {
        used.units = consumed(&answer);
        if let Err(refused) = admit(store, &operation, &used) {
            answer = refused;
        } else if let Some(half) = half {
            answer = half.show(store, answer);
        }
    }
    sleep(latency / 2).await;
    answer
}

fn admit(store: &Store, operation: &str, used: &Use) -> Result<(), Answer> {
    let taken = store.limiter.take(operation, &[vec![used.clone()]]);
    taken.map_err(|refusals| Answer::of_single(&refusals))
}

/// Returns what a read reads, with no units yet.
fn target(tables: &Tables, call: &Call) -> Option<Use> {
    let request = &call.request;
    let table = request["TableName"].as_str()?;
    let schema = tables.schema(table)?;
    let index = request["IndexName"].as_str().and_then(|name| schema.index(name));
    let keys = index.map_or(&schema.keys, |index| &index.keys);
    let partition = match call.operation.as_str() {
        "GetItem" => key_text(&request["Key"][keys.partition.as_str()]),
        "Query" => demanded(request, &keys.partition).and_then(key_text),
        _ => None,
    };
    let resource = index.map_or_else(|| Resource::table(table), |index| Resource::index(table, &index.name));
    Some(Use { resource, partition, access: Access::Read, units: 0.0 })
}

/// Returns the value that a Query's key condition demands of the partition key.
fn demanded<'r>(request: &'r Value, key: &str) -> Option<&'r Value> {
    let condition = request["KeyConditionExpression"].as_str()?;
    let parts = condition.split(" AND ").flat_map(|part| part.split(" and "));
    parts.filter_map(|part| part.split_once('=')).find_map(|(left, right)| {
        let [left, right] = [left, right].map(|side| side.trim_matches(['(', ')', ' ']));
        let name = request["ExpressionAttributeNames"][left].as_str().unwrap_or(left);
        (name == key).then(|| &request["ExpressionAttributeValues"][right])
    })
}

/// Asks the store to say what the call consumes. SDKs ignore the figure where they did not ask for it.
fn meter(request: &mut Value) {
    if !matches!(request["ReturnConsumedCapacity"].as_str(), Some("TOTAL" | "INDEXES")) {
        request["ReturnConsumedCapacity"] = json!("TOTAL");
    }
}

#[derive(Deserialize)]
struct Metered {
    #[serde(rename = "ConsumedCapacity")]
    capacity: Option<Capacity>,
}

#[derive(Deserialize)]
struct Capacity {
    #[serde(rename = "CapacityUnits")]
    units: f64,
}

fn consumed(answer: &Answer) -> f64 {
    let metered: Option<Metered> = serde_json::from_slice(&answer.body).ok();
    metered.and_then(|metered| metered.capacity).map_or(0.0, |capacity| capacity.units)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::demanded;

    #[test]
    fn the_partition_is_found_in_every_form_of_key_condition() {
        let values = json!({":pk": {"S": "a"}, ":from": {"S": "b"}});
        for condition in [
            "#pk = :pk",
            "#pk = :pk AND #sk >= :from",
            "#sk <= :from AND #pk=:pk",
            "(pk = :pk) and (begins_with(#sk, :from))",
            "pk = :pk AND sk BETWEEN :from AND :from",
        ] {
            let request = json!({
                "KeyConditionExpression": condition,
                "ExpressionAttributeNames": {"#pk": "pk", "#sk": "sk"},
                "ExpressionAttributeValues": values.clone(),
            });
            assert_eq!(demanded(&request, "pk"), Some(&json!({"S": "a"})), "{condition}");
            assert_eq!(demanded(&request, "other"), None, "{condition}");
        }
    }
}
