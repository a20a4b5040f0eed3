//! Deliveries, listed by what an owner looks for, and sent again together.

use std::time::Duration;

use account::CommandName;
use futures_util::future::join_all;
use platform::resources::Queue;
use serde_json::{Value, json};
use tests::uuid;
use tests::webhooks_cli::{OWNER, text};
use types::clock::Clock;
use types::event::EventKind;
use webhooks::delivery::{Delivery, LEASE_SECONDS, Progress, Status, Token, at_once, claim_due};

use super::{Settings, event};

impl Settings {
    /// Stores deliveries to an endpoint, the first of them created now, and each a second before the next. Those that are
    /// pending wait for the drain.
    async fn store(&self, endpoint: &str, wanted: &[(Status, EventKind)]) {
        let (admin, now) = (self.stack.webhooks(), self.stack.clock.now());
        let puts = (1_u32..).zip(wanted).map(|(number, (status, event))| {
            let id = uuid(number.into()).into();
            let at = now.plus_millis(i64::from(number - 1) * 1_000 - 3_600_000);
            let delivery = Delivery {
                id,
                endpoint_id: endpoint.parse().unwrap(),
                account_id: OWNER.parse().unwrap(),
                event: *event,
                is_test: false,
                created_at: at,
                body: "{}".to_owned(),
                progress: Progress::new(id, *status, at, at),
            };
            let store = &admin.store;
            async move { store.put_delivery(&delivery).await.unwrap() }
        });
        join_all(puts).await;
    }

    /// Reads all pages of a list. Returns the numbers of the deliveries, page by page.
    async fn pages(&self, mut list: Value) -> Vec<Vec<u128>> {
        let mut pages = Vec::new();
        loop {
            let page = self.done(CommandName::DeliveriesList, list.clone()).await;
            let numbers = page["deliveries"].as_array().unwrap().iter().map(number);
            pages.push(numbers.collect());
            list["cursor"] = page["cursor"].clone();
            if list["cursor"].is_null() {
                return pages;
            }
        }
    }
}

