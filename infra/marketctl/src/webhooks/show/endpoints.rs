//! Endpoints as text for people.

use admin::webhooks::EndpointHealth;
use admin::webhooks::document::{EndpointDocument, EndpointWithHealth, EndpointWithSecret, RemovedEndpoint};
use types::ids::UserId;

use crate::text::{minute, table};

pub(in crate::webhooks) fn added(user: UserId, shown: &EndpointWithSecret<'_>) -> String {
    let EndpointDocument { id, url, .. } = shown.endpoint;
    format!(
        "Endpoint {id} of user {user} is ready: {} will be sent to {url}.\n\n{}\n\n\
         Receivers verify deliveries with it. To send a test event:\n\n\
         \x20   marketctl webhooks test {id}",
        events(&shown.endpoint),
        secret_once(shown),
    )
}

pub(in crate::webhooks) fn rotated(shown: &EndpointWithSecret<'_>) -> String {
    let id = shown.endpoint.id;
    format!(
        "Endpoint {id} has a next secret.\n\n{}\n\n\
         From now on, `webhook-signature` has one signature by the present secret and one by the next. `X-Service-Signature`\n\
         stays with the present secret for 24 hours. Once the receivers know the next one, you can switch earlier:\n\n\
         \x20   marketctl webhooks rotate-secret {id} --activate",
        secret_once(shown),
    )
}

pub(in crate::webhooks) fn activated(endpoint: &EndpointDocument<'_>) -> String {
    let id = endpoint.id;
    format!(
        "The newest secret of endpoint {id} signs `X-Service-Signature` from now on. For another 24 hours,\n\
         `webhook-signature` also has a signature by the secret before it. To end that one now:\n\n\
         \x20   marketctl webhooks rotate-secret {id} --expire-old",
    )
}

pub(in crate::webhooks) fn expired(endpoint: &EndpointDocument<'_>) -> String {
    format!("Only the newest secret of endpoint {} signs from now on.", endpoint.id)
}

/// Shows an endpoint and its state.
pub(in crate::webhooks) fn endpoint(shown: &EndpointWithHealth<'_>) -> String {
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

pub(in crate::webhooks) fn changed(endpoint: &EndpointDocument<'_>) -> String {
    let EndpointDocument { id, url, status, .. } = endpoint;
    format!("Endpoint {id} is changed, and still {status}: {} will be sent to {url}.", events(endpoint))
}

pub(in crate::webhooks) fn enabled(endpoint: &EndpointDocument<'_>) -> String {
    let id = endpoint.id;
    format!(
        "Endpoint {id} is enabled: its events are sent from now on.\n\
         Deliveries held meanwhile are not sent by themselves. To see how many there are, and to send them:\n\n\
         \x20   marketctl webhooks resend --endpoint {id} --dry-run\n\
         \x20   marketctl webhooks resend --endpoint {id}"
    )
}

pub(in crate::webhooks) fn disabled(endpoint: &EndpointDocument<'_>) -> String {
    let id = endpoint.id;
    format!(
        "Endpoint {id} is disabled: its events are held for 35 days. To switch it on again:\n\n\
         \x20   marketctl webhooks enable {id}"
    )
}

pub(in crate::webhooks) fn removed(removed: &RemovedEndpoint) -> String {
    let RemovedEndpoint { id, ended_deliveries, unfinished } = removed;
    let rest = if *unfinished { " There are more, which end by themselves: you need not do anything." } else { "" };
    format!("Endpoint {id} is removed. Pending and held deliveries that ended with it: {ended_deliveries}.{rest}")
}

pub(in crate::webhooks) fn endpoints(user: UserId, endpoints: &[EndpointDocument<'_>]) -> String {
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
