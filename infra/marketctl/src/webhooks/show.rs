//! Endpoints and deliveries as text for people.

use admin::webhooks::EndpointHealth;
use admin::webhooks::document::{
    DeliveryDocument, DeliveryOfUser, DeliveryRow, EndpointDocument, EndpointOfUser, EndpointWithHealth,
    EndpointWithSecret, RemovedEndpoint, SentDelivery, WaitsFor,
};
use common::ids::UserId;
use terminal::{details, printable, second, state, table};
use webhooks::ATTEMPTS;
use webhooks::delivery::{Attempt, Failure, Status};
use webhooks::endpoint::DisabledReason;

use crate::cli::ListDeliveries;

/// The most characters of an answer that the table shows. The JSON output has all that is stored.
const MAX_ANSWER_CHARS: usize = 60;
const ENDPOINT_COLUMNS: [&str; 8] =
    ["ENDPOINT ID", "URL", "STATUS", "PENDING", "HELD", "FAILED", "LAST ERROR", "EVENTS"];

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

pub(super) fn rotated(shown: &EndpointWithSecret<'_>, voids_another: bool) -> String {
    let id = shown.endpoint.id;
    let voided = if voids_another {
        " The next secret that you were shown before is void: it signs nothing from now on."
    } else {
        ""
    };
    format!(
        "Endpoint {id} has a next secret.{voided}\n\n{}\n\n\
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
pub(super) fn endpoint(of_user: &EndpointOfUser<EndpointWithHealth<'_>>) -> String {
    let EndpointOfUser { user_id, endpoint: shown, .. } = of_user;
    let EndpointWithHealth { endpoint, health } = shown;
    let health = health.clone().unwrap_or_default();
    let yes_or_no = |is_so: bool| if is_so { "yes" } else { "no" }.to_owned();
    details([
        ("Endpoint", endpoint.id.to_string()),
        ("User", user_id.to_string()),
        ("URL", endpoint.url.to_owned()),
        ("Events", events(endpoint)),
        ("Status", endpoint_status(shown)),
        ("Created", second(Some(endpoint.created_at))),
        ("Pending deliveries", health.pending.to_string()),
        ("Of them, due now", health.waiting.to_string()),
        ("Due since", second(health.oldest_waiting_at)),
        ("Held deliveries", health.held.to_string()),
        ("Failed deliveries", health.failed.to_string()),
        ("Last acknowledged", second(health.last_success_at)),
        ("Last failed", second(health.last_failure_at)),
        ("Last error", health.last_error.clone().unwrap_or_else(|| "-".to_owned())),
        ("Will be switched off", second(health.switch_off_at)),
        ("Owner is warned", yes_or_no(health.warned)),
        ("Slow or new", yes_or_no(health.slow)),
        ("Next secret active", second(endpoint.next_secret_active_at)),
        ("Old secret valid to", second(endpoint.old_secret_valid_until)),
    ])
}

/// Returns the status of an endpoint, and what is the matter with it.
fn endpoint_status(shown: &EndpointWithHealth<'_>) -> String {
    let EndpointWithHealth { endpoint, health } = shown;
    let failing = health.as_ref().and_then(|health| health.failing_since.zip(health.failed_attempts));
    match (endpoint.disabled_reason, failing) {
        (Some(reason), _) => {
            let reason = match reason {
                DisabledReason::Owner => "by owner or operator",
                DisabledReason::DeliveriesFailed => "deliveries failed",
            };
            let since = endpoint.disabled_at.map(|at| format!(" since {}", second(Some(at))));
            format!("{} ({reason}){}", endpoint.status, since.unwrap_or_default())
        }
        (None, Some((since, failed))) => {
            format!("failing since {}, attempt {failed} of {ATTEMPTS}", second(Some(since)))
        }
        _ => endpoint.status.to_owned(),
    }
}

pub(super) fn changed(endpoint: &EndpointDocument<'_>) -> String {
    let EndpointDocument { id, url, status, .. } = endpoint;
    format!(
        "Endpoint {id} is changed, and still {status}: {} will be sent to {url}. To send a test event:\n\n    \
         marketctl webhooks test {id}",
        events(endpoint)
    )
}

pub(super) fn enabled(endpoint: &EndpointDocument<'_>) -> String {
    let id = endpoint.id;
    format!(
        "Endpoint {id} is enabled: its events are sent from now on.\n\
         Deliveries that were held or failed meanwhile are not sent by themselves. To see how many there are, and to send them:\n\n\
         \x20   marketctl webhooks resend --endpoint {id} --dry-run\n\
         \x20   marketctl webhooks resend --endpoint {id}"
    )
}

pub(super) fn disabled(endpoint: &EndpointDocument<'_>) -> String {
    let id = endpoint.id;
    format!(
        "Endpoint {id} is disabled: its events are held for 35 days, and what is pending once it is due. To switch it on again:\n\n\
         \x20   marketctl webhooks enable {id}"
    )
}

pub(super) fn removed(removed: &RemovedEndpoint) -> String {
    let RemovedEndpoint { id, ended_deliveries, unfinished } = removed;
    let rest = if *unfinished { " There are more, which end by themselves: you need not do anything." } else { "" };
    format!("Endpoint {id} is removed. Pending and held deliveries that ended with it: {ended_deliveries}.{rest}")
}

pub(super) fn endpoints(user: Option<UserId>, endpoints: &[EndpointOfUser<EndpointWithHealth<'_>>]) -> String {
    if endpoints.is_empty() {
        let none =
            user.map_or_else(|| "There are no endpoints.".to_owned(), |user| format!("User {user} has no endpoints."));
        let user = user.map_or_else(|| "UUID".to_owned(), |user| user.to_string());
        return format!(
            "{none} Add one:\n\n    marketctl webhooks add --user {user} --url https://… --event listing.sold"
        );
    }
    let cells = |row: &EndpointOfUser<EndpointWithHealth<'_>>| {
        let EndpointWithHealth { endpoint, health } = &row.endpoint;
        let known = |shown: fn(&EndpointHealth) -> Option<String>| health.as_ref().and_then(shown);
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let pending = or_dash(known(|health| Some(health.pending.to_string())));
        let held = or_dash(known(|health| Some(health.held.to_string())));
        let failed = or_dash(known(|health| Some(health.failed.to_string())));
        let last_error = or_dash(known(|health| health.last_error.clone()));
        let status = endpoint_status(&row.endpoint);
        [endpoint.id.to_string(), endpoint.url.to_owned(), status, pending, held, failed, last_error, events(endpoint)]
    };
    let rows = if user.is_some() {
        table(ENDPOINT_COLUMNS, endpoints.iter().map(cells))
    } else {
        let [id, url, status, pending, held, failed, error, events] = ENDPOINT_COLUMNS;
        table(
            ["USER ID", id, url, status, pending, held, failed, error, events],
            endpoints.iter().map(|row| {
                let [id, url, status, pending, held, failed, error, events] = cells(row);
                [row.user_id.to_string(), id, url, status, pending, held, failed, error, events]
            }),
        )
    };
    match endpoints.iter().find(|row| row.endpoint.endpoint.disabled_reason.is_some()) {
        Some(off) => {
            format!("{rows}\n\nTo switch one on again:\n\n    marketctl webhooks enable {}", off.endpoint.endpoint.id)
        }
        None => rows,
    }
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

pub(super) fn deliveries(list: &ListDeliveries, rows: &[DeliveryOfUser<DeliveryRow>], is_cut: bool) -> String {
    let ListDeliveries { id, user, status, event, since, until, about, .. } = list;
    if rows.is_empty() {
        let status = status.map_or_else(String::new, |status| format!(" that are {}", status.as_str()));
        let is_part = event.is_some() || since.is_some() || until.is_some() || about.is_some();
        let which = if is_part { " of this kind" } else { "" };
        return match (id, user) {
            (Some(id), _) => format!(
                "Endpoint {id} has no deliveries{which}{status}. To send a test event:\n\n    marketctl webhooks test {id}"
            ),
            (None, Some(user)) => format!("The endpoints of user {user} have no deliveries{which}{status}."),
            (None, None) => format!("There are no deliveries{which}{status}."),
        };
    }
    let header = ["DELIVERY ID", "EVENT", "STATUS", "ATTEMPTS", "CREATED", "NEXT ATTEMPT", "WAITS FOR"];
    let count = rows.len();
    let shows_waits = id.is_some() && rows.iter().any(|row| row.delivery.waits_for.is_some());
    let rows = if id.is_some() {
        table(header, rows.iter().map(|row| delivery_cells(&row.delivery)))
    } else {
        let [id, event, status, attempts, created, next, _] = header;
        table(
            [id, "ENDPOINT ID", "USER ID", event, status, attempts, created, next],
            rows.iter().map(|DeliveryOfUser { user_id, delivery, .. }| {
                let [id, event, status, attempts, created, next, _] = delivery_cells(delivery);
                let [endpoint, user] = [delivery.endpoint_id.to_string(), user_id.to_string()];
                [id, endpoint, user, event, status, attempts, created, next]
            }),
        )
    };
    let more = if is_cut {
        format!(
            "\n\nThese are the newest {count}. --limit lists more; --status, --event, --since and --about find some."
        )
    } else {
        String::new()
    };
    let legend = if shows_waits {
        "\n\nWAITS FOR: attempt, it is being made; turn, it is due, and others come first; retry, until NEXT ATTEMPT."
    } else {
        ""
    };
    format!(
        "{rows}{legend}{more}\n\nTo see one with its attempts and its body:\n\n    marketctl webhooks show DELIVERY_ID"
    )
}

fn delivery_cells(row: &DeliveryRow) -> [String; 7] {
    let event = if row.test { format!("{} (test)", row.event) } else { row.event.to_string() };
    let (created, next) = (second(Some(row.created_at)), second(row.next_attempt_at));
    let waits_for = row.waits_for.map_or("-", WaitsFor::as_str).to_owned();
    [row.id.to_string(), event, row.status.as_str().to_owned(), row.attempts.to_string(), created, next, waits_for]
}

/// Shows a delivery on one line, for a list that goes on.
pub(super) fn delivery_line(list: &ListDeliveries, row: &DeliveryRow) -> String {
    let [id, event, status, attempts, created, next, _] = delivery_cells(row);
    let next = if next == "-" { String::new() } else { format!("  next at {next}") };
    let endpoint = if list.id.is_some() { String::new() } else { format!("  {}", row.endpoint_id) };
    format!("{created}  {id}{endpoint}  {event:<18}  {}  attempts: {attempts}{next}", state(&status))
}

pub(super) fn delivery(shown: &DeliveryOfUser<DeliveryDocument<'_>>) -> String {
    let DeliveryOfUser { user_id, delivery, .. } = shown;
    let DeliveryDocument { id, endpoint_id, event, created_at, round, body, .. } = delivery;
    let kind = if delivery.test { "test of " } else { "" };
    let mut parts = vec![
        format!("Delivery {id}, {kind}{event} to endpoint {endpoint_id} of user {user_id}, is {}.", status(delivery)),
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
