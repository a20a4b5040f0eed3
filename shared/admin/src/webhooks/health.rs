//! What an owner is shown of the state of an endpoint.

use common::ids::EndpointId;
use common::timestamp::Timestamp;
use futures_util::future::join_all;
use serde::Serialize;
use webhooks::Schedule;
use webhooks::delivery::{Attempt, Delivery, Status, is_due_now};
use webhooks::endpoint::WebhookEndpoint;
use webhooks::store::{DeliveryFilter, MAX_PAGE_ROWS};

use crate::webhooks::{WebhookAdmin, WebhookAdminError};

/// How closely an endpoint is looked at.
#[derive(Clone, Copy)]
struct Depth {
    /// How many waiting or held deliveries are counted.
    counted: u64,
    /// How many pages of an index are looked through, each of [`MAX_PAGE_ROWS`] deliveries.
    pages: usize,
}

/// If one endpoint is asked for.
const ALONE: Depth = Depth { counted: 100_000, pages: 3 };
/// If it is one of many.
const LISTED: Depth = Depth { counted: 1_000, pages: 1 };
/// How many endpoints are looked at at once.
const ENDPOINTS_AT_ONCE: usize = 10;

/// The state of an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EndpointHealth {
    /// How many deliveries are pending: those that wait for their turn or for a retry, and those that are attempted now. At
    /// most 100,000 are counted.
    pub pending: u64,
    /// How many deliveries wait for their turn to be sent for the first time in their round. At most 100,000 are counted.
    pub waiting: u64,
    /// How many deliveries are held. At most 100,000 are counted.
    pub held: u64,
    /// How many deliveries have failed. At most 100,000 are counted.
    pub failed: u64,
    /// Since when the first of them has waited.
    pub oldest_waiting_at: Option<Timestamp>,
    /// When the latest attempt was acknowledged, of those of the newest 300 deliveries.
    pub last_success_at: Option<Timestamp>,
    /// When the latest attempt failed, of those of the newest 300 deliveries.
    pub last_failure_at: Option<Timestamp>,
    /// What went wrong with that attempt, if it is later than the latest success.
    pub last_error: Option<String>,
    /// Whether it is not known to respond promptly. Then its deliveries wait for their turn.
    pub slow: bool,
    /// When the first attempt of the delivery failed that decides `switch_off_at`.
    pub failing_since: Option<Timestamp>,
    /// How many attempts of the round of that delivery have failed.
    pub failed_attempts: Option<u32>,
    /// When the endpoint is switched off if all further attempts fail. It is the earliest time at which a round ends, of
    /// the 300 oldest pending deliveries.
    pub switch_off_at: Option<Timestamp>,
    /// Whether a delivery fails, and its owner was warned.
    pub warned: bool,
}

/// The deliveries and counts from which the state is computed.
struct Findings {
    pending: u64,
    waiting: u64,
    held: u64,
    failed: u64,
    oldest_waiting_at: Option<Timestamp>,
    newest: Vec<Delivery>,
    oldest_pending: Vec<Delivery>,
}

impl WebhookAdmin {
    /// Returns an endpoint and its state.
    pub async fn endpoint(&self, id: EndpointId) -> Result<(WebhookEndpoint, EndpointHealth), WebhookAdminError> {
        let endpoint = self.find(id).await?;
        let health = Box::pin(self.health(&endpoint, ALONE)).await?;
        Ok((endpoint, health))
    }

    /// Returns the states of endpoints, in their order, after a look that is not as close: at most 1,000 deliveries are
    /// counted, and 100 looked at. The state of an endpoint that cannot be found out now is `None`.
    pub async fn health_of(&self, endpoints: &[WebhookEndpoint]) -> Vec<Option<EndpointHealth>> {
        let mut states = Vec::with_capacity(endpoints.len());
        for some in endpoints.chunks(ENDPOINTS_AT_ONCE) {
            let looked = join_all(some.iter().map(|endpoint| Box::pin(self.health(endpoint, LISTED)))).await;
            states.extend(looked.into_iter().map(Result::ok));
        }
        states
    }

