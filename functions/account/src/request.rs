//! Reads a command: what every command has in common (its version, the user, its name, and who asked), and the
//! parameters of each.

use std::collections::BTreeSet;
use std::str::FromStr;

use admin::audit::Subject;
use admin::webhooks::Recoverable;
use common::closed_enum;
use common::event::EventKind;
use common::ids::{DeliveryId, EndpointId, KeyId, UserId};
use common::reasons::plain;
use common::scope::Scopes;
use common::timestamp::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use webhooks::delivery::Status;
use webhooks::store::MAX_PAGE_ROWS;

use crate::answer::{CommandError, VERSION};

const MAX_ACTOR_BYTES: usize = 128;

closed_enum! {
    /// The name of a command.
    pub enum CommandName {
        KeysCreate = "keys.create",
        KeysList = "keys.list",
        KeysShow = "keys.show",
        KeysRename = "keys.rename",
        KeysRotate = "keys.rotate",
        KeysRevoke = "keys.revoke",
        EndpointsAdd = "endpoints.add",
        EndpointsList = "endpoints.list",
        EndpointsShow = "endpoints.show",
        EndpointsUpdate = "endpoints.update",
        EndpointsEnable = "endpoints.enable",
        EndpointsDisable = "endpoints.disable",
        EndpointsRemove = "endpoints.remove",
        EndpointsRotateSecret = "endpoints.rotate_secret",
        EndpointsTest = "endpoints.test",
        DeliveriesList = "deliveries.list",
        DeliveriesShow = "deliveries.show",
        DeliveriesResend = "deliveries.resend",
        DeliveriesResendAll = "deliveries.resend_all",
    }
}

impl CommandName {
    /// Returns whether the command changes something, or has something sent.
    pub const fn is_change(self) -> bool {
        match self {
            Self::KeysList
            | Self::KeysShow
            | Self::EndpointsList
            | Self::EndpointsShow
            | Self::DeliveriesList
            | Self::DeliveriesShow => false,
            Self::KeysCreate
            | Self::KeysRename
            | Self::KeysRotate
            | Self::KeysRevoke
            | Self::EndpointsAdd
            | Self::EndpointsUpdate
            | Self::EndpointsEnable
            | Self::EndpointsDisable
            | Self::EndpointsRemove
            | Self::EndpointsRotateSecret
            | Self::EndpointsTest
            | Self::DeliveriesResend
            | Self::DeliveriesResendAll => true,
        }
    }
}

/// A command whose parameters are not read yet.
pub(crate) struct Request {
    pub(crate) user_id: UserId,
    pub(crate) command: CommandName,
    pub(crate) parameters: Value,
    /// Who asked, as the marketplace says.
    pub(crate) actor: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope {
    #[serde(rename = "version")]
    _version: u32,
    user_id: UserId,
    command: CommandName,
    #[serde(default)]
    parameters: Map<String, Value>,
    actor: Option<String>,
}

impl Request {
    /// Reads a command up to its parameters. The version comes first, because another one may have other members.
    pub(crate) fn parse(event: Value) -> Result<Self, CommandError> {
        if event["version"] != json!(VERSION) {
            return Err(CommandError::invalid("version", format!("must be {VERSION}")));
        }
        let Envelope { user_id, command, parameters, actor, .. } = read(event)?;
        let is_fit =
            |actor: &String| (1..=MAX_ACTOR_BYTES).contains(&actor.len()) && !actor.chars().any(char::is_control);
        if !actor.as_ref().is_none_or(is_fit) {
            let rule = format!("must have 1 to {MAX_ACTOR_BYTES} bytes and no control characters");
            return Err(CommandError::invalid("actor", rule));
        }
        Ok(Self { user_id, command, parameters: Value::Object(parameters), actor })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoParameters {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateKey {
    pub(crate) name: Option<String>,
    pub(crate) scopes: Scopes,
    pub(crate) expires_at: Option<Timestamp>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OneKey {
    pub(crate) key_id: KeyId,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RenameKey {
    pub(crate) key_id: KeyId,
    pub(crate) name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RotateKey {
    pub(crate) key_id: KeyId,
    /// How long the old key is accepted beside the new one. By default it is revoked at once.
    #[serde(default)]
    pub(crate) overlap_seconds: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddEndpoint {
    pub(crate) url: String,
    pub(crate) events: BTreeSet<EventKind>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OneEndpoint {
    pub(crate) endpoint_id: EndpointId,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateEndpoint {
    pub(crate) endpoint_id: EndpointId,
    pub(crate) url: Option<String>,
    pub(crate) events: Option<BTreeSet<EventKind>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RotateSecret {
    pub(crate) endpoint_id: EndpointId,
    /// Makes the next secret the active one, instead of adding one.
    #[serde(default)]
    pub(crate) activate: bool,
    /// Ends the old secret now, and activates the next one before if that is not done. No secret is added.
    #[serde(default)]
    pub(crate) expire_old: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TestEndpoint {
    pub(crate) endpoint_id: EndpointId,
    pub(crate) event: Option<EventKind>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListDeliveries {
    pub(crate) endpoint_id: EndpointId,
    pub(crate) status: Option<Status>,
    pub(crate) event: Option<EventKind>,
    pub(crate) since: Option<Timestamp>,
    pub(crate) until: Option<Timestamp>,
    pub(crate) cursor: Option<String>,
    /// How many deliveries a page has at most.
    #[serde(default = "default_limit")]
    pub(crate) limit: i32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OneDelivery {
    pub(crate) delivery_id: DeliveryId,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResendDeliveries {
    pub(crate) endpoint_id: EndpointId,
    /// By default, all that can be sent again.
    pub(crate) statuses: Option<BTreeSet<Recoverable>>,
    pub(crate) since: Option<Timestamp>,
    pub(crate) until: Option<Timestamp>,
}

const fn default_limit() -> i32 {
    MAX_PAGE_ROWS
}

/// Reads a JSON object. The error names the member, and the rule that it breaks.
pub(crate) fn read<T: DeserializeOwned>(value: Value) -> Result<T, CommandError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let (path, reason) = (error.path().to_string(), error.inner().to_string());
        // If a member is missing or unknown, its name may stand only in serde's message.
        let named = ["missing field `", "unknown field `"]
            .iter()
            .find_map(|start| reason.strip_prefix(start)?.split('`').next().map(str::to_owned));
        let field = if path == "." { named.unwrap_or_default() } else { path };
        CommandError::invalid(&field, plain(&reason))
    })
}

/// Returns what the parameters name, as far as it can be read.
pub(crate) fn subject(parameters: &Value) -> Subject {
    Subject {
        key_id: id(parameters, "key_id"),
        new_key_id: None,
        endpoint_id: id(parameters, "endpoint_id"),
        delivery_id: id(parameters, "delivery_id"),
        message_id: None,
    }
}

fn id<T: FromStr>(parameters: &Value, name: &str) -> Option<T> {
    parameters[name].as_str()?.parse().ok()
}
