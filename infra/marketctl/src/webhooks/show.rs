//! Endpoints and deliveries as text for people.

use admin::webhooks::EndpointHealth;
use admin::webhooks::document::{
    DeliveryDocument, DeliveryRow, EndpointDocument, EndpointWithHealth, EndpointWithSecret, RemovedEndpoint,
    SentDelivery, WaitsFor,
};
use common::ids::UserId;
use terminal::{minute, printable, table};
use webhooks::delivery::{Attempt, Failure, Status};

use crate::cli::ListDeliveries;

/// The most characters of an answer that the table shows. The JSON output has all that is stored.
const MAX_ANSWER_CHARS: usize = 60;

pub(super) fn added(user: UserId, shown: &EndpointWithSecret<'_>) -> String {
    let EndpointDocument { id, url, .. } = shown.endpoint;
    format!(
        "Endpoint {id} of user {user} is ready: {} will be sent to {url}.\n\n{}\n\n\
         Receivers verify deliveries with it. To send a test event:\n\n\
         \x20   marketctl webhooks test {id}",
        events(&shown.endpoint),
        secret_once(shown),
    )
}

pub(super) fn rotated(shown: &EndpointWithSecret<'_>) -> String {
    let id = shown.endpoint.id;
    format!(
        "Endpoint {id} has a next secret.\n\n{}\n\n\
         From now on, `webhook-signature` has one signature by the present secret and one by the next. `X-Service-Signature`\n\
         stays with the present secret for 24 hours. Once the receivers know the next one, you can switch earlier:\n\n\
         \x20   marketctl webhooks rotate-secret {id} --activate",
        secret_once(shown),
    )
}

pub(super) fn activated(endpoint: &EndpointDocument<'_>) -> String {
    let id = endpoint.id;
    format!(
        "The newest secret of endpoint {id} signs `X-Service-Signature` from now on. For another 24 hours,\n\
         `webhook-signature` also has a signature by the secret before it. To end that one now:\n\n\
         \x20   marketctl webhooks rotate-secret {id} --expire-old",
    )
}

pub(super) fn expired(endpoint: &EndpointDocument<'_>) -> String {
    format!("Only the newest secret of endpoint {} signs from now on.", endpoint.id)
}

/// Shows an endpoint and its state.
pub(super) fn endpoint(shown: &EndpointWithHealth<'_>) -> String {
    let EndpointWithHealth { endpoint, health } = shown;
    let EndpointHealth { waiting, oldest_waiting_at, last_success_at, last_failure_at, slow, warned, .. } = health;
    let yes_or_no = |is_so: bool| if is_so { "yes" } else { "no" }.to_owned();
    let [id, url, events, status, created] = row(endpoint);
    let rows = [
        ["endpoint id", id.as_str()],
        ["url", &url],
        ["events", &events],
        ["status", &status],
        ["created", &created],
        ["deliveries that wait", &waiting.to_string()],
        ["oldest of them", &minute(*oldest_waiting_at)],
        ["last acknowledged", &minute(*last_success_at)],
        ["last failed", &minute(*last_failure_at)],
        ["slow or new", &yes_or_no(*slow)],
        ["failing since", &minute(health.failing_since)],
        ["switched off at", &minute(health.switch_off_at)],
        ["owner is warned", &yes_or_no(*warned)],
    ]
    .map(|row| row.map(str::to_owned));
    table(["ENDPOINT", ""], rows)
}

pub(super) fn changed(endpoint: &EndpointDocument<'_>) -> String {
    let EndpointDocument { id, url, status, .. } = endpoint;
    format!("Endpoint {id} is changed, and still {status}: {} will be sent to {url}.", events(endpoint))
}

pub(super) fn enabled(endpoint: &EndpointDocument<'_>) -> String {
    let id = endpoint.id;
    format!(
        "Endpoint {id} is enabled: its events are sent from now on.\n\
         Deliveries held meanwhile are not sent by themselves. To see how many there are, and to send them:\n\n\
         \x20   marketctl webhooks resend --endpoint {id} --dry-run\n\
         \x20   marketctl webhooks resend --endpoint {id}"
    )
}

pub(super) fn disabled(endpoint: &EndpointDocument<'_>) -> String {
    let id = endpoint.id;
    format!(
        "Endpoint {id} is disabled: its events are held for 35 days. To switch it on again:\n\n\
         \x20   marketctl webhooks enable {id}"
    )
}

pub(super) fn removed(removed: &RemovedEndpoint) -> String {
    let RemovedEndpoint { id, ended_deliveries, unfinished } = removed;
    let rest = if *unfinished { " There are more, which end by themselves: you need not do anything." } else { "" };
    format!("Endpoint {id} is removed. Pending and held deliveries that ended with it: {ended_deliveries}.{rest}")
}

