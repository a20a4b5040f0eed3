use common::event::EventKind;
use common::rotation::Secrets;
use webhooks::delivery::Progress;
use webhooks::endpoint::{DisabledReason, Switch, Warning};

use super::*;

const ID: &str = "6f9619ff-8b86-d011-b42d-00c04fc964ff";
const HOUR: i64 = 60 * 60;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

fn endpoint() -> WebhookEndpoint {
    WebhookEndpoint {
        id: ID.parse().unwrap(),
        account_id: ID.parse().unwrap(),
        url: "https://a.example/".to_owned(),
        events: [EventKind::ListingSold].into(),
        switch: Switch::On,
        epoch: 3,
        created_at: at(0),
        secrets: Secrets::first("sealed".to_owned(), at(0)),
        secret_version: 1,
        is_prompt: true,
        warning: None,
        full_since: None,
        full_told_at: None,
    }
}

fn attempt(seconds: i64, status: u16) -> Attempt {
    Attempt { at: at(seconds), status: Some(status), latency_ms: 1, error: None, response: None }
}

/// Returns a delivery whose attempts of the round have failed at these times. The next one is due at `due`.
fn failing(failed_at: &[i64], due: i64) -> Delivery {
    let id = ID.parse().unwrap();
    let new = Progress::new(id, Status::Pending, at(due), at(due));
    // An attempt of the round before does not count.
    let attempts = [1].iter().chain(failed_at).map(|seconds| attempt(*seconds, 500)).collect();
    let failed_attempts = failed_at.len().try_into().unwrap();
    let epoch = (failed_attempts > 0).then_some(3);
    Delivery {
        id,
        endpoint_id: ID.parse().unwrap(),
        account_id: ID.parse().unwrap(),
        event: EventKind::ListingSold,
        is_test: false,
        created_at: at(0),
        body: "{}".to_owned(),
        progress: Progress { failed_attempts, epoch, attempts, ..new },
    }
}

fn health(
    endpoint: &WebhookEndpoint,
    newest: Vec<Delivery>,
    oldest_pending: Vec<Delivery>,
    now: i64,
) -> EndpointHealth {
    let findings = Findings { waiting: 2, oldest_waiting_at: Some(at(50)), newest, oldest_pending };
    EndpointHealth::of(endpoint, &findings, Schedule::default(), at(now))
}

#[test]
fn the_latest_success_and_failure_are_those_of_all_attempts() {
    let (one, mut other) = (failing(&[100, 130], 430), failing(&[], 0));
    other.progress.attempts = vec![attempt(90, 204), attempt(120, 204)];
    let shown = health(&endpoint(), vec![one, other], Vec::new(), 200);
    assert_eq!((shown.last_success_at, shown.last_failure_at), (Some(at(120)), Some(at(130))));
    assert_eq!((shown.waiting, shown.oldest_waiting_at, shown.slow), (2, Some(at(50)), false));
    assert_eq!((shown.failing_since, shown.switch_off_at, shown.warned), (None, None, false));
}

#[test]
fn the_switch_off_is_due_when_the_first_round_ends() {
    // Six attempts have failed, so the one that is due in 20 hours is the last.
    let (old, young) = (failing(&[10, 20, 30, 40, 50, 60], 20 * HOUR), failing(&[70], 100));
    let shown = health(&endpoint(), Vec::new(), vec![young.clone(), old.clone()], 90);
    assert_eq!((shown.failing_since, shown.switch_off_at), (Some(at(10)), Some(at(20 * HOUR))));
    // The second attempt is due at 100 s. The third comes 5 minutes later, and the others with a minute of slack each.
    let last = 100 + 300 + (30 + 2 * 60 + 6 * 60 + 24 * 60 + 4) * 60;
    let shown = health(&endpoint(), Vec::new(), vec![young.clone()], 90);
    assert_eq!((shown.failing_since, shown.switch_off_at), (Some(at(70)), Some(at(last))));
    // It waits for its turn, and cannot end earlier than if it were made now.
    let late = health(&endpoint(), Vec::new(), vec![young], 160);
    assert_eq!(late.switch_off_at, Some(at(last + 60)));
    let overdue = health(&endpoint(), Vec::new(), vec![old], 21 * HOUR);
    assert_eq!(overdue.switch_off_at, Some(at(21 * HOUR)));
}

#[test]
fn what_cannot_switch_the_endpoint_off_does_not_count() {
    let good = failing(&[70], 100);
    let shown =
        |endpoint: &WebhookEndpoint, delivery: Delivery| health(endpoint, Vec::new(), vec![delivery], 90).switch_off_at;
    assert!(shown(&endpoint(), good.clone()).is_some());
    assert_eq!(shown(&endpoint(), Delivery { is_test: true, ..good.clone() }), None);
    assert_eq!(shown(&endpoint(), failing(&[], 100)), None);
    assert_eq!(shown(&WebhookEndpoint { epoch: 4, ..endpoint() }, good.clone()), None);
    let off = Switch::Off(DisabledReason::Owner);
    assert_eq!(shown(&WebhookEndpoint { switch: off, ..endpoint() }, good), None);
}

#[test]
fn a_warning_counts_until_it_is_over_and_in_its_epoch() {
    let warned = |epoch, is_over| {
        let warning = Some(Warning { epoch, number: 0, at: at(1), is_over });
        health(&WebhookEndpoint { warning, is_prompt: false, ..endpoint() }, Vec::new(), Vec::new(), 90)
    };
    assert_eq!([warned(3, false), warned(3, true), warned(2, false)].map(|shown| shown.warned), [true, false, false]);
    assert!(warned(3, false).slow);
}
