//! What the commands do.

use std::time::Duration;

use account::CommandName;
use common::event::EventKind;
use common::ids::EndpointId;
use common::resources::Queue;
use common::runtime::Worker;
use common::scope::Tier;
use common::timestamp::Timestamp;
use serde_json::{Value, json};
use tests::webhooks_cli::{OWNER, URL, text};
use tests::{Fault, Proxy, delivery, uuid};
use webhooks::delivery::{Delivery, LEASE_SECONDS, Status, Token, claim_due, due_now};
use webhooks::delivery_id;

use super::{Settings, event};

impl Settings {
    /// Stores deliveries to the owner's only endpoint, the first of them created an hour ago, and each a second before the
    /// next. Those that are pending wait for the drain.
    async fn store(&self, wanted: &[(Status, EventKind)]) {
        let endpoint = self.stack.endpoint_of(OWNER.parse().unwrap()).await;
        let stored = (0_u32..).zip(wanted).map(|(number, (status, event))| {
            let at = self.hour_ago().plus_millis(i64::from(number) * 1_000);
            Delivery { event: *event, ..delivery(u128::from(number) + 1, &endpoint, *status, at) }
        });
        self.stack.put_deliveries(&stored.collect::<Vec<_>>()).await;
    }

    fn hour_ago(&self) -> Timestamp {
        self.stack.now().plus_millis(-3_600_000)
    }

    /// Returns the numbers of a page's deliveries.
    fn numbers(page: &Value) -> Vec<u128> {
        let number = |delivery: &Value| {
            let endpoint: EndpointId = text(&delivery["endpoint_id"]).parse().unwrap();
            (1..2_000).find(|number| delivery["id"] == json!(delivery_id(uuid(*number).into(), endpoint))).unwrap()
        };
        page["deliveries"].as_array().unwrap().iter().map(number).collect()
    }

