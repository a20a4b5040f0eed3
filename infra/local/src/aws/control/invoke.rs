//! Lambda: the invocation of a function whose caller waits for the answer.

use http::Method;
use serde_json::{Value, json};

use super::names::{Refused, function, is_known, not_found};
use crate::invocations::Invocations;
use crate::switches::{Switches, Trigger};

/// What an invoked function returned, or failed with.
pub(super) type Outcome = Result<Value, Value>;

/// Returns the function that a call invokes, as the call names it.
pub(super) fn invoked<'p>(method: &Method, path: &'p str) -> Option<&'p str> {
    let mut parts = path.split('/').skip(1);
    let parts = [parts.next()?, parts.next()?, parts.next()?, parts.next().unwrap_or_default()];
    match (method, parts) {
        (&Method::POST, ["functions", name, "invocations", ""]) => Some(name),
        _ => None,
    }
}

/// Invokes a function that is named by its name or its ARN, whose colons may be encoded. The alias or the version stands
/// behind the name, or in the query.
pub(super) async fn invoke(
    switches: &Switches,
    invocations: &Invocations,
    (name, query): (&str, &str),
    payload: &[u8],
) -> Result<Outcome, Refused> {
    let qualifier = query.split('&').find_map(|pair| pair.strip_prefix("Qualifier="));
    let named = function(name).filter(|_| qualifier.is_none_or(is_known));
    let function = named.ok_or_else(|| not_found(name))?;
    let is_it = |trigger: Trigger| matches!(trigger, Trigger::Requests(known) if known == function);
    let switch = switches.iter().find(|(trigger, _)| is_it(*trigger)).map(|(_, switch)| switch);
    let pass = switch.map(|switch| switch.try_enter().ok_or_else(throttled)).transpose()?;
    let event = serde_json::from_slice(payload)
        .map_err(|error| ("InvalidRequestContentException", format!("The payload is no JSON: {error}")))?;
    let outcome = invocations.invoke(&function, event).await.ok_or_else(|| not_found(name))?;
    drop(pass);
    Ok(outcome.map_err(|error| json!({ "errorType": "Runtime.Error", "errorMessage": error })))
}

fn throttled() -> Refused {
    ("TooManyRequestsException", "Rate Exceeded.".to_owned())
}
