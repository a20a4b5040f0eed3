//! A stack in which every kind of row was written by the real code, from fixed values.

use std::time::Duration;

use admin::keys::NewKey;
use api::auth::{KeyRecord, KeyText};
use common::event::EventKind;
use common::ids::{EndpointId, UserId};
use common::records::{PublicItem, PublicListing};
use common::resources::Queue;
use common::scope::{Scope, Tier};
use common::timestamp::Timestamp;
use market::{EntityCursor, Log, LogPosition, ObjectRef, Rebuild};
use replica::base::Columnar;
use serde_json::{Value, json};
use tests::{NOON, Stack, compaction, item, listing, marketplace, order, sale, sold_listing, uuid};
use webhooks::delivery::{
    AfterFailure, Attempt, Delivery, Dispatch, Failure, Lease, OwnerRounds, Progress, Status, Token, after_failure,
    claim,
};
use webhooks::endpoint::{DisabledReason, Switch, WebhookEndpoint};
use webhooks::notice::{DisabledNotice, FailingNotice};
use webhooks::store::{Added, DisableOutcome, Hold, WebhookStore};
use webhooks::{ATTEMPTS, Schedule, delivery_id};

use super::dynamo::{scan, text};
use super::kinds::{RowKind, TABLES, kind_of};

/// Where the endpoints are.
pub(super) const URL: &str = "https://receiver.example/hook";
/// The secret of the 32 bytes 09, sealed for [`endpoint`] under the keyring of the golden file, with the nonce 00.
const SEALED: &str = "a:AAAAAAAAAAAAAAAAB7W817wlirQBoaA8ESWYkNtKX1ohiGkmiZe6isz2VF9tBPIvhVDL87IzCuoxo4Vy";

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

/// Returns the key that stands for the random one.
pub(super) fn key() -> KeyText {
    KeyText::from_bits([7; 32])
}

/// The time at which everything is written.
pub(super) fn noon() -> Timestamp {
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
        let (text, record) = stack.key_with(new).await;
        let running = stack.instance().await;
        for path in ["/v1/public/me", "/v1/public/catalog"] {
            assert_eq!(running.client.get(&text, path).await.status, 200);
        }
        let mut random = vec![(format!(r#""last4":"{}""#, record.last4), format!(r#""last4":"{}""#, key().last4()))];
        random.extend(stands_for(&text, &record, 7, 0xa1));
        random.extend(rotation(&stack).await);
        let mut scene = Self { stack, key: text, random };
        scene.random.extend(scene.generations().await);
        scene
    }

    /// Returns every row with its kind, ordered by table and key. Random values are replaced, except in packed bytes.
    pub(super) async fn rows(&self) -> Vec<(&'static RowKind, Value)> {
        let mut rows = Vec::new();
        for table in TABLES {
            for row in scan(&self.stack, table).await {
                let mut row = self.fixed(&row);
                if row.get("last4").is_some() {
                    row["last4"] = json!({"S": key().last4()});
                    let requests = row.as_object_mut().unwrap().iter_mut().filter(|(name, _)| name.starts_with("lr"));
                    requests.for_each(|(_, request)| *request = super::dynamo::binary(&[0; 16]));
                }
                rows.push((kind_of(table, &row), row));
            }
        }
        rows.sort_by_key(|(kind, row)| (kind.name, text(row, "pk").to_owned(), text(row, "sk").to_owned()));
        rows
    }

    /// Returns the same with fixed values in place of random ones.
    pub(super) fn fixed(&self, value: &Value) -> Value {
        let replaced = self.random.iter().fold(value.to_string(), |text, (from, to)| text.replace(from, to));
        serde_json::from_str(&replaced).unwrap()
    }

    /// Returns a text as it was before [`fixed`](Self::fixed).
    pub(super) fn as_written(&self, fixed: &str) -> String {
        self.random.iter().fold(fixed.to_owned(), |text, (from, to)| text.replace(to, from))
    }

    /// Returns the random names of runs, and what stands for them.
    async fn generations(&self) -> Vec<(String, String)> {
        let rows = scan(&self.stack, "marketplace-market").await;
        let number = |row: &Value| match text(row, "pk") {
            "head#catalog#0" => 0xb1,
            "head#listings#0" => 0xb2,
            _ => 0xb3,
        };
        let named = rows.iter().filter(|row| matches!(text(row, "sk"), "manifest" | "rebuild"));
        named.map(|row| (text(row, "generation").to_owned(), uuid(number(row)).to_string())).collect()
    }
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

/// Returns the hash of packed bytes, as the manifest has it.
pub(super) fn hash_of(packed: &[u8]) -> Vec<u8> {
    ring::digest::digest(&ring::digest::SHA256, packed).as_ref().to_vec()
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
pub(super) fn drain_token() -> Token {
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
        url: URL.to_owned(),
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
    let failed = after_failure(&dispatch, lease, no_result, endpoint.epoch, false, schedule, now);
    let AfterFailure::GiveUp(step) = failed else { panic!("another attempt would follow") };
    let notice = DisabledNotice::new(endpoint, last.id, now);
    let outcome = store.switch_off(&step, endpoint, &notice, now).await.unwrap();
    assert_eq!(outcome, DisableOutcome::Done);
}
