//! A stack in which every kind of row and of message was written by the real code, from fixed values.

use std::collections::BTreeMap;
use std::time::Duration;

use admin::keys::NewKey;
use api::auth::{KeyRecord, KeyText};
use aws_sdk_dynamodb::types::AttributeValue;
use common::event::EventKind;
use common::ids::{EndpointId, UserId};
use common::records::{PublicItem, PublicListing};
use common::resources::{Queue, Table};
use common::scope::{Scope, Tier};
use common::store::Row;
use common::timestamp::Timestamp;
use market::{EntityCursor, Log, LogPosition, ObjectRef, Rebuild};
use replica::base::Columnar;
use serde_json::{Value, json};
use tests::{NOON, Stack, base_bucket, compaction, item, listing, marketplace, order, sale, scan, sold_listing, uuid};
use webhooks::delivery::{
    AfterFailure, Attempt, Delivery, Dispatch, Failure, Lane, Lease, OwnerRounds, Progress, Status, Token,
    after_failure, claim,
};
use webhooks::endpoint::{DisabledReason, Switch, WebhookEndpoint};
use webhooks::notice::{DisabledNotice, FailingNotice};
use webhooks::store::{Added, DisableOutcome, Hold, WebhookStore};
use webhooks::{ATTEMPTS, DrainMessage, QueueMessage, Schedule, delivery_id};

/// A secret that was sealed elsewhere.
const SEALED: &str = "a:AAAAAAAAAAAAAAAAB7W817wlirQBoaA8ESWYkNtKX1ohiGkmiZe6isz2VF9tBPIvhVDL87IzCuoxo4Vy";
/// More bytes than the columns of a part have here.
const MAX_COLUMNS_BYTES: usize = 1 << 20;

/// A stack in which everything was written, and the random values in it.
pub(super) struct Scene {
    pub(super) stack: Stack,
    pub(super) key: String,
    /// Pairs of a random text and the fixed text that stands for it.
    random: Vec<(String, String)>,
}

/// Returns the owner of all that belongs to a user.
pub(super) fn user() -> UserId {
    uuid(5).into()
}

/// Returns the endpoint to which deliveries are sent.
pub(super) fn endpoint() -> EndpointId {
    uuid(0xe1).into()
}

/// The time at which everything is written.
fn noon() -> Timestamp {
    NOON.parse().unwrap()
}

impl Scene {
    pub(super) async fn new() -> Self {
        let stack = Stack::new().await;
        market_and_accounts(&stack).await;
        webhooks(&stack).await;
        let new = NewKey {
            user_id: user(),
            name: Some("golden".to_owned()),
            tier: Tier::Pro,
            limit_override: Some(700),
            scopes: Scope::ALL.into(),
            expires_at: Some("2030-01-01T00:00:00Z".parse().unwrap()),
        };
        let (key, record) = stack.key_with(new).await;
        let running = stack.instance().await;
        for path in ["/v1/public/me", "/v1/public/catalog"] {
            assert_eq!(running.client.get(&key, path).await.status, 200);
        }
        let random = [stands_for(&key, &record, 7, 0xa1).into(), rotation(&stack).await].concat();
        Self { stack, key, random }
    }

    /// Returns the form of each row and part by its key, with fixed values in place of random ones.
    pub(super) async fn stored(&self) -> BTreeMap<String, Value> {
        let (mut found, mut random) = (BTreeMap::new(), self.random.clone());
        for row in scan(&self.stack, Table::Market).await {
            let [pk, sk] = ["pk", "sk"].map(|name| text(&row, name));
            if let ("manifest", Some(stream)) = (sk, pk.strip_prefix("head#")) {
                let part = serde_json::from_str::<Value>(text(&row, "data")).unwrap()["parts"][0].take();
                let packed = base_bucket(&self.stack.aws.endpoint_url).get(part["key"].as_str().unwrap()).await;
                found.insert(format!("part of {stream}"), columns(&packed.unwrap().unwrap()));
                random.push((part["hash"].as_str().unwrap().to_owned(), "SHA-256".to_owned()));
            }
            if let Some(generation) = row.get("generation") {
                random.push((generation.as_s().unwrap().clone(), format!("generation of {pk}")));
            }
        }
        for table in Table::ALL {
            for mut row in scan(&self.stack, table).await {
                for (name, value) in &mut row {
                    if name == "last4" || name.starts_with("lr") {
                        *value = AttributeValue::S("random".to_owned());
                    }
                }
                let key = format!("{table:?} {} {}", text(&row, "pk"), text(&row, "sk"));
                let form = json!([key, form(&AttributeValue::M(row))]).to_string();
                let fixed = random.iter().fold(form, |form, (from, to)| form.replace(from, to));
                let (key, form) = serde_json::from_str(&fixed).unwrap();
                found.insert(key, form);
            }
        }
        found
    }

