//! A stack that holds what the golden files say, as another release would have left it.

use common::aws::{Environment, Patience};
use serde_json::{Value, json};
use tests::{Stack, base_bucket};

use local::environment::Variables;

use super::dynamo::{bytes, put, text};
use super::golden;
use super::kinds::{BASE_MANIFEST, BASE_PARTS, KINDS, RowKind};

/// Fills an empty stack with the golden rows and the golden keyring. Each row is changed first.
pub(super) async fn loaded(change: impl Fn(&RowKind, Value) -> Value, keyring: &Value) -> Stack {
    let stack = Stack::new().await;
    for kind in &KINDS {
        for row in golden::read(kind.name)["rows"].as_array().unwrap() {
            put(&stack, kind.table, &change(kind, row.clone())).await;
        }
    }
    for (stream, (name, _)) in BASE_PARTS.iter().enumerate() {
        put_object(&stack, stream, bytes(&golden::read(name), "packed")).await;
    }
    let variables = Variables::new(&stack.aws.endpoint_url);
    let secrets = webhooks::secrets::client(&Environment::read(&|name| variables.get(name)).unwrap(), Patience::Bulk);
    let put = secrets.put_secret_value().secret_id("marketplace-keyring");
    put.secret_string(keyring.to_string()).send().await.unwrap();
    stack
}

/// Puts a part under the key that the golden manifest of its stream names.
async fn put_object(stack: &Stack, stream: usize, packed: Vec<u8>) {
    let manifests = golden::read(BASE_MANIFEST);
    let data: Value = serde_json::from_str(text(&manifests["rows"][stream], "data")).unwrap();
    let key = data["parts"][0]["key"].as_str().unwrap();
    base_bucket(&stack.aws.endpoint_url).put(key, packed.into()).await.unwrap();
}

/// Fills an empty stack with the golden rows as they are.
pub(super) async fn loaded_as_it_is() -> Stack {
    loaded(|_, row| row, &keyring()).await
}

/// Returns the golden keyring.
pub(super) fn keyring() -> Value {
    golden::read("keyring")["document"].take()
}

/// Returns a row with an attribute more, and with a member more in each JSON object and in each endpoint that it holds.
pub(super) fn with_more(mut row: Value) -> Value {
    for (name, value) in row.as_object_mut().unwrap() {
        if name.starts_with("endpoint_") && value.get("M").is_some() {
            value["M"] = with_more(value["M"].take());
        }
        // The body of a delivery is not read, but sent byte for byte.
        if name != "body" {
            extend_json(value);
        }
    }
    row["added_later"] = json!({"S": "by a newer release"});
    row
}

/// Returns a JSON value with a member more in each of its objects.
pub(super) fn with_more_members(mut value: Value) -> Value {
    match &mut value {
        Value::Object(members) => {
            for member in members.values_mut() {
                *member = with_more_members(member.take());
            }
            members.insert("added_later".to_owned(), json!({"by": "a newer release"}));
        }
        Value::Array(values) => {
            for one in values {
                *one = with_more_members(one.take());
            }
        }
        _ => {}
    }
    value
}

/// Extends the JSON objects in a string attribute, or in the strings of a list.
fn extend_json(value: &mut Value) {
    if let Some(values) = value.get_mut("L").and_then(Value::as_array_mut) {
        values.iter_mut().for_each(extend_json);
    }
    let Some(text) = value.get("S").and_then(Value::as_str) else { return };
    if let Ok(json @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(text) {
        value["S"] = json!(with_more_members(json).to_string());
    }
}
