//! The audit line: who changed which key, endpoint, delivery or dead letter of whom. The account function and `marketctl` write the
//! same line, so that one query of the logs finds the changes of both.

use common::ids::{DeliveryId, EndpointId, KeyId, MessageId, UserId};
use common::logging::AUDIT;

/// The member `outcome` after a command that did what it was to do. After an error it is the error's code.
pub const DONE: &str = "done";
/// The member `outcome` if no answer told whether the change was made.
pub const IN_DOUBT: &str = "in_doubt";

/// What a command is about. A new key or endpoint is known only once it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    pub key_id: Option<KeyId>,
    /// The key that replaces `key_id`.
    pub new_key_id: Option<KeyId>,
    pub endpoint_id: Option<EndpointId>,
    pub delivery_id: Option<DeliveryId>,
    /// A dead letter.
    pub message_id: Option<MessageId>,
}

/// A change that somebody asked for. It has ids and names alone, so that no secret can get into the line.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// Who asked, as far as it is known: what the marketplace says, or an operator's identity in AWS.
    pub actor: Option<&'a str>,
    /// Whose key, endpoint or delivery it is, if it is known.
    pub user_id: Option<UserId>,
    /// The command's name, such as `keys.create`.
    pub command: &'a str,
    pub subject: Subject,
}

impl From<KeyId> for Subject {
    fn from(id: KeyId) -> Self {
        Self { key_id: Some(id), ..Self::default() }
    }
}

impl From<EndpointId> for Subject {
    fn from(id: EndpointId) -> Self {
        Self { endpoint_id: Some(id), ..Self::default() }
    }
}

impl From<DeliveryId> for Subject {
    fn from(id: DeliveryId) -> Self {
        Self { delivery_id: Some(id), ..Self::default() }
    }
}

impl Change<'_> {
    /// Writes the line. Members that are not known are left out.
    pub fn log(&self, outcome: &str) {
        let Self { actor, user_id, command, subject } = *self;
        let Subject { key_id, new_key_id, endpoint_id, delivery_id, message_id } = subject;
        tracing::info!(
            target: AUDIT,
            actor,
            user_id = user_id.map(tracing::field::display),
            command,
            key_id = key_id.map(tracing::field::display),
            new_key_id = new_key_id.map(tracing::field::display),
            endpoint_id = endpoint_id.map(tracing::field::display),
            delivery_id = delivery_id.map(tracing::field::display),
            message_id = message_id.map(tracing::field::display),
            outcome,
            "audit"
        );
    }
}
