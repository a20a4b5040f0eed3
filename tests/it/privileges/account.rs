//! Every command of the account's settings.

use futures_util::FutureExt;
use runtime::Worker;
use serde_json::{Value, json};
use tests::webhooks_cli::{OWNER, URL};
use tests::{SettingsIds, Stack};

use super::Used;

pub(super) async fn changed() -> Used {
    let stack = Stack::new().await;
    let account = stack.account().await;
    let done = async |command: &'static str, parameters: Value| result(&account, command, parameters).await;
    let ids = SettingsIds::make(URL, &done).await;
    for command in ["keys.list", "endpoints.list"] {
        done(command, json!({})).await;
    }
    for (command, parameters) in ids.commands() {
        done(command, parameters).await;
    }
    stack.ledger.used()
}

async fn result<W: Worker>(account: &W, command: &str, parameters: Value) -> Value {
    let request = json!({"version": 1, "user_id": OWNER, "command": command, "parameters": parameters});
    let event = serde_json::from_str(&request.to_string()).unwrap();
    let mut answer = serde_json::to_value(account.work(event).boxed().await.unwrap()).unwrap();
    assert!(answer.get("error").is_none(), "{command}: {answer}");
    answer["result"].take()
}
