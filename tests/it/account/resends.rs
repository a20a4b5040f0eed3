//! What bounds the deliveries that an owner sends again. Operators have no bounds.

use std::time::Duration;

use account::CommandName;
use common::event::EventKind;
use common::ids::DeliveryId;
use serde_json::{Value, json};
use tests::delivery;
use tests::webhooks_cli::OWNER;
use webhooks::delivery::{Delivery, MAX_OWNER_ROUNDS_A_DAY, OwnerRounds, Progress, Status};

use super::{Settings, event};

/// From noon, when every clock starts, to the end of the day.
const HALF_A_DAY: Duration = Duration::from_hours(12);

impl Settings {
    /// Stores failed deliveries to the owner's only endpoint. Of each, owners began this many rounds today.
    async fn failed(&self, rounds: &[u32]) -> Vec<DeliveryId> {
        let endpoint = self.stack.endpoint_of(OWNER.parse().unwrap()).await;
        let now = self.stack.now();
        let day = now.seconds().div_euclid(24 * 60 * 60);
        let stored = (1..).zip(rounds).map(|(number, count)| {
            let new = delivery(number, &endpoint, Status::Failed, now.plus_millis(-1_000));
            let owner_rounds = (*count > 0).then_some(OwnerRounds { day, count: *count });
            Delivery { progress: Progress { owner_rounds, ..new.progress }, ..new }
        });
        let stored: Vec<Delivery> = stored.collect();
        self.stack.put_deliveries(&stored).await;
        stored.into_iter().map(|delivery| delivery.id).collect()
    }

    async fn resend(&self, id: DeliveryId) -> Value {
        self.answer(event(OWNER, CommandName::DeliveriesResend, &json!({"delivery_id": id}))).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_has_twenty_resends_a_minute_and_an_operator_any_number() {
    let settings = Settings::new().await;
    let endpoint = settings.endpoint().await;
    let ids = settings.failed(&[0; 25]).await;
    settings.stack.clock.advance(Duration::from_secs(70));
    let all = json!({"endpoint_id": endpoint, "until": "2026-11-20T00:00:00Z"});
    settings.done(CommandName::DeliveriesResendAll, all.clone()).await;
    let mut answers = Vec::new();
    for id in &ids {
        answers.push(settings.resend(*id).await["error"]["retry_after"].clone());
    }
    assert_eq!(answers, [vec![Value::Null; 19], vec![json!(50); 6]].concat());
    assert_eq!(settings.code(CommandName::DeliveriesResendAll, &all).await, "rate_limited");
    let test = json!({"endpoint_id": endpoint});
    assert_eq!(settings.code(CommandName::EndpointsTest, &test).await, "rate_limited", "they are counted together");
    for id in &ids {
        settings.stack.webhooks().resend(*id).await.unwrap();
    }
    settings.stack.clock.advance(Duration::from_secs(50));
    settings.done(CommandName::DeliveriesResendAll, all).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_has_ten_rounds_of_its_owner_on_a_day() {
    let settings = Settings::new().await;
    settings.endpoint().await;
    let [id] = settings.failed(&[0]).await[..] else { panic!("not one") };
    for _ in 0..MAX_OWNER_ROUNDS_A_DAY {
        settings.stack.clock.advance(Duration::from_mins(1));
        assert_eq!(settings.resend(id).await["result"]["delivery_id"], json!(id));
        // Those of an operator do not count.
        settings.stack.webhooks().resend(id).await.unwrap();
    }
    let error = settings.resend(id).await["error"].take();
    let left = HALF_A_DAY.as_secs() - 60 * u64::from(MAX_OWNER_ROUNDS_A_DAY);
    assert_eq!((&error["code"], &error["retry_after"]), (&json!("rate_limited"), &json!(left)), "{error}");
    settings.stack.clock.advance(Duration::from_secs(left));
    assert_eq!(settings.resend(id).await["result"]["delivery_id"], json!(id));
    let progress = settings.stack.webhooks().delivery(id).await.unwrap().progress;
    assert_eq!((progress.round, progress.owner_rounds.unwrap().count), (1 + 2 * MAX_OWNER_ROUNDS_A_DAY + 1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bulk_resend_skips_what_was_sent_again_often_enough_today_and_says_so() {
    let settings = Settings::new().await;
    let endpoint = settings.endpoint().await;
    let ids = settings.failed(&[MAX_OWNER_ROUNDS_A_DAY, 0, MAX_OWNER_ROUNDS_A_DAY - 1]).await;
    let this = json!({"endpoint_id": endpoint});
    let answer = |sent: u32, today: u32| {
        let skipped = json!({"changed": 0, "too_many_rounds": 0, "too_many_rounds_today": today, "expired": 0});
        json!({"sent": sent, "skipped": skipped, "left": 0, "unreadable": []})
    };
    assert_eq!(settings.done(CommandName::DeliveriesResendAll, this.clone()).await, answer(2, 1));
    assert_eq!(settings.done(CommandName::DeliveriesResendAll, this.clone()).await, answer(0, 1));
    let round = async |id: DeliveryId| settings.stack.webhooks().delivery(id).await.unwrap().progress.round;
    assert_eq!([round(ids[0]).await, round(ids[1]).await, round(ids[2]).await], [1, 2, 2]);
    settings.stack.clock.advance(HALF_A_DAY);
    assert_eq!(settings.done(CommandName::DeliveriesResendAll, this).await, answer(1, 0));
}

/// A name may be one that only the service's own network knows.
#[tokio::test(flavor = "multi_thread")]
async fn adding_a_url_tells_nothing_about_its_host_name() {
    let settings = Settings::new().await;
    for url in ["https://intranet.example.com/", "https://no-such-name.example.com/", "https://printer.lan/"] {
        let add = json!({"url": url, "events": [EventKind::ListingSold]});
        assert_eq!(settings.done(CommandName::EndpointsAdd, add).await["url"], url);
    }
}
