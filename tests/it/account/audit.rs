//! The audit line: the same from the function and from `marketctl`, and without secrets.

use account::CommandName;
use local::environment::Variables;
use serde_json::{Value, json};
use tests::webhooks_cli::{OWNER, URL, text};
use tests::{RuntimeApi, Stack, audited_marketctl};

use super::event;

/// The members that tell where and when a line was written.
const CIRCUMSTANCES: [&str; 6] = ["timestamp", "level", "lambda_request_id", "trace_id", "FunctionName", "actor"];

/// Returns the audit lines in a function's log.
fn audit_lines(function: &RuntimeApi) -> Vec<Value> {
    function.lines().into_iter().map(|line| line.json).filter(|line| line["message"] == "audit").collect()
}

/// Returns a line without its circumstances and ids, and with the names of its members.
fn form(line: &Value) -> Value {
    let mut form = line.clone();
    let members = form.as_object_mut().unwrap();
    for name in CIRCUMSTANCES {
        members.remove(name);
    }
    for (name, value) in members {
        if name.ends_with("_id") && name != "user_id" {
            *value = json!("ID");
        }
    }
    form
}

#[tokio::test(flavor = "multi_thread")]
async fn function_and_command_line_write_the_same_line_without_secrets() {
    let stack = Stack::new().await;
    let variables = Variables::new(&stack.aws.endpoint_url);
    let mut function = RuntimeApi::run("account", &variables).await;
    let ask = async |function: &mut RuntimeApi, command, parameters: Value| {
        function.invoke(event(OWNER, command, &parameters)).await["result"].clone()
    };
    let key = ask(&mut function, CommandName::KeysCreate, json!({"scopes": ["catalog:read"]})).await;
    ask(&mut function, CommandName::KeysList, json!({})).await;
    ask(&mut function, CommandName::KeysRevoke, json!({"key_id": key["key_id"]})).await;
    let endpoint = ask(&mut function, CommandName::EndpointsAdd, json!({"url": URL, "events": ["listing.sold"]})).await;
    let this = json!({"endpoint_id": endpoint["id"]});
    let sent = ask(&mut function, CommandName::EndpointsTest, this.clone()).await;
    ask(&mut function, CommandName::DeliveriesResend, sent.clone()).await;
    ask(&mut function, CommandName::EndpointsDisable, this.clone()).await;
    ask(&mut function, CommandName::DeliveriesResend, sent).await;
    let next = ask(&mut function, CommandName::EndpointsRotateSecret, this).await;
    let lines = audit_lines(&function);
    assert!(lines.iter().all(|line| line["actor"] == "settings page"), "{lines:?}");
    for secret in [&key["api_key"], &endpoint["secret"], &next["secret"]] {
        assert!(!function.log().contains(secret.as_str().unwrap()));
    }

    let mut written = Vec::new();
    let mut run = async |line: String| {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let (program, audit) = audited_marketctl(&variables, &arguments, "").await;
        written.extend(audit);
        program
    };
    let key = run(format!("--json keys create --user {OWNER} --scope catalog:read")).await.json();
    run(format!("keys list --user {OWNER}")).await;
    run(format!("keys revoke {}", text(&key["key_id"]))).await;
    let added = format!("--json webhooks add --user {OWNER} --url {URL} --event listing.sold");
    let endpoint = run(added).await.json();
    let id = text(&endpoint["id"]);
    let delivery = text(&run(format!("--json webhooks test {id}")).await.json()["delivery_id"]);
    for line in [
        format!("resend {delivery}"),
        format!("disable {id}"),
        format!("resend {delivery}"),
        format!("rotate-secret {id}"),
    ] {
        run(format!("webhooks {line}")).await;
    }
    // The refusal alone is on the command line's standard error.
    let done = lines.iter().filter(|line| line["outcome"] == "done");
    assert_eq!(written.iter().map(form).collect::<Vec<_>>(), done.map(form).collect::<Vec<_>>());
    let outcomes: Vec<_> = lines.iter().map(|line| text(&line["outcome"])).collect();
    assert_eq!(outcomes, ["done", "done", "done", "done", "done", "done", "conflict", "done"]);
    assert_eq!((&lines[1]["command"], &lines[1]["user_id"]), (&json!("keys.revoke"), &json!(OWNER)));
    let printed = json!(written).to_string();
    for secret in [&key["api_key"], &endpoint["secret"]] {
        assert!(!printed.contains(secret.as_str().unwrap()), "{printed}");
    }
    assert!(written.iter().all(|line| line["actor"] == "arn:aws:iam::000000000000:root"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_refused_is_in_the_line_and_what_changes_nothing_writes_none() {
    let stack = Stack::new().await;
    let mut function = RuntimeApi::run("account", &Variables::new(&stack.aws.endpoint_url)).await;
    let stranger = "00000000-0000-4000-8000-00000000000f";
    for command in CommandName::ALL {
        function.invoke(event(stranger, command, &json!({"key_id": OWNER, "hush": 1}))).await;
    }
    let lines = audit_lines(&function);
    let changes: Vec<_> = CommandName::ALL.into_iter().filter(|command| command.is_change()).collect();
    assert_eq!(
        lines.iter().map(|line| line["command"].clone()).collect::<Vec<_>>(),
        changes.iter().map(|command| json!(command)).collect::<Vec<_>>()
    );
    assert!(lines.iter().all(|line| (&line["outcome"], &line["key_id"]) == (&json!("invalid"), &json!(OWNER))));
}
