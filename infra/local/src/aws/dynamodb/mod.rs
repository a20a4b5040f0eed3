//! DynamoDB: the embedded one, with the limits of AWS, conflicts and isolation of transactions, latencies, and
//! copies in place of restored tables. Refusals have the form that SDKs know from AWS.
//!
//! Only what the project calls is limited: `BatchWriteItem`, `TransactGetItems` and `PartiQL` are not.

mod flights;
mod indexes;
mod recovery;
mod tables;
mod writes;

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dynoxide::types::{item_size, read_capacity_units_with_consistency};
use dynoxide::{Database, Item};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Map, Value, json};
use tokio::time::sleep;

use super::limits::{Access, Limiter, Reason, Refusal, Resource, Use};
use crate::environment::{ACCOUNT_ID, REGION};
use crate::server::{Body, plain};
use flights::{Flights, Met, Transaction};
use indexes::LateIndexes;
use recovery::Recovery;
use tables::{Answer, Tables, item};
use writes::{RowKey, Write};

/// The words with which DynamoDB refuses on-demand tables.
const THROTTLED: &str = "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically \
                         scaling your table or index so please try again shortly.";
const CONFLICT: &str = "Transaction is ongoing for the item";
const IN_PROGRESS: &str = "The transaction with the given request token is already in progress.";

/// The embedded DynamoDB, and what stands in front of it.
pub(super) struct DynamoDb {
    tables: Tables,
    limiter: Arc<Limiter>,
    recovery: Recovery,
    indexes: LateIndexes,
    flights: Flights,
    /// Held while a single write is applied and while a transaction begins, so that neither meets half of the other.
    applying: Mutex<()>,
    delay_millis: AtomicU64,
}

impl DynamoDb {
    pub(super) fn new(database: Database, limiter: Arc<Limiter>) -> Self {
        Self {
            tables: Tables(database),
            limiter,
            recovery: Recovery::default(),
            indexes: LateIndexes::default(),
            flights: Flights::default(),
            applying: Mutex::default(),
            delay_millis: AtomicU64::new(0),
        }
    }