pub(super) fn endpoints(user: UserId, endpoints: &[EndpointDocument<'_>]) -> String {
    if endpoints.is_empty() {
        return format!(
            "User {user} has no endpoints. Add one:\n\n    \
             marketctl webhooks add --user {user} --url https://… --event listing.sold"
        );
    }
    let header = ["ENDPOINT ID", "URL", "EVENTS", "STATUS", "CREATED"];
    let rows = table(header, endpoints.iter().map(row));
    match endpoints.iter().find(|endpoint| endpoint.disabled_reason.is_some()) {
        Some(off) => format!("{rows}\n\nTo switch one on again:\n\n    marketctl webhooks enable {}", off.id),
        None => rows,
    }
}

fn row(endpoint: &EndpointDocument<'_>) -> [String; 5] {
    let status = match endpoint.disabled_reason {
        Some(reason) => format!("{} ({})", endpoint.status, reason.as_str().replace('_', " ")),
        None => endpoint.status.to_owned(),
    };
    [endpoint.id.to_string(), endpoint.url.to_owned(), events(endpoint), status, minute(Some(endpoint.created_at))]
}

fn events(endpoint: &EndpointDocument<'_>) -> String {
    endpoint.events.iter().map(|event| event.as_str()).collect::<Vec<_>>().join(", ")
}

fn secret_once(shown: &EndpointWithSecret<'_>) -> String {
    format!("    {}\n\nThe secret is shown only this once: store it now.", shown.secret)
}

pub(super) fn queued(sent: &SentDelivery) -> String {
    let id = sent.delivery_id;
    format!(
        "Delivery {id} is queued. --wait tells how its attempt ends. To see its result later:\n\n    marketctl webhooks show {id}"
    )
}

pub(super) fn deliveries(list: &ListDeliveries, rows: &[DeliveryRow]) -> String {
    let ListDeliveries { id, status, event, since, until, .. } = list;
    if rows.is_empty() {
        let status = status.map_or_else(String::new, |status| format!(" that are {}", status.as_str()));
        let is_part = event.is_some() || since.is_some() || until.is_some();
        let which = if is_part { " of this event and time" } else { "" };
        return format!(
            "Endpoint {id} has no deliveries{which}{status}. To send a test event:\n\n    marketctl webhooks test {id}"
        );
    }
    let header = ["DELIVERY ID", "EVENT", "STATUS", "ATTEMPTS", "CREATED", "NEXT ATTEMPT", "WAITS FOR"];
    let rows = rows.iter().map(|row| {
        let event = if row.test { format!("{} (test)", row.event) } else { row.event.to_string() };
        let (created, next) = (minute(Some(row.created_at)), minute(row.next_attempt_at));
        let waits_for = row.waits_for.map_or("-", WaitsFor::as_str).to_owned();
        [row.id.to_string(), event, row.status.as_str().to_owned(), row.attempts.to_string(), created, next, waits_for]
    });
    let rows = table(header, rows);
    format!("{rows}\n\nTo see one with its attempts and its body:\n\n    marketctl webhooks show DELIVERY_ID")
}

pub(super) fn delivery(delivery: &DeliveryDocument<'_>) -> String {
    let DeliveryDocument { id, endpoint_id, event, created_at, round, body, .. } = delivery;
    let kind = if delivery.test { "test of " } else { "" };
    let mut parts = vec![
        format!("Delivery {id}, {kind}{event} to endpoint {endpoint_id}, is {}.", status(delivery)),
        format!("Created {created_at}, round {round}. Its body:\n\n    {}", printable(body)),
    ];
    match delivery.attempts {
        [] => parts.push("No attempt has been recorded.".to_owned()),
        attempts => {
            parts.push(table(["ATTEMPT AT", "STATUS", "LATENCY", "ERROR", "ANSWER"], attempts.iter().map(attempt)));
        }
    }
    if delivery.attempts_dropped > 0 {
        parts.push(format!("Older attempts that are not kept: {}.", delivery.attempts_dropped));
    }
    if delivery.status == Status::Held || delivery.failure == Some(Failure::Unacknowledged) {
        parts.push(format!("To send it again:\n\n    marketctl webhooks resend {id}"));
    }
    parts.join("\n\n")
}

fn status(delivery: &DeliveryDocument<'_>) -> String {
    let status = delivery.status.as_str();
    match (delivery.failure, delivery.next_attempt_at, delivery.waits_for) {
        (Some(failure), ..) => format!("{status} ({})", failure.as_str().replace('_', " ")),
        (None, Some(_), Some(WaitsFor::Attempt)) => format!("{status}; an attempt is being made"),
        (None, Some(at), Some(WaitsFor::Turn)) => {
            format!("{status}; an attempt is due since {at} and waits for its turn")
        }
        (None, Some(at), _) => format!("{status}; the next attempt is due at {at}"),
        (None, None, _) => status.to_owned(),
    }
}

fn attempt(attempt: &Attempt) -> [String; 5] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    [
        attempt.at.to_string(),
        or_dash(attempt.status.map(|status| status.to_string())),
        format!("{} ms", attempt.latency_ms),
        or_dash(attempt.error.clone()),
        or_dash(attempt.response.as_deref().map(|answer| answer.chars().take(MAX_ANSWER_CHARS).collect())),
    ]
}
