//! Keys, managed with `marketctl`, and their tiers and limits (specification 8.1).

use std::collections::BTreeSet;
use std::io::Write;

use admin::keys::MAX_LIMIT;
use api::auth::{KeyStatus, KeyText};
use common::ids::KeyId;
use common::scope::{Scope, Tier};
use common::timestamp::Timestamp;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tests::webhooks_cli::text;
use tests::{Program, Target, marketctl};

/// Runs `marketctl keys` with these arguments.
async fn keys(target: &Target, line: &str) -> Program {
    let arguments: Vec<&str> = ["--json", "keys"].into_iter().chain(line.split_whitespace()).collect();
    marketctl(&target.variables, &arguments, "").await
}

/// Runs a command that must succeed. Returns its document.
async fn done(target: &Target, line: &str) -> Value {
    let run = keys(target, line).await;
    assert_eq!(run.code, 0, "{line}: {run:?}");
    run.json()
}

/// Runs a command that must be refused. Returns the error's document.
async fn refused(target: &Target, line: &str) -> Value {
    let run = keys(target, line).await;
    assert!([1, 2].contains(&run.code), "{line}: {run:?}");
    serde_json::from_str(&run.stderr).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_created_listed_rotated_and_revoked() {
    let target = Target::new().await;
    let user = &target.uuid(1).to_string();
    let create = format!("create --user {user} --name bot --scope wallet:read --scope catalog:read");
    let key = done(&target, &create).await;
    let fields: BTreeSet<&str> = key.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = "api_key created_at expires_at key_id last4 last_used_at name rate_limit_per_minute \
                    replaced_by revoked_at scopes status tier user_id";
    assert_eq!(fields, expected.split_whitespace().collect());
    assert_eq!(
        (&key["scopes"], &key["tier"], &key["status"]),
        (&json!(["catalog:read", "wallet:read"]), &json!("free"), &json!("active"))
    );
    let first = text(&key["api_key"]);
    assert_eq!(target.client.get(&first, PATH).await.status, 200);

    let listed = done(&target, &format!("list --user {user}")).await;
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!((&listed[0]["key_id"], &listed[0]["api_key"]), (&key["key_id"], &Value::Null));
    let last_used_at: Timestamp = text(&listed[0]["last_used_at"]).parse().unwrap();
    let age = target.now().millis() - last_used_at.millis();
    assert!(age == 0 || target.is_shared() && (0..60_000).contains(&age), "{age}");
    let for_people = marketctl(&target.variables, &["keys", "list", "--user", user], "").await;
    assert!(!for_people.stdout.contains(&first));

    let rotated = done(&target, &format!("rotate {}", text(&key["key_id"]))).await;
    let second = text(&rotated["api_key"]);
    assert_eq!(target.client.get(&first, ME).await.status, 401);
    assert_eq!(target.client.get(&second, ME).await.status, 200);
    let revoked = done(&target, &format!("revoke {}", text(&rotated["key_id"]))).await;
    assert_eq!(revoked["status"], "revoked");
    assert_eq!(target.client.get(&second, ME).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_replaced_with_an_overlap_once() {
    let target = Target::new().await;
    let (_, record) = target.key_of(target.uuid(1).into(), &[Scope::CatalogRead]).await;
    let rotate = format!("rotate {} --overlap", record.key_id);
    let too_long = refused(&target, &format!("{rotate} 8d")).await;
    assert_eq!(too_long["error"], "invalid value for '--overlap': must be at most 7 days");

    let rotated = done(&target, &format!("{rotate} 7d")).await;
    assert_eq!(rotated["in_doubt"], false);
    let old = target.admin.keys().get(record.key_id).await.unwrap();
    assert_eq!((old.status, json!(old.expires_at)), (KeyStatus::Active, rotated["old_expires_at"].clone()));
    assert!(old.expires_at.is_some());

    let again = refused(&target, &format!("{rotate} 0s")).await;
    let successor = text(&rotated["key_id"]);
    assert_eq!(again["error"], json!(format!("key {} was already replaced by key {successor}", record.key_id)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_shown_with_its_use() {
    let target = Target::new().await;
    let (text, record) = target.key_of(target.uuid(1).into(), &[Scope::CatalogRead]).await;
    assert_eq!(target.client.get(&text, PATH).await.status, 200);
    let key_id = record.key_id.to_string();
    let key = done(&target, &format!("show {key_id}")).await;
    assert_eq!((&key["key_id"], &key["last4"]), (&json!(key_id), &json!(record.last4)));
    let days = key["usage"]["days"].as_array().unwrap();
    let of_catalog = days.iter().filter(|day| day["scope"] == "catalog:read");
    assert_eq!(of_catalog.map(|day| day["requests"].as_u64().unwrap()).sum::<u64>(), 1, "{days:?}");
    let listed = marketctl(&target.variables, &["--json", "keys", "list"], "").await.json();
    let listed = listed.as_array().unwrap();
    let requests: Vec<_> = listed.iter().map(|key| key["requests_today"].as_u64().unwrap()).collect();
    assert!(listed.iter().any(|key| key["key_id"] == key_id) && requests.is_sorted_by(|a, b| a >= b), "{requests:?}");
    let for_people = marketctl(&target.variables, &["keys", "show", &key_id], "").await;
    assert!(for_people.stdout.contains("ALL SCOPES") && !for_people.stdout.contains(&text), "{for_people:?}");
    refused(&target, &format!("show {}", target.uuid(2))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leaked_text_is_identified_and_never_printed() {
    let target = Target::new().await;
    let (text, record) = target.key_of(target.uuid(1).into(), &[Scope::CatalogRead]).await;
    let identify = async |text: &str, json: bool| {
        let arguments = ["keys", "identify", "-", "--json"];
        let run = marketctl(&target.variables, &arguments[..if json { 4 } else { 3 }], text).await;
        assert!(!format!("{run:?}").contains(text.trim()), "the text is printed");
        run
    };
    let found = identify(&format!("{text}\n"), true).await;
    let mut expected = json!(record);
    expected["accepted"] = json!(true);
    assert_eq!((found.code, found.json()), (0, expected), "{}", found.stderr);
    let wide: String = text.chars().flat_map(|c| [c, '\0']).collect();
    for written in [text.replace('_', "%5F"), wide, format!("KEY={text}\0PATH=/")] {
        assert_eq!(identify(&written, true).await.json()["key_id"], json!(record.key_id));
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log.gz");
    let mut packed = GzEncoder::new(std::fs::File::create(&file).unwrap(), Compression::fast());
    write!(packed, "GET /?key={text}").unwrap();
    packed.finish().unwrap();
    let found = marketctl(&target.variables, &["--json", "keys", "identify", "-", file.to_str().unwrap()], "").await;
    assert_eq!(found.json()["key_id"], json!(record.key_id), "{found:?}");
    let for_people = identify(&text, false).await.stdout;
    assert!(for_people.contains(&record.key_id.to_string()) && for_people.contains(&record.last4), "{for_people}");
    target.admin.keys().revoke(record.key_id).await.unwrap();
    let found = identify(&text, true).await.json();
    assert_eq!((&found["status"], &found["accepted"]), (&json!("revoked"), &json!(false)));

    let last = if text.ends_with('0') { "1" } else { "0" };
    let unknown = KeyText::from_bits(*b"a text that this stack never had");
    for (text, reason) in [
        (unknown.reveal(), "unknown"),
        (format!("{}{last}", &text[..text.len() - 1]).as_str(), "wrong_checksum"),
        (&text[..text.len() - 1], "not_a_key"),
    ] {
        let refused = identify(text, true).await;
        let failure: Value = serde_json::from_str(&refused.stderr).unwrap();
        assert_eq!((refused.code, &failure["reason"]), (1, &json!(reason)));
    }
    for line in [format!("identify {text}"), format!("identify - {text}")] {
        let wrong = keys(&target, &line).await;
        assert_eq!(wrong.code, 2, "{}", line.len());
        assert!(!format!("{wrong:?}").contains(&text), "the text is printed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_and_wrong_usage_have_different_exit_codes() {
    let target = Target::new().await;
    let (user, unknown) = (target.uuid(1), target.uuid(2));
    let create = format!("keys create --user {user}");
    let read = "--scope catalog:read";
    for (line, code) in [
        (create.clone(), 2),
        (format!("keys create --user me {read}"), 2),
        (format!("{create} --scope catalog:write"), 2),
        (format!("{create} {read} --tier gold"), 2),
        (format!("{create} {read} --tier pro"), if Tier::Pro.is_coming_soon() { 2 } else { 0 }),
        (format!("{create} {read} --expires-at 2001-01-01T00:00:00Z"), 2),
        (format!("keys revoke {unknown}"), 1),
        (format!("keys rotate {unknown}"), 1),
        ("frobnicate".to_owned(), 2),
        (String::new(), 2),
        ("import /nowhere/at/all".to_owned(), 1),
        (format!("{create} {read} --tier pro --preview"), 0),
    ] {
        let run = marketctl(&target.variables, &line.split_whitespace().collect::<Vec<_>>(), "").await;
        assert_eq!((run.code, run.stderr.is_empty()), (code, code == 0), "{line}: {run:?}");
    }
    assert!(refused(&target, &format!("revoke {unknown}")).await.is_object());
}

const PATH: &str = "/v1/public/marketplaces";
const ME: &str = "/v1/public/me";
const FREE: u32 = Tier::Free.limit();
const PRO: u32 = Tier::Pro.limit();

/// Asserts that a key's next request is counted against this limit, and shows this tier.
async fn assert_limit(target: &Target, key: &str, tier: Tier, limit: u32) {
    let reply = target.client.get(key, ME).await;
    let me = reply.json();
    assert_eq!((&me["tier"], &me["rate_limit_per_minute"]), (&json!(tier), &json!(limit)));
    assert_eq!(reply.rate().0, limit);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_tier_holds_from_the_next_request_and_what_was_used_stays_used() {
    let target = Target::new().await;
    let (key, record) = target.key_of(target.uuid(1).into(), &[Scope::CatalogRead]).await;
    target.minute_with(50).await;
    target.assert_rate(&target.client.get(&key, PATH).await, FREE, FREE - 1);

    let changed = done(&target, &format!("update {} --tier pro --preview", record.key_id)).await;
    assert_eq!((&changed["tier"], &changed["rate_limit_per_minute"]), (&json!("pro"), &json!(PRO)));
    target.assert_rate(&target.client.get(&key, PATH).await, PRO, PRO - 2);
    assert_limit(&target, &key, Tier::Pro, PRO).await;
    let requests = stream::iter(0..FREE).map(|_| target.client.get(&key, PATH));
    let replies: Vec<_> = requests.buffer_unordered(8).collect().await;
    assert!(replies.iter().all(|reply| reply.status == 200));

    done(&target, &format!("update {} --tier free", record.key_id)).await;
    let refused = target.client.get(&key, PATH).await;
    assert_eq!((refused.status, &refused.json()["error"]["params"]["limit"]), (429, &json!(FREE)));
    target.assert_rate(&refused, FREE, 0);
    assert_limit(&target, &key, Tier::Free, FREE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_its_own_outlasts_a_change_of_tier_and_a_rotation() {
    let target = Target::new().await;
    let (key, record) = target.key_of(target.uuid(1).into(), &[Scope::CatalogRead]).await;
    done(&target, &format!("update {} --limit 7", record.key_id)).await;
    assert_limit(&target, &key, Tier::Free, 7).await;
    done(&target, &format!("update {} --tier pro --preview", record.key_id)).await;
    assert_limit(&target, &key, Tier::Pro, 7).await;

    let rotated = done(&target, &format!("rotate {}", record.key_id)).await;
    let key = text(&rotated["api_key"]);
    assert_limit(&target, &key, Tier::Pro, 7).await;
    done(&target, &format!("update {} --limit tier", text(&rotated["key_id"]))).await;
    assert_limit(&target, &key, Tier::Pro, PRO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_zero_refuses_every_request() {
    let target = Target::new().await;
    let (key, record) = target.key_of(target.uuid(1).into(), &[Scope::CatalogRead]).await;
    assert_eq!(target.client.get(&key, PATH).await.status, 200);
    done(&target, &format!("update {} --limit 0", record.key_id)).await;
    for (path, scope) in [(PATH, "catalog:read"), (ME, "me")] {
        let refused = target.client.get(&key, path).await;
        assert_eq!(refused.status, 429, "{path}");
        target.assert_rate(&refused, 0, 0);
        assert_eq!(refused.header("ratelimit-policy"), format!("\"{scope}\";q=0;w=60"));
        let params = json!({"scope": scope, "limit": 0, "retry_after": refused.rate().2});
        assert_eq!(refused.json(), json!({"error": {"code": "rate_limits.exceeded", "params": params}}));
    }
    done(&target, &format!("update {} --limit tier", record.key_id)).await;
    target.get_until(&key, PATH, |reply| reply.status == 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_is_refused_or_wrong_usage_changes_nothing() {
    let target = Target::new().await;
    let user = target.uuid(1).into();
    let (_, record) = target.key_of(user, &[Scope::CatalogRead]).await;
    let update = format!("update {}", record.key_id);
    let above = format!("--limit {}", MAX_LIMIT + 1);
    let error = refused(&target, &format!("{update} {above}")).await["error"].take();
    assert!(text(&error).ends_with("must be a whole number from 0 to 15,000, or `tier`"), "{error}");
    for tier in Tier::ALL.into_iter().filter(|tier| tier.is_coming_soon()) {
        let error = format!("invalid value for '--tier': the tier {tier} is coming soon");
        assert_eq!(refused(&target, &format!("{update} --tier {tier}")).await["error"], error);
    }
    for options in ["", "--preview", "--limit 1 --limit tier", "--limit many", "--tier gold"] {
        let wrong = keys(&target, &format!("{update} {options}")).await;
        assert_eq!(wrong.code, 2, "{options}: {wrong:?}");
    }
    assert_eq!(target.admin.keys().list(user).await.unwrap().readable, std::slice::from_ref(&record));

    target.admin.keys().revoke(record.key_id).await.unwrap();
    let unknown = KeyId::from(target.uuid(2));
    for (key_id, error) in [
        (record.key_id, format!("key {} is revoked or expired; create a new one instead", record.key_id)),
        (unknown, format!("no key has the id {unknown}")),
    ] {
        assert_eq!(refused(&target, &format!("update {key_id} --limit tier")).await["error"], error);
    }
}
