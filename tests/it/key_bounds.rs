//! How many keys a user may have, and what becomes of the rows of keys that have ended.

use std::time::Duration;

use account::CommandName;
use admin::keys::{AdminError, KeyAdmin, KeyBounds, MAX_OVERLAP, NewKey};
use api::auth::KeyRecord;
use api::auth::table::{NEWEST, SUCCESSOR_ID};
use aws_sdk_dynamodb::types::AttributeValue;
use common::resources::{TTL, Table};
use common::scope::Scope;
use common::store::Row;
use common::timestamp::Timestamp;
use futures_util::future::join_all;
use local::aws::limits::{Latency, Limits};
use local::environment::Variables;
use serde_json::json;
use tests::webhooks_cli::{OWNER, text};
use tests::{Simulation, Stack, audited_marketctl, marketctl, set_key_text, set_text, uuid};
use tokio::time::sleep;

use crate::account::Settings;
use crate::repair::rows;

const TABLE: &str = "marketplace-keys";
const HALF_A_DAY: Duration = Duration::from_hours(12);
const HOUR: Duration = Duration::from_hours(1);
const KEPT_FOR: Duration = Duration::from_hours(37 * 24);

/// The administration of an owner's keys, of which at most this many are live.
fn owner(stack: &Stack, most: u32) -> KeyAdmin {
    stack.admin.keys().with_bounds(KeyBounds::of_owner(most))
}

fn new_key() -> NewKey {
    tests::new_key(uuid(1).into(), &[Scope::CatalogRead])
}

async fn made(keys: &KeyAdmin) -> KeyRecord {
    keys.create(new_key()).await.unwrap().1
}