    /// Delays every call from now on.
    pub(super) fn delay(&self, by: Duration) {
        self.delay_millis.store(u64::try_from(by.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Lets each write reach the indexes after a time within `lag` from now on.
    pub(super) fn delay_indexes(&self, lag: RangeInclusive<Duration>, seed: u64) -> Result<(), String> {
        self.indexes.delay(&self.tables, lag, seed)
    }

    /// Answers one call, under the limits if there are any.
    pub(super) async fn answer(self: Arc<Self>, operation: String, request: Request<Incoming>) -> Response<Body> {
        let body = match request.into_body().collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => return plain(StatusCode::BAD_REQUEST, &error.to_string()),
        };
        let delay = self.delay_millis.load(Ordering::Relaxed);
        if delay > 0 {
            sleep(Duration::from_millis(delay)).await;
        }
        if !self.limiter.is_on() {
            return self.apply(&operation, &body).into_response();
        }
        // As with AWS, a call that has arrived goes on even if its client does not wait for the answer.
        let answering = tokio::spawn(async move {
            match serde_json::from_slice(&body) {
                Ok(request) => self.limited(&operation, request).await,
                Err(_) => self.apply(&operation, &body),
            }
        });
        match answering.await {
            Ok(answer) => answer.into_response(),
            Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        }
    }

    async fn limited(&self, operation: &str, request: Value) -> Answer {
        if operation == "TransactWriteItems" {
            return self.transact(&request).await;
        }
        let is_limited = ["GetItem", "Query", "Scan", "BatchGetItem", "PutItem", "UpdateItem", "DeleteItem"];
        if !is_limited.contains(&operation) {
            return self.send(operation, &request);
        }
        let latency = self.limiter.begin(false);
        sleep(latency / 2).await;
        let answer = match operation {
            "GetItem" | "Query" | "Scan" => self.read(operation, request),
            "BatchGetItem" => self.batch_get(request),
            _ => self.write(operation, &request),
        };
        sleep(latency / 2).await;
        answer
    }

    /// Answers a call that was admitted.
    fn send(&self, operation: &str, request: &Value) -> Answer {
        self.apply(operation, request.to_string().as_bytes())
    }

    fn apply(&self, operation: &str, body: &[u8]) -> Answer {
        let own = || self.recovery.answer(&self.tables, operation, body);
        let answer = || own().unwrap_or_else(|| self.tables.answer(operation, body));
        self.indexes.answer(&self.tables, operation, body, answer)
    }

    /// Reads if the partition admits it. What the read costs is known only once it was made, so an answer may be thrown
    /// away.
    fn read(&self, operation: &str, mut request: Value) -> Answer {
        let Some(mut used) = self.read_use(operation, &request) else { return self.send(operation, &request) };
        let admit = |used: &Use| self.limiter.take(operation, &[vec![used.clone()]]);
        if let Err(refusals) = admit(&used) {
            return refused(&refusals);
        }
        // SDKs ignore the figure where they did not ask for it.
        if !matches!(request["ReturnConsumedCapacity"].as_str(), Some("TOTAL" | "INDEXES")) {
            request["ReturnConsumedCapacity"] = json!("TOTAL");
        }
        let answer = self.send(operation, &request);
        if !answer.status.is_success() {
            return answer;
        }
        used.units = consumed_units(&answer);
        match admit(&used) {
            Ok(()) => self.flights.show(&self.tables, operation, &request, answer),
            Err(refusals) => refused(&refusals),
        }
    }

    /// Returns what a read reads, with no units yet.
    fn read_use(&self, operation: &str, request: &Value) -> Option<Use> {
        let table = request["TableName"].as_str()?;
        let schema = self.tables.schema(table)?;
        let index = request["IndexName"].as_str().and_then(|name| schema.index(name));
        let keys = index.map_or(&schema.keys, |index| &index.keys);
        let value = match operation {
            "GetItem" => Some(&request["Key"][keys.partition.as_str()]),
            "Query" => demanded(request, &keys.partition),
            _ => None,
        };
        let key = value.and_then(|value| item(&json!({ keys.partition.as_str(): value })));
        let partition = key.and_then(|key| keys.partition_of(&key));
        let resource = Resource { table: table.to_owned(), index: index.map(|index| index.name.clone()) };
        Some(Use { resource, partition, access: Access::Read, units: 0.0 })
    }

    /// Reads the keys whose partitions admit it, and answers with those that it could not read. Refuses the call only if
    /// no partition does.
    fn batch_get(&self, mut request: Value) -> Answer {
        let (mut left, mut first) = (Map::new(), None);
        for (table, wanted) in request["RequestItems"].as_object_mut().into_iter().flatten() {
            let is_consistent = wanted["ConsistentRead"] == json!(true);
            let mut refused_keys = Vec::new();
            if let Some(keys) = wanted.get_mut("Keys").and_then(Value::as_array_mut) {
                keys.retain(|key| match self.admit_key(table, key, is_consistent) {
                    Ok(()) => true,
                    Err(refusals) => {
                        first.get_or_insert(refusals);
                        refused_keys.push(key.clone());
                        false
                    }
                });
            }
            if !refused_keys.is_empty() {
                let mut rest = wanted.clone();
                rest["Keys"] = Value::Array(refused_keys);
                left.insert(table.clone(), rest);
            }
        }
        if let Some(wanted) = request["RequestItems"].as_object_mut() {
            wanted.retain(|table, wanted| !left.contains_key(table) || wanted["Keys"] != json!([]));
        }
        if let Some(refusals) = first.filter(|_| request["RequestItems"] == json!({})) {
            return refused(&refusals);
        }
        let answer = self.send("BatchGetItem", &request);
        let answer = self.flights.show(&self.tables, "BatchGetItem", &request, answer);
        if left.is_empty() { answer } else { answer.changed(|body| add_unprocessed(body, left)) }
    }

    /// Takes the units of one key of a batch.
    fn admit_key(&self, table: &str, key: &Value, is_consistent: bool) -> Result<(), Vec<Option<Refusal>>> {
        let Some((schema, key)) = self.tables.schema(table).zip(item(key)) else { return Ok(()) };
        let size = self.tables.item(table, &key).as_ref().map_or(0, item_size);
        let units = read_capacity_units_with_consistency(size, is_consistent);
        let partition = schema.keys.partition_of(&key);
        let used = Use { resource: Resource::table(table), partition, access: Access::Read, units };
        self.limiter.take("BatchGetItem", &[vec![used]])
    }

    /// Writes if the partition and those of the indexes admit it, and no transaction holds the row.
    fn write(&self, operation: &str, request: &Value) -> Answer {
        let writes = Write::from_request(&self.tables, operation, request);
        let Some(write) = writes.and_then(|mut writes| writes.pop()) else { return self.send(operation, request) };
        let _applying = self.applying.lock().unwrap_or_else(PoisonError::into_inner);
        let before = write.stored(&self.tables);
        let uses = [write.reserve(before.as_ref())];
        if let Err(refusals) = self.limiter.take(operation, &uses) {
            return refused(&refusals);
        }
        if self.flights.is_held(&write.row()) {
            return refused(&self.limiter.refuse(operation, &uses, &[true], Reason::Conflict));
        }
        let answer = self.send(operation, request);
        if answer.status.is_success() {
            self.limiter.settle(&write.settle(&self.tables, before.as_ref()));
        }
        answer
    }

    /// Writes if the partitions of all items admit it, and no other transaction holds one of the rows. From now on this
    /// transaction holds them, until its answer leaves. Once it is applied, each of its changes shows to queries, scans
    /// and batches in its own time.
    async fn transact(&self, request: &Value) -> Answer {
        const OPERATION: &str = "TransactWriteItems";
        let Some(writes) = Write::from_request(&self.tables, OPERATION, request) else {
            return self.send(OPERATION, request);
        };
        let latency = self.limiter.begin(true);
        let begun = self.begin(OPERATION, request, &writes);
        sleep(latency / 2).await;
        let applied = begun.map(|(transaction, before)| {
            for (write, before) in writes.iter().zip(&before) {
                self.flights.disguise(&write.row(), before.as_ref(), self.limiter.shows_at(latency / 2));
            }
            let answer = self.send(OPERATION, request);
            for (write, before) in writes.iter().zip(&before).filter(|_| answer.status.is_success()) {
                self.limiter.settle(&write.settle(&self.tables, before.as_ref()));
            }
            (transaction, answer)
        });
        sleep(latency / 2).await;
        match applied {
            Ok((transaction, answer)) => {
                self.flights.land(&transaction, || self.limiter.lags_until());
                answer
            }
            Err(refused) => refused,
        }
    }

    /// Begins a transaction. Returns it with the stored items that it is about to change.
    fn begin(
        &self,
        operation: &str,
        request: &Value,
        writes: &[Write],
    ) -> Result<(Transaction, Vec<Option<Item>>), Answer> {
        let _applying = self.applying.lock().unwrap_or_else(PoisonError::into_inner);
        let before: Vec<Option<Item>> = writes.iter().map(|write| write.stored(&self.tables)).collect();
        let uses: Vec<_> = writes.iter().zip(&before).map(|(write, before)| write.reserve(before.as_ref())).collect();
        self.limiter.take(operation, &uses).map_err(|refusals| cancelled(&refusals))?;
        let rows: Vec<RowKey> = writes.iter().map(Write::row).collect();
        let begun = self.flights.take_off(&rows, request["ClientRequestToken"].as_str());
        let transaction = begun.map_err(|met| match met {
            Met::Others(rows) => cancelled(&self.limiter.refuse(operation, &uses, &rows, Reason::Conflict)),
            Met::Itself => refused(&self.limiter.refuse(operation, &uses, &[true], Reason::InProgress)),
        })?;
        Ok((transaction, before))
    }
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

fn consumed_units(answer: &Answer) -> f64 {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Metered {
        consumed_capacity: Option<Capacity>,
    }
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Capacity {
        capacity_units: f64,
    }
    let metered: Option<Metered> = serde_json::from_slice(&answer.body).ok();
    metered.and_then(|metered| metered.consumed_capacity).map_or(0.0, |capacity| capacity.capacity_units)
}

/// Adds the keys that were refused to those that the embedded DynamoDB left over itself.
fn add_unprocessed(body: &mut Value, left: Map<String, Value>) -> Option<()> {
    if !body["UnprocessedKeys"].is_object() {
        body["UnprocessedKeys"] = json!({});
    }
    for (table, mut rest) in left {
        if let Some(own) = body["UnprocessedKeys"][&table]["Keys"].as_array() {
            rest["Keys"].as_array_mut()?.extend(own.iter().cloned());
        }
        body["UnprocessedKeys"][&table] = rest;
    }
    Some(())
}

/// Refuses a call for its first reason.
fn refused(refusals: &[Option<Refusal>]) -> Answer {
    let Some(refusal) = refusals.iter().flatten().next() else {
        return Answer::error("InternalServerError", json!({}));
    };
    let limit = match refusal.reason {
        Reason::Partition => "KeyRangeThroughputExceeded",
        Reason::Table => "AccountLimitExceeded",
        Reason::Conflict => return Answer::error("TransactionConflictException", json!({ "message": CONFLICT })),
        Reason::InProgress => {
            return Answer::error("TransactionInProgressException", json!({ "Message": IN_PROGRESS }));
        }
    };
    let Resource { table, index } = &refusal.resource;
    let (kind, index) = index.as_ref().map_or(("Table", String::new()), |index| ("Index", format!("/index/{index}")));
    let reason = json!({
        "reason": format!("{kind}{:?}{limit}", refusal.access),
        "resource": format!("arn:aws:dynamodb:{REGION}:{ACCOUNT_ID}:table/{table}{index}"),
    });
    Answer::error("ThrottlingException", json!({ "message": THROTTLED, "throttlingReasons": [reason] }))
}

/// Refuses a transaction. Says for each of its items whether that item is the reason.
fn cancelled(refusals: &[Option<Refusal>]) -> Answer {
    let code_and_message = |refusal: &Option<Refusal>| match refusal.as_ref().map(|refusal| refusal.reason) {
        None => ("None", None),
        Some(Reason::Partition | Reason::Table) => ("ThrottlingError", Some(THROTTLED)),
        Some(Reason::Conflict | Reason::InProgress) => ("TransactionConflict", Some(CONFLICT)),
    };
    let reasons: Vec<_> = refusals.iter().map(code_and_message).collect();
    let codes: Vec<&str> = reasons.iter().map(|(code, _)| *code).collect();
    let codes = codes.join(", ");
    let message = format!("Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]");
    let reasons: Vec<Value> =
        reasons.iter().map(|(code, message)| json!({ "Code": code, "Message": message })).collect();
    Answer::error("TransactionCanceledException", json!({ "Message": message, "CancellationReasons": reasons }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_partition_is_found_in_every_form_of_key_condition() {
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
                "ExpressionAttributeValues": {":pk": {"S": "a"}, ":from": {"S": "b"}},
            });
            assert_eq!(demanded(&request, "pk"), Some(&json!({"S": "a"})), "{condition}");
            assert_eq!(demanded(&request, "other"), None, "{condition}");
        }
    }
}
