//! Rotations: how long the old key lives on, and what becomes of them if something else happens at the same moment.

use std::time::Duration;

use admin::keys::{AdminError, KeyAdmin, KeyUpdate, LimitChange, MAX_OVERLAP, NewKey};
use api::auth::{KeyRecord, KeyStatus};
use common::aws::{Environment, Patience};
use common::scope::{Scope, Tier};
use common::store::StoreError;
use common::timestamp::Timestamp;
use local::environment::Variables;
use serde_json::{Value, json};
use tests::{Fault, Proxy, RunningInstance, Stack, audited_marketctl, uuid};
use uuid::Uuid;

use crate::repair::rows;

const TABLE: &str = "marketplace-keys";
const HOUR: Duration = Duration::from_hours(1);
const ME: &str = "/v1/public/me";

/// Whether each of these keys is accepted.
async fn accepted<const N: usize>(running: &RunningInstance, keys: [&str; N]) -> [bool; N] {
    let mut accepted = [false; N];
    for (place, key) in keys.into_iter().enumerate() {
        accepted[place] = running.client.get(key, ME).await.status == 200;
    }
    accepted
}

/// Returns the administration of a stack's keys behind a proxy. Its time-outs are short, so a failure comes soon.
fn keys_behind(stack: &Stack, proxy: &Proxy) -> KeyAdmin {
    let variables = Variables::new(&proxy.url);
    let client = Environment::read(&|name| variables.get(name)).unwrap().dynamodb(Patience::Request);
    KeyAdmin::new(client, TABLE.to_owned(), stack.clock.clone())
}

fn new_key(user: u128, expires_at: Option<Timestamp>) -> NewKey {
    NewKey { expires_at, ..tests::new_key(uuid(user).into(), &[Scope::CatalogRead]) }
}

