//! Webhook endpoints, managed with `marketctl`.

use serde_json::{Value, json};
use tests::Target;
use tests::webhooks_cli::{URL, WebhooksCli, text};

async fn cli() -> (Target, WebhooksCli) {
    let target = Target::new().await;
    let cli = WebhooksCli { variables: target.variables.clone() };
    (target, cli)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_is_added_listed_switched_and_removed() {
    let (target, cli) = cli().await;
    let owner = target.uuid(1);
    let list = format!("list --user {owner}");
    assert_eq!(cli.done(&list).await, json!([]));
    let events = "--event wallet.deposit --event listing.sold --event listing.sold";
    let mut added = cli.done(&format!("add --user {owner} --url {URL} {events}")).await;
    let (id, secret) = (text(&added["id"]), text(&added["secret"]));
    assert!(secret.starts_with("whsec_"));
    let created_at = &added["created_at"];
    assert_eq!(
        added,
        json!({"id": id, "url": URL, "events": ["listing.sold", "wallet.deposit"], "status": "enabled",
            "disabled_reason": null, "created_at": created_at, "secret": secret})
    );
    added.as_object_mut().unwrap().remove("secret");
    assert_eq!(cli.done(&list).await, json!([added]));

    let mut disabled = added.clone();
    (disabled["status"], disabled["disabled_reason"]) = (json!("disabled"), json!("owner"));
    for _ in 0..2 {
        assert_eq!(cli.done(&format!("disable {id}")).await, disabled);
    }
    assert_eq!(cli.done(&list).await, json!([disabled]));
    let shown = cli.run(&list).await.stdout;
    assert!(shown.contains("disabled (owner)") && shown.contains(&format!("webhooks enable {id}")), "{shown}");
    for _ in 0..2 {
        assert_eq!(cli.done(&format!("enable {id}")).await, added);
    }

    assert_eq!(cli.done(&format!("remove {id}")).await, json!({"id": id, "ended_deliveries": 0, "unfinished": false}));
    assert_eq!(cli.done(&list).await, json!([]));
    assert_eq!(cli.refused(&format!("enable {id}")).await, format!("no endpoint has the id {id}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_url_is_refused_with_the_rule_that_it_breaks() {
    let (target, mut cli) = cli().await;
    let owner = target.uuid(1);
    let add = |url: &str| format!("add --user {owner} --url {url} --event listing.sold");
    let local = ["http://127.0.0.1:9999/", "http://[::1]:25/", "http://localhost:9999/hook"];
    let (long, grows) = (format!("{URL}{}", "x".repeat(2_048)), format!("{URL}{}", "😀".repeat(180)));
    let too_long = "must have at most 2,048 characters, as written and after percent-encoding";
    let bad = [
        ("http://10.0.0.1/", "must use a public IP address"),
        ("http://0x7f.1/", "must use a public IP address"),
        ("ftp://93.184.215.14/", "must be http or https"),
        ("https://me:secret@93.184.215.14/", "must have no user name and no password"),
        ("https://93.184.215.14:25/", "must use port 80, 443, or one from 1024 up"),
        (&long, too_long),
        (&grows, too_long),
        ("hook", "must be an absolute URL"),
    ];
    for (url, rule) in bad {
        assert_eq!(cli.refused(&add(url)).await, format!("url: {rule}"), "{url}");
    }
    for url in local {
        assert!(cli.refused(&add(url)).await.starts_with("url: must "), "{url}");
        let hint = cli.run(&add(url)).await.stderr;
        // A stack on AWS cannot be started so.
        assert!(target.is_shared() || hint.contains("--allow-loopback-webhooks"), "{url}: {hint}");
    }
    assert!(!cli.run(&add("http://10.0.0.1/")).await.stderr.contains("loopback"));
    assert_eq!(cli.done(&format!("list --user {owner}")).await, json!([]));

    cli.variables = cli.variables.with_loopback_webhooks();
    for url in local {
        assert_eq!(cli.done(&add(url)).await["url"], url);
    }
    for (url, rule) in &bad[2..] {
        assert_eq!(cli.refused(&add(url)).await, format!("url: {rule}"), "{url}");
    }
    assert!(cli.refused(&add("http://10.0.0.1/")).await.contains("must use a public IP address"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_has_ten_endpoints_at_most() {
    let (target, cli) = cli().await;
    let owner = target.uuid(1);
    let (first, _) = cli.add(&owner.to_string()).await;
    for _ in 1..10 {
        cli.add(&owner.to_string()).await;
    }
    let add = format!("add --user {owner} --url {URL} --event listing.sold");
    assert_eq!(cli.refused(&add).await, "the account has 10 endpoints already");
    cli.add(&target.uuid(2).to_string()).await;
    cli.done(&format!("remove {first}")).await;
    let (eleventh, _) = cli.add(&owner.to_string()).await;
    let listed = cli.done(&format!("list --user {owner}")).await;
    assert_eq!((listed.as_array().unwrap().len(), &listed[9]["id"]), (10, &json!(eleventh)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_rotated_and_activated_but_not_twice_in_a_day() {
    let (target, cli) = cli().await;
    let owner = target.uuid(1);
    let (id, first) = cli.add(&owner.to_string()).await;
    let rotate = format!("rotate-secret {id}");
    let activate = format!("{rotate} --activate");
    assert_eq!(cli.refused(&activate).await, "there is no next secret to activate");
    let second = text(&cli.done(&rotate).await["secret"]);
    // A next secret that is not active yet is replaced.
    let third = text(&cli.done(&rotate).await["secret"]);
    assert!(first != second && second != third && third.starts_with("whsec_"));
    let activated = cli.done(&activate).await;
    assert_eq!((&activated["id"], &activated["secret"]), (&json!(id), &Value::Null));
    let refused = cli.refused(&rotate).await;
    assert!(refused.starts_with("the previous secret is valid until 2"), "{refused}");
    assert_eq!(cli.refused(&activate).await, "there is no next secret to activate");
    let expire = format!("{rotate} --expire-old");
    assert_eq!(cli.done(&expire).await["id"], json!(id));
    assert_eq!(cli.refused(&expire).await, "there is no old secret that is still valid");
    assert!(cli.done(&rotate).await["secret"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_ids_are_refused_and_malformed_ones_are_wrong_usage() {
    let (target, cli) = cli().await;
    let owner = target.uuid(1);
    let unknown = target.uuid(2);
    for command in ["remove", "enable", "disable", "rotate-secret", "test", "deliveries", "show-endpoint"] {
        let refused = cli.refused(&format!("{command} {unknown}")).await;
        assert_eq!(refused, format!("no endpoint has the id {unknown}"), "{command}");
    }
    for command in ["show", "resend"] {
        let refused = cli.refused(&format!("{command} {unknown}")).await;
        assert!(refused.starts_with(&format!("no delivery has the id {unknown}")), "{command}: {refused}");
    }
    for line in [
        format!("add --user {owner} --url {URL}"),
        format!("add --user {owner} --url {URL} --event listing.bought"),
        format!("test {unknown} --event all"),
        format!("deliveries {unknown} --status gone"),
        "remove 42".to_owned(),
        String::new(),
    ] {
        let run = cli.run(&line).await;
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{line}: {run:?}");
    }
    let other = cli.run(&format!("list --user {owner} --stack other")).await;
    assert_eq!(other.code, 1);
    assert!(other.stderr.contains("nothing was done: queue other-webhooks-"), "{other:?}");
}