    /// Reads all pages of a list. Returns the numbers of the deliveries, page by page.
    async fn pages(&self, mut list: Value) -> Vec<Vec<u128>> {
        let mut pages = Vec::new();
        loop {
            let page = self.done(CommandName::DeliveriesList, list.clone()).await;
            pages.push(Self::numbers(&page));
            list["cursor"] = page["cursor"].clone();
            if list["cursor"].is_null() {
                return pages;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_made_renamed_replaced_and_revoked() {
    let settings = Settings::new().await;
    let running = settings.stack.instance().await;
    let status = async |key: &Value| running.client.get(key.as_str().unwrap(), "/v1/public/me").await.status;
    let made = settings.done(CommandName::KeysCreate, json!({"name": "bot", "scopes": ["catalog:read"]})).await;
    assert_eq!((&made["tier"], &made["rate_limit_per_minute"]), (&json!("free"), &json!(Tier::Free.limit())));
    assert_eq!(
        (&made["user_id"], &made["expires_at"], status(&made["api_key"]).await),
        (&json!(OWNER), &Value::Null, 200)
    );
    let this = json!({"key_id": made["key_id"]});
    let renamed = settings.done(CommandName::KeysRename, json!({"key_id": made["key_id"], "name": "bot 2"})).await;
    assert_eq!((&renamed["name"], renamed.get("api_key")), (&json!("bot 2"), None));

    let rotate = json!({"key_id": made["key_id"], "overlap_seconds": 60});
    let next = settings.done(CommandName::KeysRotate, rotate).await;
    assert_eq!((&next["old_key_id"], &next["name"]), (&made["key_id"], &json!("bot 2")));
    assert_eq!((&next["old_expires_at"], &next["in_doubt"]), (&json!("2026-11-20T12:01:00.000Z"), &json!(false)));
    assert_eq!((status(&made["api_key"]).await, status(&next["api_key"]).await), (200, 200));
    let revoked = settings.done(CommandName::KeysRevoke, this.clone()).await;
    assert_eq!((&revoked["status"], status(&made["api_key"]).await), (&json!("revoked"), 401));
    assert_eq!(status(&next["api_key"]).await, 200);

    let listed = settings.done(CommandName::KeysList, json!({})).await;
    let ids: Vec<_> = listed["keys"].as_array().unwrap().iter().map(|key| key["key_id"].clone()).collect();
    assert!(ids.len() == 2 && ids.contains(&made["key_id"]) && ids.contains(&next["key_id"]), "{listed}");
    let shown = settings.done(CommandName::KeysShow, this).await;
    assert!(shown["usage"]["days"].is_array(), "{shown}");
}

/// A secret is in one answer only. So the repetition of a write must not be taken for somebody else's change.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_shown_and_activated_even_if_the_answer_to_its_write_is_lost() {
    let (settings, proxy) = Settings::behind_proxy().await;
    let id = settings.endpoint().await;
    for activate in [false, true] {
        let mut is_first = true;
        proxy.plan(move |operation| {
            let lose = operation == "UpdateItem" && std::mem::take(&mut is_first);
            if lose { Fault::LoseAnswer } else { Fault::None }
        });
        let parameters = json!({"endpoint_id": id, "activate": activate});
        let shown = settings.done(CommandName::EndpointsRotateSecret, parameters).await;
        assert_eq!(shown.get("secret").is_some(), !activate, "{shown}");
    }
    let endpoint = settings.stack.endpoint_of(OWNER.parse().unwrap()).await;
    assert_eq!(endpoint.secret_version, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_present_state_does_not_allow_has_a_code() {
    let settings = Settings::new().await;
    let [key, endpoint, delivery] = settings.belongings().await;
    settings.done(CommandName::KeysRevoke, key.clone()).await;
    assert_eq!(settings.code(CommandName::KeysRotate, &key).await, "conflict");
    settings.done(CommandName::EndpointsDisable, endpoint.clone()).await;
    assert_eq!(settings.code(CommandName::EndpointsTest, &endpoint).await, "");
    assert_eq!(settings.code(CommandName::DeliveriesResend, &delivery).await, "conflict");
    for _ in 1..10 {
        settings.endpoint().await;
    }
    let eleventh = json!({"url": URL, "events": ["listing.sold"]});
    assert_eq!(settings.code(CommandName::EndpointsAdd, &eleventh).await, "limit_reached");
    settings.done(CommandName::EndpointsRemove, endpoint.clone()).await;
    settings.stack.clock.advance(Duration::from_secs(1));
    let added = settings.endpoint().await;
    let listed = settings.done(CommandName::EndpointsList, json!({})).await;
    assert_eq!((&listed["endpoints"][9]["id"], &listed["endpoints"][10]), (&json!(added), &Value::Null));
    // A removal that was cut short is done again.
    let again = settings.done(CommandName::EndpointsRemove, endpoint).await;
    assert_eq!(again["ended_deliveries"], 0);
}

/// Lambda would end the function without an answer and without the audit line.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_takes_too_long_is_answered_and_goes_on_when_it_is_sent_again() {
    let settings = Settings::new().await;
    let [_, endpoint, _] = settings.belongings().await;
    let proxy = Proxy::start(&settings.stack.aws.endpoint_url).await;
    let hurried = settings.stack.account_at(&proxy.url).await.with_limit(Duration::from_millis(400));
    proxy.plan(|operation| if operation == "Query" { Fault::Slow(Duration::from_millis(800)) } else { Fault::None });
    let answer = hurried.work(event(OWNER, CommandName::EndpointsRemove, &endpoint)).await.unwrap();
    assert_eq!(answer["error"]["code"], "unavailable", "{answer}");
    let removed = settings.done(CommandName::EndpointsRemove, endpoint).await;
    assert_eq!(removed["ended_deliveries"], 1);
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
    settings.store(&wanted).await;
    let list = |with: Value| {
        let mut list = json!({"endpoint_id": id, "limit": 2});
        list.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
        list
    };
    let at = |number: i64| settings.hour_ago().plus_millis((number - 1) * 1_000).to_string();
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
    let (id, slow) = (settings.endpoint().await, settings.stack.queue(Queue::WebhooksSlow));
    let sold = EventKind::ListingSold;
    settings.store(&[Status::Held, Status::Failed, Status::Delivered, Status::Held].map(|it| (it, sold))).await;
    let this = json!({"endpoint_id": id});
    settings.done(CommandName::EndpointsDisable, this.clone()).await;
    assert_eq!(settings.code(CommandName::DeliveriesResendAll, &this).await, "conflict");
    assert_eq!(slow.visible_count().await, 0);
    settings.done(CommandName::EndpointsEnable, this.clone()).await;

    let until = settings.hour_ago().plus_millis(3_000).to_string();
    let failed = json!({"endpoint_id": id, "statuses": ["failed"], "until": until});
    let answer = |sent: u32, left: u32| json!({"sent": sent, "skipped": {"changed": 0, "too_many_rounds": 0, "too_many_rounds_today": 0, "expired": 0}, "left": left, "unreadable": []});
    assert_eq!(settings.done(CommandName::DeliveriesResendAll, failed.clone()).await, answer(1, 0));
    assert_eq!(slow.visible_count().await, 1);
    assert_eq!(settings.done(CommandName::DeliveriesResendAll, failed).await, answer(0, 0));
    assert_eq!(settings.done(CommandName::DeliveriesResendAll, this.clone()).await, answer(2, 0));
    assert_eq!(settings.done(CommandName::DeliveriesResendAll, this).await, answer(0, 0));
    let pending = json!({"endpoint_id": id, "status": "pending"});
    let pending = settings.done(CommandName::DeliveriesList, pending).await;
    assert_eq!(Settings::numbers(&pending), [4, 2, 1]);
    assert!(pending["deliveries"].as_array().unwrap().iter().all(|row| row["waits_for"] == "turn"), "{pending}");
    // A drain has one message, however many deliveries wait.
    assert_eq!(slow.visible_count().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_than_a_thousand_wait_and_the_rest_is_sent_when_it_is_repeated() {
    let settings = Settings::new().await;
    let id = settings.endpoint().await;
    let mut wanted = vec![(Status::Pending, EventKind::ListingSold); 997];
    wanted.extend([(Status::Held, EventKind::ListingSold); 5]);
    settings.store(&wanted).await;
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
async fn a_removal_says_whether_more_is_to_end() {
    let settings = Settings::new().await;
    let [_, endpoint, delivery] = settings.belongings().await;
    let (store, now) = (settings.stack.webhooks().store, settings.stack.now());
    // An attempt is under way, so the delivery ends with it.
    let claim = claim_due(due_now(1), Token::random(), now);
    let id = text(&endpoint["endpoint_id"]).parse().unwrap();
    assert!(store.apply(text(&delivery["delivery_id"]).parse().unwrap(), id, &claim).await.unwrap());
    let removed = |ended: u32, unfinished: bool| json!({"id": endpoint["endpoint_id"], "ended_deliveries": ended, "unfinished": unfinished});
    assert_eq!(settings.done(CommandName::EndpointsRemove, endpoint.clone()).await, removed(0, true));
    settings.stack.clock.advance(Duration::from_secs(LEASE_SECONDS.unsigned_abs() + 1));
    assert_eq!(settings.done(CommandName::EndpointsRemove, endpoint.clone()).await, removed(1, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_has_twenty_trials_a_minute_however_it_makes_them() {
    let settings = Settings::new().await;
    let add = json!({"url": URL, "events": ["listing.sold"]});
    let mut left = 20;
    while left > 10 {
        let id = settings.endpoint().await;
        let tested = settings.done(CommandName::EndpointsTest, json!({"endpoint_id": id})).await;
        assert_eq!(settings.code(CommandName::DeliveriesResend, &tested).await, "", "{left}");
        settings.done(CommandName::EndpointsRemove, json!({"endpoint_id": id})).await;
        left -= 3;
    }
    let id = settings.endpoint().await;
    for _ in 1..left {
        settings.done(CommandName::EndpointsAdd, add.clone()).await;
    }
    for (command, parameters) in [
        (CommandName::EndpointsAdd, add),
        (CommandName::EndpointsTest, json!({"endpoint_id": id})),
        (CommandName::EndpointsUpdate, json!({"endpoint_id": id, "url": format!("{URL}/other")})),
    ] {
        assert_eq!(settings.code(command, &parameters).await, "rate_limited", "{command}");
    }
    settings.stack.clock.advance(Duration::from_mins(1));
    settings.done(CommandName::EndpointsTest, json!({"endpoint_id": id})).await;
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