async fn listed(stack: &Stack, record: &KeyRecord) -> Vec<KeyRecord> {
    stack.admin.keys().list(record.user_id).await.unwrap().readable
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_key_lives_on_for_the_overlap() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let (old, record) = stack.key_of(uuid(1).into(), &[Scope::CatalogRead]).await;
    let rotated = stack.admin.keys().rotate(record.key_id, HOUR).await.unwrap();
    let new = rotated.text.reveal();
    let end = stack.now().plus_millis(3_600_000);
    assert_eq!((rotated.old_expires_at, rotated.record.expires_at), (Some(end), None));
    assert_eq!(stack.admin.keys().get(record.key_id).await.unwrap().expires_at, Some(end));
    assert_eq!(accepted(&running, [&old, new]).await, [true, true]);
    running.wait(3_599);
    assert_eq!(accepted(&running, [&old, new]).await, [true, true]);
    running.wait(1);
    assert_eq!(accepted(&running, [&old, new]).await, [false, true]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overlap_never_outlasts_the_old_keys_own_expiry() {
    let stack = Stack::new().await;
    let expires_at = Some(stack.now().plus_millis(60_000));
    let new =
        NewKey { name: Some("bot".to_owned()), tier: Tier::Pro, limit_override: Some(7), ..new_key(1, expires_at) };
    let (_, record) = stack.key_with(new).await;
    let rotated = stack.admin.keys().rotate(record.key_id, MAX_OVERLAP).await.unwrap();
    assert_eq!((rotated.old_expires_at, rotated.record.expires_at), (expires_at, expires_at));
    let like_the_old = KeyRecord { key_id: rotated.record.key_id, last4: rotated.record.last4.clone(), ..record };
    assert_eq!(rotated.record, like_the_old);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_replaced_once_and_its_successor_is_named() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let admin = stack.admin.keys();
    let (old, record) = stack.key_of(uuid(1).into(), &[Scope::CatalogRead]).await;
    let first = admin.rotate(record.key_id, HOUR).await.unwrap();
    let before = rows(&stack, TABLE).await;
    for overlap in [HOUR, Duration::ZERO] {
        let refused = admin.rotate(record.key_id, overlap).await;
        let named = matches!(&refused, Err(AdminError::Replaced { key_id, successor })
            if (*key_id, *successor) == (record.key_id, first.record.key_id));
        assert!(named, "{refused:?}");
    }
    assert_eq!(rows(&stack, TABLE).await, before);
    let second = admin.rotate(first.record.key_id, Duration::ZERO).await.unwrap();
    let keys = [old.as_str(), first.text.reveal(), second.text.reveal()];
    assert_eq!(accepted(&running, keys).await, [true, false, true]);
    admin.revoke(record.key_id).await.unwrap();
    assert_eq!(accepted(&running, keys).await, [false, false, true]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_beside_a_rotation_is_not_lost_in_the_new_key() {
    let stack = Stack::new().await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    for (number, update) in [
        KeyUpdate { tier: Some(Tier::Pro), ..KeyUpdate::default() },
        KeyUpdate { limit: Some(LimitChange::Own(7)), ..KeyUpdate::default() },
        KeyUpdate { name: Some("bot".to_owned()), ..KeyUpdate::default() },
    ]
    .into_iter()
    .enumerate()
    {
        let (_, record) = stack.key_of(uuid(number as u128 + 1).into(), &[Scope::CatalogRead]).await;
        let keys = stack.admin.keys();
        let change = keys.update(record.key_id, update.clone());
        let change = proxy.while_held("TransactWriteItems", 1, async { change.await.unwrap() });
        let admin = keys_behind(&stack, &proxy);
        let (rotated, changed) = tokio::join!(admin.rotate(record.key_id, Duration::ZERO), change);
        let new = rotated.unwrap().record;
        let properties = |key: &KeyRecord| (key.tier, key.limit_override, key.limit, key.name.clone());
        assert_eq!(properties(&new), properties(&changed), "{update:?}");
        let [old, listed] = listed(&stack, &record).await.try_into().unwrap();
        let by_status = if old.status == KeyStatus::Revoked { [old, listed] } else { [listed, old] };
        let (replaced_by, revoked_at) = (Some(new.key_id), Some(stack.now()));
        assert_eq!(by_status, [KeyRecord { status: KeyStatus::Revoked, replaced_by, revoked_at, ..changed }, new]);
    }
}

/// Decides about a call by its operation, and by how many transactions were sent before.
type FaultRule = fn(&str, usize) -> Fault;

fn counting_transactions(fault: impl Fn(&str, usize) -> Fault + Send + 'static) -> impl FnMut(&str) -> Fault + Send {
    let mut transactions = 0;
    move |operation: &str| {
        let fault = fault(operation, transactions);
        transactions += usize::from(operation == "TransactWriteItems");
        fault
    }
}

/// Makes the first transaction, loses its answer, and refuses what comes after it.
fn lose_the_answer(operation: &str, transactions: usize) -> Fault {
    match (operation, transactions) {
        ("TransactWriteItems", 0) => Fault::LoseAnswer,
        (_, 0) => Fault::None,
        _ => Fault::Error("AccessDeniedException"),
    }
}

/// Makes the first transaction, loses its answer, and refuses what comes after it but reads.
fn lose_the_answer_and_read(operation: &str, transactions: usize) -> Fault {
    if operation == "GetItem" { Fault::None } else { lose_the_answer(operation, transactions) }
}

fn refuse_transactions(operation: &str, _: usize) -> Fault {
    if operation == "TransactWriteItems" { Fault::Refuse } else { Fault::None }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_whose_answer_is_lost_returns_the_text_and_the_doubt_unless_the_new_keys_row_settles_it() {
    let stack = Stack::new().await;
    let (running, proxy) = (stack.instance().await, Proxy::start(&stack.aws.endpoint_url).await);
    let keys = keys_behind(&stack, &proxy);
    let faults: [(FaultRule, bool, [bool; 2]); 3] = [
        (lose_the_answer, true, [false, true]),
        (refuse_transactions, true, [true, false]),
        (lose_the_answer_and_read, false, [false, true]),
    ];
    for (fault, is_in_doubt, expected) in faults {
        proxy.set_fault(Fault::None);
        let (old, record) = stack.key_of(Uuid::new_v4().into(), &[Scope::CatalogRead]).await;
        proxy.plan(counting_transactions(fault));
        let rotated = keys.rotate(record.key_id, Duration::ZERO).await.unwrap();
        let is_unavailable = matches!(rotated.doubt, Some(StoreError::Unavailable(_)));
        assert!(is_unavailable == is_in_doubt && rotated.doubt.is_some() == is_in_doubt, "{:?}", rotated.doubt);
        assert_eq!(accepted(&running, [&old, rotated.text.reveal()]).await, expected);
        assert_eq!(listed(&stack, &record).await.len(), if expected[0] { 1 } else { 2 });
    }

    proxy.plan(counting_transactions(lose_the_answer_and_read));
    let (text, _) = keys.create(new_key(2, None)).await.unwrap();
    assert_eq!(accepted(&running, [text.reveal()]).await, [true]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_prints_the_text_of_a_rotation_in_doubt_and_fails() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let (old, record) = stack.key_of(uuid(1).into(), &[Scope::CatalogRead]).await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    proxy.plan(counting_transactions(lose_the_answer));
    let old_id = record.key_id.to_string();
    let rotate = ["--json", "keys", "rotate", &old_id];
    let (run, audit) = audited_marketctl(&Variables::new(&proxy.url), &rotate, "").await;
    assert_eq!(run.code, 1, "{run:?}");
    let rotated = run.json();
    assert_eq!((audit.len(), &audit[0]["outcome"]), (1, &json!("in_doubt")));
    assert_eq!(audit[0]["new_key_id"], rotated["key_id"]);
    assert_eq!((&rotated["in_doubt"], &rotated["old_key_id"]), (&json!(true), &json!(old_id)));
    assert_eq!(accepted(&running, [&old, rotated["api_key"].as_str().unwrap()]).await, [false, true]);
    let failure: Value = serde_json::from_str(&run.stderr).unwrap();
    let expected = json!({
        "user_id": record.user_id, "old_key_id": old_id, "new_key_id": rotated["key_id"], "new_last4": rotated["last4"],
    });
    assert_eq!(failure["in_doubt"], expected);
}