    /// Returns each message in the queues by its name. Takes them out.
    pub(super) async fn queued(&self) -> BTreeMap<String, Value> {
        let stack = &self.stack;
        let dispatch = stack.carried(delivery_id(uuid(1).into(), endpoint())).await.dispatch();
        stack.lanes().send_one(Lane::Retry, QueueMessage::Attempt(dispatch), 0).await.unwrap();
        stack.webhooks().drains.send(DrainMessage { account_id: user(), token: drain_token() }).await;
        stack.sweep().await;
        let mut found = BTreeMap::new();
        for (queue, count) in
            [(Queue::WebhooksFirst, 1), (Queue::WebhooksRetry, 1), (Queue::WebhooksSlow, 1), (Queue::Notices, 2)]
        {
            for message in stack.queue(queue).take(count).await {
                let message: Value = serde_json::from_str(message.body.as_deref().unwrap()).unwrap();
                found.insert(format!("{queue:?} {}", message["type"].as_str().unwrap()), message);
            }
        }
        found
    }
}

fn text<'r>(row: &'r Row, name: &str) -> &'r str {
    row[name].as_s().unwrap()
}

/// Returns a value with its type: text as text, and a number as a number.
fn form(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::S(text) => json!(text),
        AttributeValue::N(number) => serde_json::from_str(number).unwrap(),
        AttributeValue::B(bytes) => json!({"bytes": hex::encode(bytes)}),
        AttributeValue::Bool(bool) => json!(bool),
        AttributeValue::Ss(texts) => {
            let mut texts = texts.clone();
            texts.sort();
            json!({"set": texts})
        }
        AttributeValue::L(values) => values.iter().map(form).collect(),
        AttributeValue::M(values) => values.iter().map(|(name, value)| (name.clone(), form(value))).collect(),
        other => panic!("unexpected attribute {other:?}"),
    }
}

/// Returns the form of a part: its layout, and its columns as they were before they were compressed. The compressed bytes
/// depend on the version of zstd.
fn columns(packed: &[u8]) -> Value {
    let (head, compressed) = packed.split_at(5);
    let columns = zstd::bulk::decompress(compressed, MAX_COLUMNS_BYTES).unwrap();
    assert_eq!(u32::from_le_bytes(head[1..].try_into().unwrap()) as usize, columns.len());
    json!({"layout": head[0], "columns": hex::encode(columns)})
}

/// Rotates a key of another user. Returns the random values of both keys, and what stands for them.
async fn rotation(stack: &Stack) -> Vec<(String, String)> {
    let (old_text, old) = stack.key_of(uuid(8).into(), &[Scope::CatalogRead]).await;
    let new = stack.admin.keys().rotate(old.key_id, Duration::ZERO).await.unwrap();
    [stands_for(&old_text, &old, 6, 0xa2), stands_for(new.text.reveal(), &new.record, 8, 0xa3)].concat()
}

/// Returns the hash and the id of a random key, and what stands for them: those of a key of these bits.
fn stands_for(text: &str, record: &KeyRecord, bits: u8, id: u128) -> [(String, String); 2] {
    let hash = KeyText::parse(text).unwrap().hash().hex();
    let fixed_hash = KeyText::from_bits([bits; 32]).hash().hex();
    [(hash, fixed_hash), (record.key_id.to_string(), uuid(id).to_string())]
}

async fn market_and_accounts(stack: &Stack) {
    stack.feed(&tests::market(user())).await;
    compact::<PublicItem>(stack).await;
    compact::<PublicListing>(stack).await;
    rebuild_in_part(stack).await;
    let mut auction = listing(2, "12.50", "2026-11-20T11:00:00Z", 1);
    auction["kind"] = json!("p2p");
    auction["is_auction"] = json!(true);
    for field in ["item_id", "variant_id", "market_hash_name"] {
        auction[field] = Value::Null;
    }
    let mut awaited = order(user(), 2, "2026-11-20T11:00:00Z", 1);
    awaited["status"] = json!("awaiting_delivery");
    awaited["source"] = json!("buy_order");
    awaited["delivered_at"] = Value::Null;
    awaited["items"][0]["item_id"] = Value::Null;
    let removal = json!({"type": "item", "id": "gone", "removed": true, "version": 3});
    let crown = item("sticker-crown", "sticker", None, 1);
    stack.feed(&[crown, removal, sold_listing(1, 2), auction, marketplace("two", false, 1)]).await;
    // The summary gets an era, which the next order keeps.
    stack.admin.stores().accounts.repair_orders(user(), noon(), false).await.unwrap();
    stack.feed(&[awaited]).await;
}

