use common::rotation::Secrets;
use serde_json::{Value, json};
use webhooks::delivery::{Lease, Progress, Token};

use super::*;

const ID: &str = "6f9619ff-8b86-d011-b42d-00c04fc964ff";
const EPOCH: &str = "1970-01-01T00:00:00.000Z";

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn endpoint(switch: Switch) -> WebhookEndpoint {
    WebhookEndpoint {
        id: ID.parse().unwrap(),
        account_id: ID.parse().unwrap(),
        url: "https://a.example/".to_owned(),
        events: [EventKind::WalletDeposit, EventKind::ListingSold].into(),
        switch,
        epoch: 1,
        created_at: at(0),
        secrets: Secrets::first("sealed".to_owned(), at(0)),
        secret_version: 1,
        is_prompt: false,
        warning: None,
        full_since: None,
        full_told_at: None,
    }
}

fn delivery(status: Status) -> Delivery {
    let id = ID.parse().unwrap();
    let attempt = |at, status, error: Option<&str>, response: Option<&str>| Attempt {
        at,
        status,
        latency_ms: 12,
        error: error.map(str::to_owned),
        response: response.map(str::to_owned),
    };
    let attempts = vec![
        attempt(at(0), Some(500), Some("answered 500"), Some("oops")),
        attempt(at(30_000), None, Some("timed out"), None),
    ];
    let failure = (status == Status::Failed).then_some(Failure::Unacknowledged);
    let new = Progress::new(id, status, at(0), at(0));
    let progress = Progress { attempts, dropped_attempts: 8, failure, due: at(330_000), ..new };
    Delivery {
        id,
        endpoint_id: ID.parse().unwrap(),
        account_id: ID.parse().unwrap(),
        event: EventKind::ListingSold,
        is_test: false,
        created_at: at(0),
        body: "{\"a\": 1}".to_owned(),
        progress,
    }
}

fn endpoint_document(status: &str, reason: Option<&str>) -> Value {
    json!({
        "id": ID, "url": "https://a.example/", "events": ["listing.sold", "wallet.deposit"], "status": status,
        "disabled_reason": reason, "created_at": EPOCH,
    })
}

#[test]
fn an_endpoint_is_shown_without_its_secrets() {
    for (switch, status, reason) in [
        (Switch::On, "enabled", None),
        (Switch::Off(DisabledReason::Owner), "disabled", Some("owner")),
        (Switch::Off(DisabledReason::DeliveriesFailed), "disabled", Some("deliveries_failed")),
    ] {
        let shown = serde_json::to_value(EndpointDocument::from(&endpoint(switch))).unwrap();
        assert_eq!(shown, endpoint_document(status, reason));
    }
}

#[test]
fn the_one_time_that_a_secret_is_shown_it_stands_beside_the_rest() {
    let secret = EndpointSecret::from_bits([7; 32]);
    let mut expected = endpoint_document("enabled", None);
    expected["secret"] = json!(secret.reveal());
    let endpoint = endpoint(Switch::On);
    assert_eq!(serde_json::to_value(EndpointWithSecret::new(&endpoint, &secret)).unwrap(), expected);
}

#[test]
fn a_delivery_in_a_list_counts_its_attempts() {
    let row = |status| serde_json::to_value(DeliveryRow::new(&delivery(status), at(0))).unwrap();
    let expected = json!({
        "id": ID, "endpoint_id": ID, "event": "listing.sold", "status": "pending", "attempts": 10,
        "created_at": EPOCH, "next_attempt_at": "1970-01-01T00:05:30.000Z", "waits_for": "retry",
        "test": false,
    });
    assert_eq!(row(Status::Pending), expected);
    for status in [Status::Delivered, Status::Failed, Status::Held] {
        assert_eq!((&row(status)["status"], &row(status)["next_attempt_at"]), (&json!(status.as_str()), &Value::Null));
        assert_eq!(row(status)["waits_for"], Value::Null, "{status}");
    }
}

#[test]
fn a_delivery_is_shown_with_its_attempts_and_its_body_as_it_is_sent() {
    let shown = serde_json::to_value(DeliveryDocument::new(&delivery(Status::Failed), at(0))).unwrap();
    let expected = json!({
        "id": ID, "endpoint_id": ID, "event": "listing.sold", "status": "failed", "failure": "unacknowledged",
        "attempts": [
            {"at": EPOCH, "status": 500, "latency_ms": 12, "error": "answered 500", "response": "oops"},
            {"at": "1970-01-01T00:00:30.000Z", "status": null, "latency_ms": 12, "error": "timed out"},
        ],
        "attempts_dropped": 8, "next_attempt_at": null, "waits_for": null, "created_at": EPOCH, "round": 1,
        "test": false, "body": "{\"a\": 1}",
    });
    assert_eq!(shown, expected);
}

#[test]
fn a_pending_delivery_says_what_it_waits_for() {
    let pending = delivery(Status::Pending);
    let waits_for = |delivery: &Delivery, now| {
        let [row, whole] = [
            serde_json::to_value(DeliveryRow::new(delivery, now)).unwrap(),
            serde_json::to_value(DeliveryDocument::new(delivery, now)).unwrap(),
        ];
        assert_eq!(row["waits_for"], whole["waits_for"]);
        row["waits_for"].as_str().unwrap().to_owned()
    };
    assert_eq!([329_999, 330_000].map(|now| waits_for(&pending, at(now))), ["retry", "turn"]);
    let lease = Some(Lease { id: Token::random(), until: at(400_000) });
    let claimed = Delivery { progress: Progress { lease, ..pending.progress.clone() }, ..pending };
    // A lease that has run out is that of an attempt without a result.
    assert_eq!([330_000, 400_000, 400_001].map(|now| waits_for(&claimed, at(now))), ["attempt", "attempt", "turn"]);
}