    async fn health(&self, endpoint: &WebhookEndpoint, depth: Depth) -> Result<EndpointHealth, WebhookAdminError> {
        let (id, now, Depth { counted, pages }) = (endpoint.id, self.clock.now(), depth);
        let rows = pages * MAX_PAGE_ROWS.unsigned_abs() as usize;
        let everything = DeliveryFilter::default();
        let (waiting, oldest_pending, newest, count, pending, held, failed) = tokio::try_join!(
            async { Ok(self.store.waiting(id, false, None).await?.0) },
            self.oldest_pending(id, pages),
            async { Ok(self.store.list_deliveries(id, &everything, None, rows).await?) },
            async { Ok(self.store.count_waiting(id, now, counted).await?) },
            async { Ok(self.store.count_with(id, Status::Pending, None, None, counted).await?) },
            async { Ok(self.store.count_with(id, Status::Held, None, None, counted).await?) },
            async { Ok(self.store.count_with(id, Status::Failed, None, None, counted).await?) },
        )?;
        // What owners and operators have sent bears no time in the index.
        let first = waiting.iter().map(|waiting| waiting.at).find(|at| !is_due_now(*at));
        let sent = oldest_pending.iter().map(|delivery| &delivery.progress);
        let sent = sent.filter(|progress| progress.wake_at.is_some_and(is_due_now)).map(|progress| progress.due);
        let findings = Findings {
            pending: pending.min(counted),
            waiting: count.min(counted),
            held: held.min(counted),
            failed: failed.min(counted),
            oldest_waiting_at: first.into_iter().chain(sent).min().filter(|at| *at <= now),
            newest: newest.deliveries,
            oldest_pending,
        };
        Ok(EndpointHealth::of(endpoint, &findings, self.drains.schedule(), now))
    }

    async fn oldest_pending(&self, id: EndpointId, pages: usize) -> Result<Vec<Delivery>, WebhookAdminError> {
        let (mut found, mut from) = (Vec::new(), None);
        for _ in 0..pages {
            let page = self.store.deliveries_with(id, Status::Pending, None, from).await?;
            found.extend(page.deliveries);
            from = page.next;
            if from.is_none() {
                break;
            }
        }
        Ok(found)
    }
}

impl EndpointHealth {
    fn of(endpoint: &WebhookEndpoint, found: &Findings, schedule: Schedule, now: Timestamp) -> Self {
        let attempts = || found.newest.iter().flat_map(|delivery| &delivery.progress.attempts);
        let latest = |is_success| {
            attempts().filter(|attempt| attempt.is_acknowledged() == is_success).max_by_key(|attempt| attempt.at)
        };
        let (success, failure) = (latest(true).map(|attempt| attempt.at), latest(false));
        let last_failed = failure.filter(|attempt| success.is_none_or(|success| success < attempt.at));
        let pending = found.oldest_pending.iter().filter(|delivery| may_switch_off(delivery, endpoint));
        let deciding = pending.min_by_key(|delivery| round_ends_at(delivery, schedule, now));
        Self {
            pending: found.pending,
            waiting: found.waiting,
            held: found.held,
            failed: found.failed,
            oldest_waiting_at: found.oldest_waiting_at,
            last_success_at: success,
            last_failure_at: failure.map(|attempt| attempt.at),
            last_error: last_failed.and_then(Attempt::what_went_wrong),
            slow: !endpoint.is_prompt,
            failing_since: deciding.and_then(|delivery| Some(first_of_round(delivery)?.at)),
            failed_attempts: deciding.map(|delivery| delivery.progress.failed_attempts),
            switch_off_at: deciding.map(|delivery| round_ends_at(delivery, schedule, now)),
            warned: deciding.is_some() && endpoint.warned_at().is_some(),
        }
    }
}

/// Returns whether the endpoint is switched off if all further attempts of a delivery fail.
fn may_switch_off(delivery: &Delivery, endpoint: &WebhookEndpoint) -> bool {
    let progress = &delivery.progress;
    endpoint.is_on()
        && !delivery.is_test
        && progress.status == Status::Pending
        && progress.failed_attempts > 0
        && progress.epoch == Some(endpoint.epoch)
}