fn is_full(error: &AdminError) -> bool {
    matches!(error, AdminError::TooMany { .. })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_has_no_more_live_keys_than_the_bound() {
    let stack = Stack::new().await;
    let keys = owner(&stack, 3);
    let first = made(&keys).await;
    let expiring = NewKey { expires_at: Some(stack.now().plus_millis(60_000)), ..new_key() };
    keys.create(expiring).await.unwrap();
    made(&keys).await;
    assert!(is_full(&keys.create(new_key()).await.unwrap_err()));
    keys.create(NewKey { user_id: uuid(2).into(), ..new_key() }).await.unwrap();
    // A revoked key and an expired one make room.
    keys.revoke(first.key_id).await.unwrap();
    made(&keys).await;
    assert!(is_full(&keys.create(new_key()).await.unwrap_err()));
    stack.clock.advance(Duration::from_mins(1));
    made(&keys).await;
    assert!(is_full(&keys.create(new_key()).await.unwrap_err()));
}

/// DynamoDB may show one row of a transaction before another.
#[tokio::test(start_paused = true)]
async fn the_newest_key_counts_before_the_list_shows_it() {
    let slow = Duration::from_millis(200);
    for seed in 0..16 {
        let simulation = Simulation::new().await;
        let transaction_latency = Latency::always(slow);
        simulation.aws.limits().set(Limits { transaction_latency, seed, ..Limits::unlimited() });
        let keys = simulation.admin.keys().with_bounds(KeyBounds::of_owner(1));
        let later = async {
            sleep(slow / 2 + Duration::from_millis(5)).await;
            keys.create(new_key()).await
        };
        let (first, second) = tokio::join!(keys.create(new_key()), later);
        first.unwrap();
        let refused = second.unwrap_err();
        assert!(is_full(&refused) || matches!(refused, AdminError::Changed), "{refused} with the seed {seed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_are_made_at_the_same_time_share_the_places_that_are_left() {
    let stack = Stack::new().await;
    let keys = owner(&stack, 4);
    let outcomes = join_all((0..8).map(|_| keys.create(new_key()))).await;
    let made = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    for refused in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
        assert!(is_full(refused) || matches!(refused, AdminError::Changed), "{refused}");
    }
    assert_eq!(keys.list(uuid(1).into()).await.unwrap().readable.len(), made);
    assert!((1..=4).contains(&made), "{made}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_revokes_and_makes_keys_in_turns_gets_no_more_budgets_than_twice_the_bound() {
    let stack = Stack::new().await;
    let keys = owner(&stack, 2);
    for _ in 0..3 {
        let key = made(&keys).await;
        keys.revoke(key.key_id).await.unwrap();
    }
    let last = made(&keys).await;
    let until_midnight = 12 * 3_600 + 1;
    for refused in
        [keys.create(new_key()).await.unwrap_err(), keys.rotate(last.key_id, Duration::ZERO).await.unwrap_err()]
    {
        let named = matches!(refused, AdminError::TooManyToday { most: 4, seconds } if seconds == until_midnight);
        assert!(named, "{refused}");
    }
    stack.clock.advance(HALF_A_DAY);
    keys.rotate(last.key_id, Duration::ZERO).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_list_can_be_rotated_and_overlaps_are_bounded() {
    let stack = Stack::new().await;
    let keys = owner(&stack, 2);
    let (one, other) = (made(&keys).await, made(&keys).await);
    let successor = keys.rotate(one.key_id, MAX_OVERLAP).await.unwrap();
    keys.rotate(other.key_id, MAX_OVERLAP).await.unwrap();
    stack.clock.advance(2 * HALF_A_DAY);
    assert!(is_full(&keys.rotate(successor.record.key_id, MAX_OVERLAP).await.unwrap_err()));
    keys.revoke(one.key_id).await.unwrap();
    keys.rotate(successor.record.key_id, MAX_OVERLAP).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rows_of_an_ended_key_are_removed_after_all_restores_that_may_need_them() {
    let stack = Stack::new().await;
    let keys = stack.admin.keys();
    let (revoked, replaced, live) = (made(&keys).await, made(&keys).await, made(&keys).await);
    let expires_at = stack.now().plus_millis(60_000);
    let (_, expiring) = keys.create(NewKey { expires_at: Some(expires_at), ..new_key() }).await.unwrap();
    keys.revoke(revoked.key_id).await.unwrap();
    let successor = keys.rotate(replaced.key_id, HOUR).await.unwrap().record;
    let kept = i64::try_from(KEPT_FOR.as_millis()).unwrap();
    let end = |at: Timestamp| Some(at.plus_millis(kept).seconds().to_string());
    let ended = end(stack.now());
    for (key, expected) in
        [(revoked, &ended), (replaced, &ended), (expiring, &end(expires_at)), (live, &None), (successor, &None)]
    {
        let id = key.key_id.to_string();
        let is_own = |(name, value): (&String, &AttributeValue)| {
            ![SUCCESSOR_ID, NEWEST].contains(&name.as_str()) && value.as_s().is_ok_and(|text| text.ends_with(&id))
        };
        let of_key = |row: &&Row| row.iter().any(is_own);
        let table = rows(&stack, TABLE).await;
        let found: Vec<_> = table.values().filter(of_key).collect();
        assert_eq!(found.len(), 3, "{id}");
        for row in found {
            assert_eq!(&row.get(TTL).map(|at| at.as_n().unwrap().clone()), expected, "{row:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_keys_of_a_user_are_revoked_at_once_even_one_that_cannot_be_read() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let keys = stack.admin.keys();
    let (mut texts, mut ids) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let (text, record) = stack.key_of(uuid(1).into(), &[Scope::CatalogRead]).await;
        texts.push(text);
        ids.push(record.key_id);
    }
    let (other, _) = stack.key_of(uuid(2).into(), &[Scope::CatalogRead]).await;
    keys.revoke(ids[0]).await.unwrap();
    set_key_text(&stack, &texts[1], "tier", "gold").await;
    let user = uuid(1).to_string();
    let variables = Variables::new(&stack.aws.endpoint_url);
    let revoked = marketctl(&variables, &["--json", "keys", "revoke", "--user", &user], "").await;
    let mut expected = [ids[1].to_string(), ids[2].to_string()];
    expected.sort();
    assert_eq!(revoked.json(), json!({"user_id": uuid(1), "revoked": expected}));
    for text in &texts {
        assert_eq!(running.client.get(text, "/v1/public/me").await.status, 401);
    }
    assert_eq!(running.client.get(&other, "/v1/public/me").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_whose_other_rows_are_gone_or_broken_keeps_no_other_of_its_user_from_being_revoked() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let (mut texts, mut ids) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        let (text, record) = stack.key_of(uuid(1).into(), &[Scope::CatalogRead]).await;
        texts.push(text);
        ids.push(record.key_id);
    }
    // DynamoDB removes the rows of an expired key one by one.
    let client = tests::dynamodb(&stack);
    let finder = api::auth::table::id_row(ids[0]);
    client.delete_item().table_name(TABLE).set_key(Some(finder)).send().await.unwrap();
    set_text(&stack, Table::Keys, [&format!("user#{}", uuid(1)), &ids[1].to_string()], "hash", "gone").await;
    let variables = Variables::new(&stack.aws.endpoint_url);
    let user = uuid(1).to_string();
    let (revoked, audit) = audited_marketctl(&variables, &["--json", "keys", "revoke", "--user", &user], "").await;
    let mut expected: Vec<String> = ids.iter().map(ToString::to_string).collect();
    expected.sort();
    assert_eq!(revoked.json(), json!({"user_id": uuid(1), "revoked": expected}));
    let named: Vec<_> = audit.iter().map(|line| line["key_id"].as_str().unwrap()).collect();
    assert_eq!((revoked.code, named), (0, expected.iter().map(String::as_str).collect()), "{}", revoked.stderr);
    let (none, audit) = audited_marketctl(&variables, &["keys", "revoke", "--user", &uuid(9).to_string()], "").await;
    assert_eq!((none.code, audit.len()), (1, 0), "{}", none.stderr);
    assert!(none.stderr.contains("has no keys"), "{}", none.stderr);
    for text in &texts {
        assert_eq!(running.client.get(text, "/v1/public/me").await.status, 401);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leaked_key_is_replaced_at_once_however_many_there_are() {
    let stack = Stack::new().await;
    let (operator, owner) = (stack.admin.keys().with_bounds(KeyBounds::of_operator(9)), owner(&stack, 2));
    let mut last = made(&operator).await;
    for _ in 0..5 {
        last = made(&operator).await;
    }
    assert!(is_full(&owner.rotate(last.key_id, HOUR).await.unwrap_err()));
    owner.rotate(last.key_id, Duration::ZERO).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_have_the_bound_of_the_template_and_operators_may_go_beyond() {
    let settings = Settings::new().await;
    let create = json!({"scopes": ["catalog:read"]});
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(text(&settings.done(CommandName::KeysCreate, create.clone()).await["key_id"]));
    }
    assert_eq!(settings.code(CommandName::KeysCreate, &create).await, "limit_reached");
    let variables = Variables::new(&settings.stack.aws.endpoint_url);
    let command = ["keys", "create", "--user", OWNER, "--scope", "catalog:read"];
    let refused = marketctl(&variables, &command, "").await;
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert!(refused.stderr.contains("--max-keys"), "{}", refused.stderr);
    let command = [&command[..], &["--max-keys", "21"]].concat();
    assert_eq!(marketctl(&variables, &command, "").await.code, 0);
    assert_eq!(settings.code(CommandName::KeysRevoke, &json!({"key_id": ids[0]})).await, "");
}
