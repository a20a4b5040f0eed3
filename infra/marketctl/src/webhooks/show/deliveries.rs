//! Deliveries as text for people.

use admin::webhooks::document::{DeliveryDocument, DeliveryRow, SentDelivery, WaitsFor};
use webhooks::delivery::{Attempt, Failure, Status};

use crate::cli::ListDeliveries;
use crate::text::{minute, printable, table};

/// The most characters of an answer that the table shows. The JSON output has all that is stored.
const MAX_ANSWER_CHARS: usize = 60;

pub(in crate::webhooks) fn sent(sent: &SentDelivery) -> String {
    let id = sent.delivery_id;
    format!("Delivery {id} is on its way. To see its result:\n\n    marketctl webhooks show {id}")
}

pub(in crate::webhooks) fn deliveries(list: &ListDeliveries, rows: &[DeliveryRow]) -> String {
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

pub(in crate::webhooks) fn delivery(delivery: &DeliveryDocument<'_>) -> String {
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