/// Returns the number of a stored delivery.
fn number(delivery: &Value) -> u128 {
    (1..1_000).find(|number| delivery["id"] == json!(uuid(*number))).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_by_status_event_and_time_has_no_empty_pages() {
    use EventKind::{ListingSold, WalletDeposit};
    let settings = Settings::new().await;
    let id = settings.endpoint().await;
    let mut wanted = [(Status::Delivered, ListingSold); 230];
    for (index, status) in [(0, Status::Held), (1, Status::Failed), (2, Status::Held), (228, Status::Held)] {
        wanted[index].0 = status;
    }
    (wanted[3].1, wanted[229].1) = (WalletDeposit, WalletDeposit);
    settings.store(&id, &wanted).await;
    let list = |with: Value| {
        let mut list = json!({"endpoint_id": id, "limit": 2});
        list.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
        list
    };
    let at = |number: i64| settings.stack.clock.now().plus_millis((number - 1) * 1_000 - 3_600_000).to_string();
    assert_eq!(settings.pages(list(json!({"status": "held"}))).await, [vec![229, 3], vec![1]]);
    assert_eq!(settings.pages(list(json!({"status": "failed"}))).await, [vec![2]]);
    assert_eq!(settings.pages(list(json!({"status": "pending"}))).await, [vec![]]);
    // More than two hundred others are between the two.
    assert_eq!(settings.pages(list(json!({"event": "wallet.deposit"}))).await, [vec![230, 4]]);
    let one = list(json!({"event": "wallet.deposit", "status": "delivered", "limit": 1}));
    assert_eq!(settings.pages(one).await, [vec![230], vec![4]]);
    let time = json!({"since": at(3), "until": at(6)});
    assert_eq!(settings.pages(list(time.clone())).await, [vec![5, 4], vec![3]]);
    let mut held = list(time);
    held["status"] = json!("held");
    assert_eq!(settings.pages(held.clone()).await, [vec![3]]);

    // A cursor goes on in any list of the endpoint, wherever it lies.
    let page = settings.done(CommandName::DeliveriesList, list(json!({"status": "held"}))).await;
    let from = |with: Value| {
        let mut list = list(with);
        list["cursor"] = page["cursor"].clone();
        list
    };
    assert_eq!(settings.pages(from(json!({"limit": 5}))).await, [vec![2, 1]]);
    assert_eq!(settings.pages(from(json!({"since": at(1), "until": at(3)}))).await, [vec![2, 1]]);
    assert_eq!(settings.pages(from(json!({"since": at(200)}))).await, [vec![]]);
    assert_eq!(settings.pages(from(json!({"until": at(2)}))).await, [vec![1]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_failed_or_is_held_is_sent_again_once() {
    let settings = Settings::new().await;
    let (id, slow) = (settings.endpoint().await, settings.stack.queue(Queue::WebhooksSlow).await);
    let sold = EventKind::ListingSold;
    settings.store(&id, &[Status::Held, Status::Failed, Status::Delivered, Status::Held].map(|it| (it, sold))).await;
    let this = json!({"endpoint_id": id});
    settings.done(CommandName::EndpointsDisable, this.clone()).await;
    let refused = settings.answer(event(OWNER, CommandName::DeliveriesResendAll, &this)).await;
    assert_eq!((&refused["error"]["code"], slow.visible_count().await), (&json!("conflict"), 0));
    settings.done(CommandName::EndpointsEnable, this.clone()).await;

    let until = settings.stack.clock.now().plus_millis(-3_600_000 + 3_000).to_string();
    let failed = json!({"endpoint_id": id, "statuses": ["failed"], "until": until});
    let answer = |sent: u32, left: u32| json!({"sent": sent, "skipped": {"changed": 0, "too_many_rounds": 0, "expired": 0}, "left": left, "unreadable": []});
    assert_eq!(settings.done(CommandName::DeliveriesResendAll, failed.clone()).await, answer(1, 0));
    assert_eq!(slow.visible_count().await, 1);
    assert_eq!(settings.done(CommandName::DeliveriesResendAll, failed).await, answer(0, 0));
    assert_eq!(settings.done(CommandName::DeliveriesResendAll, this.clone()).await, answer(2, 0));
    assert_eq!(settings.done(CommandName::DeliveriesResendAll, this).await, answer(0, 0));
    let pending = json!({"endpoint_id": id, "status": "pending"});
    let pending = settings.done(CommandName::DeliveriesList, pending).await;
    let rows = pending["deliveries"].as_array().unwrap();
    assert_eq!(rows.iter().map(number).collect::<Vec<_>>(), [4, 2, 1]);
    assert!(rows.iter().all(|row| row["waits_for"] == "turn"), "{pending}");
    // A drain has one message, however many deliveries wait.
    assert_eq!(slow.visible_count().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_than_a_thousand_wait_and_the_rest_is_sent_when_it_is_repeated() {
    let settings = Settings::new().await;
    let id = settings.endpoint().await;
    let mut wanted = vec![(Status::Pending, EventKind::ListingSold); 997];
    wanted.extend([(Status::Held, EventKind::ListingSold); 5]);
    settings.store(&id, &wanted).await;
    let this = json!({"endpoint_id": id});
    let first = settings.done(CommandName::DeliveriesResendAll, this.clone()).await;
    assert_eq!((&first["sent"], &first["left"]), (&json!(3), &json!(2)));
    let none = settings.done(CommandName::DeliveriesResendAll, this.clone()).await;
    assert_eq!((&none["sent"], &none["left"]), (&json!(0), &json!(2)));
    let health = settings.done(CommandName::EndpointsShow, this.clone()).await["health"].take();
    assert_eq!((&health["waiting"], &health["oldest_waiting_at"]), (&json!(1_000), &json!("2026-11-20T11:00:00.000Z")));
    settings.done(CommandName::EndpointsDisable, this.clone()).await;
    settings.stack.drain(OWNER.parse().unwrap()).await;
    settings.done(CommandName::EndpointsEnable, this.clone()).await;
    let held = json!({"endpoint_id": id, "status": "held"});
    assert!(!settings.done(CommandName::DeliveriesList, held).await["deliveries"].as_array().unwrap().is_empty());
    assert_ne!(settings.done(CommandName::DeliveriesResendAll, this).await["sent"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_is_shown_with_what_waits_and_how_it_responded() {
    let settings = Settings::new().await;
    let [_, endpoint, _] = settings.belongings().await;
    let health = |waiting: u32, at: Value, failed: Value| {
        json!({"waiting": waiting, "oldest_waiting_at": at, "last_success_at": null, "last_failure_at": failed,
            "slow": true, "failing_since": null, "switch_off_at": null, "warned": false})
    };
    let noon = json!("2026-11-20T12:00:00.000Z");
    let shown = settings.done(CommandName::EndpointsShow, endpoint.clone()).await;
    assert_eq!((&shown["id"], &shown["status"]), (&endpoint["endpoint_id"], &json!("enabled")));
    assert_eq!(shown["health"], health(1, noon, Value::Null));
    assert!(shown.get("secret").is_none());
    settings.done(CommandName::EndpointsRemove, endpoint.clone()).await;
    let gone = settings.answer(event(OWNER, CommandName::EndpointsShow, &endpoint)).await;
    assert_eq!(gone["error"]["code"], "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_says_whether_more_is_to_end() {
    let settings = Settings::new().await;
    let [_, endpoint, delivery] = settings.belongings().await;
    let (store, now) = (settings.stack.webhooks().store, settings.stack.clock.now());
    // An attempt is under way, so the delivery ends with it.
    let claim = claim_due(at_once(), Token::random(), now);
    let id = text(&endpoint["endpoint_id"]).parse().unwrap();
    assert!(store.settle(text(&delivery["delivery_id"]).parse().unwrap(), id, &claim).await.unwrap());
    let removed = |ended: u32, unfinished: bool| json!({"id": endpoint["endpoint_id"], "ended_deliveries": ended, "unfinished": unfinished});
    assert_eq!(settings.done(CommandName::EndpointsRemove, endpoint.clone()).await, removed(0, true));
    settings.stack.clock.advance(Duration::from_secs(LEASE_SECONDS.unsigned_abs() + 1));
    assert_eq!(settings.done(CommandName::EndpointsRemove, endpoint.clone()).await, removed(1, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_old_secret_is_ended_at_once_and_another_rotation_may_begin() {
    let settings = Settings::new().await;
    let id = settings.endpoint().await;
    let expire = json!({"endpoint_id": id, "expire_old": true});
    let refused = settings.answer(event(OWNER, CommandName::EndpointsRotateSecret, &expire)).await;
    assert_eq!(refused["error"]["code"], "conflict");
    settings.done(CommandName::EndpointsRotateSecret, json!({"endpoint_id": id})).await;
    let expired = settings.done(CommandName::EndpointsRotateSecret, expire).await;
    assert_eq!((&expired["id"], expired.get("secret")), (&json!(id), None));
    let (endpoint, now) = (settings.stack.endpoint_of(OWNER.parse().unwrap()).await, settings.stack.clock.now());
    assert_eq!(endpoint.secrets.valid(now).count(), 1);
    let next = settings.done(CommandName::EndpointsRotateSecret, json!({"endpoint_id": id})).await;
    assert!(next["secret"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_is_tested_and_moved_five_times_a_minute_at_most() {
    let settings = Settings::new().await;
    let (id, other) = (settings.endpoint().await, settings.endpoint().await);
    settings.stack.clock.advance(Duration::from_secs(20));
    let this = json!({"endpoint_id": id});
    let moved = |number: u32| json!({"endpoint_id": id, "url": format!("https://93.184.215.14/{number}")});
    for number in 0..2 {
        settings.done(CommandName::EndpointsTest, this.clone()).await;
        settings.done(CommandName::EndpointsUpdate, moved(number)).await;
    }
    // Neither the same URL nor other events count.
    settings.done(CommandName::EndpointsUpdate, moved(1)).await;
    settings.done(CommandName::EndpointsUpdate, json!({"endpoint_id": id, "events": ["wallet.deposit"]})).await;
    settings.done(CommandName::EndpointsTest, this.clone()).await;
    for (command, parameters) in [(CommandName::EndpointsTest, this.clone()), (CommandName::EndpointsUpdate, moved(9))]
    {
        let error = settings.answer(event(OWNER, command, &parameters)).await["error"].take();
        assert_eq!((&error["code"], &error["retry_after"]), (&json!("rate_limited"), &json!(40)), "{error}");
        assert!(text(&error["message"]).ends_with("try again in 40 seconds"), "{error}");
    }
    let listed = settings.done(CommandName::EndpointsList, json!({})).await;
    let urls: Vec<_> = listed["endpoints"].as_array().unwrap().iter().map(|shown| text(&shown["url"])).collect();
    assert!(urls.contains(&"https://93.184.215.14/1".to_owned()), "{urls:?}");
    settings.done(CommandName::EndpointsTest, json!({"endpoint_id": other})).await;
    settings.stack.clock.advance(Duration::from_secs(40));
    settings.done(CommandName::EndpointsTest, this).await;
}