async fn compact<R: Columnar>(stack: &Stack) {
    compaction::<R>(&stack.aws.endpoint_url, stack.clock.clone()).run().await.unwrap();
}

/// Leaves a base of the catalog that is being made.
async fn rebuild_in_part(stack: &Stack) {
    let log = Log::<PublicItem>::new(stack.admin.stores().market);
    let slice = ObjectRef { key: format!("catalog/{}/0", uuid(0xb5)), hash: [7; 32] };
    let rebuild = Rebuild {
        began_at: noon(),
        start: LogPosition { seq: 1, changes: 2 },
        next: Some(EntityCursor { partition: 13, behind: Some("ak-47-redline".to_owned()) }),
        records: 1,
        slices: vec![slice],
    };
    let mut stored = log.rebuild().await.unwrap();
    assert!(log.put_rebuild(&mut stored, uuid(0xb3), Some(&rebuild)).await.unwrap());
    assert_eq!(log.rebuild().await.unwrap().rebuild, Some(rebuild));
}

async fn webhooks(stack: &Stack) {
    let (store, now) = (stack.webhooks().store, noon());
    let [on, off, failing, removed] = endpoints();
    for endpoint in [&on, &off, &failing, &removed] {
        assert_eq!(store.add_endpoint(endpoint).await.unwrap(), Added::Done);
    }
    drains(&store, removed.id).await;
    // The message for the endpoint that is on came twice, and that for the other was held.
    stack.fan_out(&[sale(1, user())]).await;
    stack.store_carried(delivery_id(uuid(1).into(), on.id)).await;
    let held = stack.carried(delivery_id(uuid(1).into(), off.id)).await.held(now);
    assert_eq!(store.hold_all(user(), &[(Hold::New(held), &off)]).await.unwrap(), DisableOutcome::Done);
    stack.queue(Queue::WebhooksRetry).take(1).await;
    for delivery in [leased(&on), ended(&removed)] {
        store.put_delivery(&delivery).await.unwrap();
    }
    warn(&store, &on).await;
    switch_off(&store, &failing).await;
}

/// Returns the token of the drain that is called.
fn drain_token() -> Token {
    Token::from(uuid(0xc4))
}

/// Leaves one drain that is called and has to end the deliveries of a removed endpoint, and one that sleeps.
async fn drains(store: &WebhookStore, removed: EndpointId) {
    let (now, later) = (noon(), noon().plus_millis(300_000));
    store.wake_drain_by(user(), now, now).await.unwrap();
    assert!(store.remove_endpoint(user(), removed, now).await.unwrap());
    assert!(store.wake_drain(user(), drain_token(), later, now).await.unwrap());
    let (other, tokens) = (uuid(9).into(), [0xc6, 0xc7].map(|number| Token::from(uuid(number))));
    assert!(store.wake_drain(other, tokens[0], later, now).await.unwrap());
    let run = store.begin_drain(other, tokens[0], tokens[1], now, now).await.unwrap().unwrap();
    assert!(store.rest_drain(&run, tokens[1], Some(later), now).await.unwrap());
}

/// One endpoint that is on, one that its owner switched off, one whose delivery fails, and one that is removed.
fn endpoints() -> [WebhookEndpoint; 4] {
    let new = |id: u128, events: &[EventKind]| WebhookEndpoint {
        id: uuid(id).into(),
        account_id: user(),
        url: "https://receiver.example/hook".to_owned(),
        events: events.iter().copied().collect(),
        switch: Switch::On,
        disabled_at: None,
        epoch: 1,
        created_at: noon(),
        secrets: secrets(&["2026-11-20T12:00:00.000Z"]),
        secret_version: 1,
        is_prompt: false,
        warning: None,
        host_changed_at: None,
    };
    let both = [EventKind::ListingSold, EventKind::WalletDeposit];
    let off = WebhookEndpoint {
        switch: Switch::Off(DisabledReason::Owner),
        epoch: 2,
        secrets: secrets(&["2026-11-20T12:00:00.000Z", "2026-11-21T12:00:00.000Z"]),
        secret_version: 2,
        host_changed_at: Some(noon()),
        ..new(0xe2, &both)
    };
    let deposits = [EventKind::WalletDeposit];
    [WebhookEndpoint { is_prompt: true, ..new(0xe1, &both) }, off, new(0xe3, &deposits), new(0xe4, &deposits)]
}

