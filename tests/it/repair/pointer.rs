//! The whole procedure after damage: tables are restored under other names and repaired, and the service is pointed at
//! them.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use aws_sdk_dynamodb::types::Tag;
use common::clock::SystemClock;
use common::ids::UserId;
use common::metrics::NAMESPACE_VARIABLE;
use common::resources::{Queue, Table};
use common::scope::Scope;
use local::environment::Variables;
use local::host::Host;
use local::instance::Instance;
use local::workers::Workers;
use serde_json::{Value, json};
use tests::{
    Client, Fault, NAMESPACE, Proxy, Receiver, Stack, dynamodb, listing, marketctl, order, restore_table, sale,
    to_loopback, until, uuid,
};

use super::{AT, delete, rows};

fn own(table: Table) -> String {
    format!("marketplace-{}", table.suffix())
}

fn restored(table: Table) -> String {
    format!("{}-2", own(table))
}

/// Protects the stack's own tables from deletion, as the template does, and gives that of keys a tag.
async fn protect(stack: &Stack) {
    let client = dynamodb(stack);
    for table in Table::ALL {
        client.update_table().table_name(own(table)).deletion_protection_enabled(true).send().await.unwrap();
    }
    let table = client.describe_table().table_name(own(Table::Keys)).send().await.unwrap().table.unwrap();
    let tag = Tag::builder().key("owner").value("team market").build().unwrap();
    client.tag_resource().set_resource_arn(table.table_arn).tags(tag).send().await.unwrap();
}

/// Takes rows of the last transactions out of the restored tables.
async fn cut(stack: &Stack, user: UserId, key_id: &str, endpoint_id: &str) {
    let newest = rows(stack, &restored(Table::Market)).await.into_keys().filter(|[pk, _]| pk == "log#listings#0").max();
    for (table, [pk, sk]) in [
        (Table::Keys, [format!("id#{key_id}"), "hash".to_owned()]),
        (Table::Market, newest.unwrap()),
        (Table::Accounts, [format!("summary#{user}"), "summary".to_owned()]),
        (Table::Webhooks, [format!("endpoint#{endpoint_id}"), "account".to_owned()]),
    ] {
        delete(stack, &restored(table), &[pk, sk]).await;
    }
}

/// Repairs the restored tables by the command.
async fn repair_all(stack: &Stack) {
    let variables = Variables::new(&stack.aws.endpoint_url);
    let lacking = ["time to live", "point-in-time recovery", "deletion protection"];
    for table in Table::ALL {
        let name = restored(table);
        let command = ["--json", "repair", "--table", table.suffix(), "--name", &name];
        let before = rows(stack, &name).await;
        for (flags, lacks) in [(&["--dry-run"][..], true), (&[], true), (&[], false)] {
            let done = marketctl(&variables, &[&command[..], flags].concat(), "").await;
            assert_eq!(done.code, 0, "{done:?}");
            let report = done.json();
            let mut expected = if lacks { lacking.to_vec() } else { Vec::new() };
            expected.extend((lacks && table == Table::Keys).then_some("tags"));
            assert_eq!((&report["settings"], &report["name"]), (&json!(expected), &json!(name)), "{report}");
            if table == Table::Keys {
                assert_eq!(report["revoked_as_in"], json!([own(table)]));
            }
            assert!(flags.is_empty() || rows(stack, &name).await == before, "{report}");
        }
    }
}