/// Returns when the last attempt of a delivery's round is made at the earliest.
fn round_ends_at(delivery: &Delivery, schedule: Schedule, now: Timestamp) -> Timestamp {
    schedule.last_due(delivery.progress.failed_attempts + 1, delivery.progress.due.max(now))
}

fn first_of_round(delivery: &Delivery) -> Option<&Attempt> {
    let attempts = &delivery.progress.attempts;
    attempts.get(attempts.len().saturating_sub(delivery.progress.failed_attempts as usize))
}

#[cfg(test)]
mod tests {
    use common::event::EventKind;
    use common::rotation::Secrets;
    use webhooks::ATTEMPTS;
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
            disabled_at: None,
            epoch: 3,
            created_at: at(0),
            secrets: Secrets::first("sealed".to_owned(), at(0)),
            secret_version: 1,
            is_prompt: true,
            warning: None,
            host_changed_at: None,
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
            event_id: None,
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
        let findings = Findings {
            pending: 7,
            waiting: 2,
            held: 5,
            failed: 3,
            oldest_waiting_at: Some(at(50)),
            newest,
            oldest_pending,
        };
        EndpointHealth::of(endpoint, &findings, Schedule::default(), at(now))
    }

    #[test]
    fn the_latest_success_and_failure_are_those_of_all_attempts() {
        let (one, mut other) = (failing(&[100, 130], 430), failing(&[], 0));
        other.progress.attempts = vec![attempt(90, 204), attempt(120, 204)];
        let shown = health(&endpoint(), vec![one, other], Vec::new(), 200);
        assert_eq!((shown.last_success_at, shown.last_failure_at), (Some(at(120)), Some(at(130))));
        assert_eq!((shown.pending, shown.waiting, shown.held, shown.failed, shown.slow), (7, 2, 5, 3, false));
        assert_eq!((shown.oldest_waiting_at, shown.last_error.as_deref()), (Some(at(50)), Some("answered 500")));
        assert_eq!((shown.failing_since, shown.switch_off_at, shown.warned), (None, None, false));
    }

    #[test]
    fn the_switch_off_is_due_when_the_first_round_ends() {
        // The attempt that is due in 20 hours is the last of its round.
        let failed_at: Vec<_> = (1..ATTEMPTS).map(|attempt| 10 * i64::from(attempt)).collect();
        let (old, young) = (failing(&failed_at, 20 * HOUR), failing(&[70], 100));
        let shown = health(&endpoint(), Vec::new(), vec![young.clone(), old.clone()], 90);
        assert_eq!((shown.failing_since, shown.switch_off_at), (Some(at(10)), Some(at(20 * HOUR))));
        assert_eq!(shown.failed_attempts, Some(ATTEMPTS - 1));
        // The second attempt is due at 100 s.
        let last = Schedule::default().last_due(2, at(100)).seconds();
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
        let shown = |endpoint: &WebhookEndpoint, delivery: Delivery| {
            health(endpoint, Vec::new(), vec![delivery], 90).switch_off_at
        };
        assert!(shown(&endpoint(), good.clone()).is_some());
        assert_eq!(shown(&endpoint(), Delivery { is_test: true, ..good.clone() }), None);
        assert_eq!(shown(&endpoint(), failing(&[], 100)), None);
        assert_eq!(shown(&WebhookEndpoint { epoch: 4, ..endpoint() }, good.clone()), None);
        let off = Switch::Off(DisabledReason::Owner);
        assert_eq!(shown(&WebhookEndpoint { switch: off, ..endpoint() }, good), None);
    }

    #[test]
    fn a_warning_counts_in_its_epoch_while_a_delivery_fails() {
        let warned = |epoch, failing: Vec<Delivery>| {
            let warning = Some(Warning { epoch, at: at(1) });
            health(&WebhookEndpoint { warning, is_prompt: false, ..endpoint() }, Vec::new(), failing, 90)
        };
        let fails = || vec![failing(&[70], 100)];
        let shown = [warned(3, fails()), warned(3, Vec::new()), warned(2, fails())].map(|shown| shown.warned);
        assert_eq!(shown, [true, false, false]);
        assert!(warned(3, fails()).slow);
    }
}