/// Returns secrets that are active from these times.
fn secrets(active_from: &[&str]) -> common::rotation::Secrets<String> {
    let dated = |from: &&str| json!({"secret": SEALED, "active_from": from});
    serde_json::from_value(active_from.iter().map(dated).collect()).unwrap()
}

fn delivery(id: u128, endpoint: &WebhookEndpoint) -> Delivery {
    let (id, now) = (uuid(id).into(), noon());
    Delivery {
        id,
        endpoint_id: endpoint.id,
        account_id: endpoint.account_id,
        event: EventKind::WalletDeposit,
        event_id: Some(uuid(0xe7).into()),
        is_test: false,
        created_at: now,
        body: r#"{"id" : "by hand"}"#.to_owned(),
        progress: Progress::new(id, Status::Pending, now, now.plus_millis(3_600_000)),
    }
}

/// A test that is being made, in its second round, after ten attempts.
fn leased(endpoint: &WebhookEndpoint) -> Delivery {
    let (delivery, now) = (delivery(0xd3, endpoint), noon());
    let answered = Attempt {
        at: now,
        status: Some(500),
        latency_ms: 12,
        error: Some("the endpoint answered 500".to_owned()),
        response: Some("busy \"now\"".to_owned()),
    };
    let progress = Progress {
        round: 2,
        failed_attempts: 1,
        token: Token::from(uuid(0xc1)),
        lease: Some(Lease { id: Token::from(uuid(0xc2)), until: now.plus_millis(90_000) }),
        claims: 2,
        epoch: Some(1),
        attempts: vec![answered, Attempt::lost(now)],
        dropped_attempts: 8,
        owner_rounds: Some(OwnerRounds { day: 20_777, count: 3 }),
        ..delivery.progress
    };
    Delivery { is_test: true, progress, ..delivery }
}

/// A delivery that ended because its endpoint was removed.
fn ended(endpoint: &WebhookEndpoint) -> Delivery {
    let delivery = delivery(0xd4, endpoint);
    let failure = Some(Failure::EndpointRemoved);
    let progress = Progress { status: Status::Failed, failure, wake_at: None, ..delivery.progress };
    Delivery { progress, ..delivery }
}

/// Makes a delivery's fourth attempt fail, which leaves a notice that was not sent.
async fn warn(store: &WebhookStore, endpoint: &WebhookEndpoint) {
    let (mut failing, now, lease) = (delivery(0xd6, endpoint), noon(), Token::from(uuid(0xc5)));
    failing.progress.failed_attempts = 3;
    failing.progress.epoch = Some(endpoint.epoch);
    store.put_delivery(&failing).await.unwrap();
    let dispatch = Dispatch::next_of(&failing);
    assert!(store.apply(failing.id, endpoint.id, &claim(&dispatch, lease, now)).await.unwrap());
    let (schedule, lost) = (Schedule::default(), Attempt::lost(now));
    let notice = FailingNotice::after_failure(endpoint, &failing, &lost, schedule, now).unwrap();
    // A value as good as any other: the schedule is no part of the format.
    let notice =
        FailingNotice { remaining_attempts: 3, disable_due_at: now.plus_millis((32 * 60 + 3) * 60_000), ..notice };
    let failed = after_failure(&dispatch, lease, lost, endpoint.epoch, false, schedule, now);
    let AfterFailure::Again(_, step) = failed else { panic!("no attempt would follow") };
    assert_eq!(store.warn(&step, endpoint, &notice, now).await.unwrap(), DisableOutcome::Done);
}

/// Makes a delivery's last attempt fail, which leaves a notice that was not sent.
async fn switch_off(store: &WebhookStore, endpoint: &WebhookEndpoint) {
    let (mut last, now, lease) = (delivery(0xd5, endpoint), noon(), Token::from(uuid(0xc3)));
    last.progress.failed_attempts = ATTEMPTS - 1;
    store.put_delivery(&last).await.unwrap();
    let dispatch = Dispatch::next_of(&last);
    assert!(store.apply(last.id, endpoint.id, &claim(&dispatch, lease, now)).await.unwrap());
    let (no_result, schedule) = (Attempt::lost(now), Schedule::default());
    let failed = after_failure(&dispatch, lease, no_result.clone(), endpoint.epoch, false, schedule, now);
    let AfterFailure::GiveUp(step) = failed else { panic!("another attempt would follow") };
    let notice = DisabledNotice::new(endpoint, &last, &no_result, now);
    let outcome = store.switch_off(&step, endpoint, &notice, now).await.unwrap();
    assert_eq!(outcome, DisableOutcome::Done);
}