/// Returns the totals and the first price that the service shows.
async fn shown(client: &Client, key: &str) -> (Value, Value, Value) {
    let [orders, listings] = ["orders", "listings"].map(|path| format!("/v1/public/{path}"));
    let (orders, listings) = (client.get(key, &orders).await.json(), client.get(key, &listings).await.json());
    (orders["total"].clone(), listings["total"].clone(), listings["items"][0]["price_usd"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_and_marketctl_use_the_restored_tables_once_the_service_names_them() {
    let (stack, user): (_, UserId) = (Stack::new().await, uuid(1_000).into());
    let receiver = Receiver::answering(200).await;
    let (key, record) = stack.key_of(user, &Scope::ALL).await;
    let (revoked, revoked_record) = stack.key_of(user, &Scope::ALL).await;
    let (endpoint, _) = stack.endpoint(user, &receiver.url).await;
    stack.feed(&[listing(1, "1.00", AT, 1), order(user, 1, AT, 1), order(user, 2, AT, 1)]).await;
    protect(&stack).await;
    for table in Table::ALL {
        restore_table(&stack, &own(table), &restored(table)).await;
    }
    let lost = [listing(1, "2.00", AT, 2), order(user, 3, AT, 1)];
    stack.feed(&lost).await;
    stack.admin.keys().revoke(revoked_record.key_id).await.unwrap();
    cut(&stack, user, &record.key_id.to_string(), &endpoint.id.to_string()).await;
    repair_all(&stack).await;
    let (tools, other) = (Variables::new(&stack.aws.endpoint_url), restored(Table::Keys));
    let back = marketctl(&tools, &["--json", "repair", "--table", "keys", "--revoked-in", &other], "").await.json();
    assert_eq!(back["revoked_as_in"], json!([other]), "{back}");

    let variables = Variables::new(&stack.aws.endpoint_url).with(NAMESPACE_VARIABLE, NAMESPACE);
    let variables = Table::ALL.iter().fold(variables, |all, table| all.with(table.variable(), &restored(*table)));
    let host = Host::new(&variables, Arc::new(SystemClock::new())).unwrap().invoked_by(stack.aws.invocations());
    let instance = Instance::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), &host).await.unwrap();
    let _workers = Workers::start(&host, to_loopback(1)).await.unwrap();
    let client = Client::new(&instance.base_url);
    assert_eq!(client.get(&revoked, "/v1/public/me").await.status, 401);
    assert_eq!(shown(&client, &key).await, (json!(2), json!(1), json!("1.00")));

    // The marketplace sends again what it sent since then.
    let messages = lost.into_iter().chain([sale(1, user)]).map(|message| message.to_string());
    stack.queue(Queue::Feed).send(&messages.collect::<Vec<_>>()).await;
    assert_eq!(receiver.received(1).await.len(), 1);
    until(async || client.get(&key, "/v1/public/orders").await.json(), |orders| orders["total"] == json!(3)).await;

    let checked = marketctl(&tools, &["--json", "check"], "").await.json();
    let names: Vec<_> = checked["checks"].as_array().unwrap().iter().map(|check| check["name"].clone()).collect();
    assert!(Table::ALL.iter().all(|table| names.contains(&json!(restored(*table)))), "{checked}");
    assert_eq!((&checked["ok"], &checked["checks"][0]["warning"]), (&json!(true), &Value::Null), "{checked}");
    dynamodb(&stack)
        .update_table()
        .table_name(restored(Table::Keys))
        .deletion_protection_enabled(false)
        .send()
        .await
        .unwrap();
    let checked = marketctl(&tools, &["--json", "check"], "").await.json();
    let warning =
        "marketplace-keys-2 lacks deletion protection: `marketctl repair --table keys`, and docs/operations.md";
    assert_eq!(checked["checks"][0]["warning"], warning, "{checked}");
    let done = marketctl(&tools, &["keys", "revoke", &record.key_id.to_string()], "").await;
    assert_eq!((done.code, client.get(&key, "/v1/public/me").await.status), (0, 401), "{done:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_done_if_the_service_does_not_tell_its_tables_or_a_name_is_none_of_the_tables() {
    let stack = Stack::new().await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    proxy.plan(
        |called| if called == "GetFunctionConfiguration" { Fault::Error("AccessDeniedException") } else { Fault::None },
    );
    let denied = marketctl(&Variables::new(&proxy.url), &["keys", "list", "--user", &uuid(1).to_string()], "").await;
    assert_eq!((denied.code, proxy.take_calls().len()), (1, 1), "{denied:?}");
    let hint = "Allow lambda:GetFunctionConfiguration on the function CodeDeployHook_marketplace-pretraffic.";
    assert!(denied.stderr.contains("nothing was done") && denied.stderr.contains(hint), "{denied:?}");
    let variables = Variables::new(&stack.aws.endpoint_url);
    for (table, option, name, code) in [
        ("keys", "--name", "marketplace-market-2", 2),
        ("keys", "--name", "marketplace-keys-2", 1),
        ("keys", "--revoked-in", "marketplace-keys-2", 1),
        ("market", "--revoked-in", "marketplace-keys", 2),
    ] {
        let refused = marketctl(&variables, &["repair", "--table", table, option, name], "").await;
        assert_eq!(refused.code, code, "{refused:?}");
    }
}
