//! What every command has in common: its version, the user, its name, and who asked.

use common::closed_enum;
use common::ids::UserId;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::error::CommandError;
use crate::parameters::read;

/// The only version of commands and answers so far.
pub(crate) const VERSION: u32 = 1;
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
        if actor.as_ref().is_some_and(|actor| actor.is_empty() || actor.len() > MAX_ACTOR_BYTES) {
            return Err(CommandError::invalid("actor", format!("must have 1 to {MAX_ACTOR_BYTES} bytes")));
        }
        Ok(Self { user_id, command, parameters: Value::Object(parameters), actor })
    }
}
