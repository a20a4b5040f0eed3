//! Deliveries as text for people.

use admin::webhooks::document::{DeliveryDocument, DeliveryRow, SentDelivery};
use types::ids::EndpointId;
use webhooks::delivery::{Attempt, Failure, Status};

use crate::text::{minute, printable, table};

/// The most characters of an answer that the table shows. The JSON output has all that is stored.
const MAX_ANSWER_CHARS: usize = 60;

pub(in crate::webhooks) fn sent(sent: &SentDelivery) -> String {
    let id = sent.delivery_id;
    format!("Delivery {id} is on its way. To see its result:\n\n    marketctl webhooks show {id}")
}

pub(in crate::webhooks) fn deliveries(endpoint: EndpointId, status: Option<Status>, rows: &[DeliveryRow]) -> String {
    if rows.is_empty() {
        let which = status.map_or_else(String::new, |status| format!(" that are {}", status.as_str()));
        return format!(
            "Endpoint {endpoint} has no deliveries{which}. To send a test event:\n\n    marketctl webhooks test {endpoint}"
        );
    }
    let header = ["DELIVERY ID", "EVENT", "STATUS", "ATTEMPTS", "CREATED", "NEXT ATTEMPT"];
    let rows = rows.iter().map(|row| {
        let event = if row.test { format!("{} (test)", row.event) } else { row.event.to_string() };
        let (created, next) = (minute(Some(row.created_at)), minute(row.next_attempt_at));
        [row.id.to_string(), event, row.status.as_str().to_owned(), row.attempts.to_string(), created, next]
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
    match (delivery.failure, delivery.next_attempt_at) {
        (Some(failure), _) => format!("{status} ({})", failure.as_str().replace('_', " ")),
        (None, Some(at)) => format!("{status}; the next attempt is due at {at}"),
        (None, None) => status.to_owned(),
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
