//! An endpoint: the URL to which an account wants its events delivered.

use std::collections::BTreeSet;

use common::closed_enum;
use common::event::EventKind;
use common::ids::{EndpointId, UserId};
use common::rotation::Secrets;
use common::rows::{Rows, Unreadable};
use common::timestamp::Timestamp;

/// The largest number of endpoints that an account may have (specification 6.11.1).
pub const MAX_ENDPOINTS: u32 = 10;

/// How many trials an endpoint may have in a minute. A trial lets somebody have a request sent to an address of his
/// choice: a test, a test that is sent again, or another URL.
pub const MAX_TRIALS_A_MINUTE: u32 = 5;
/// How many trials an account may have in a minute, with all its endpoints. Adding an endpoint is one, too, so that
/// removing it does not begin anew. So is each command of its owner to send deliveries again.
pub const MAX_TRIALS_OF_ACCOUNT: u32 = 20;

/// A URL to which an account wants its events delivered, and what belongs to it.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookEndpoint {
    pub id: EndpointId,
    pub account_id: UserId,
    /// Checked at registration, and again for each attempt.
    pub url: String,
    /// The events that are delivered to it.
    pub events: BTreeSet<EventKind>,
    pub switch: Switch,
    /// When it was switched off, if it is off.
    pub disabled_at: Option<Timestamp>,
    /// Counts from 1, and grows each time that the endpoint is switched on again or gets another URL. So a conditional
    /// write can tell whether that has happened since the endpoint was read. After a restore it goes on far ahead, because an epoch
    /// that the restore undid may have had its notice.
    pub epoch: u64,
    pub created_at: Timestamp,
    /// Each is sealed under the keyring, for this endpoint only.
    pub secrets: Secrets<String>,
    /// Grows with each change of the secrets. Conditional writes use it.
    pub secret_version: u64,
    /// Whether it is known to respond promptly. If not, its deliveries wait for the drain of its account.
    pub is_prompt: bool,
    /// The latest warning to its owner that deliveries fail, which may belong to an earlier epoch.
    pub warning: Option<Warning>,
    /// When its URL got another host, if no test has reached that host yet.
    pub host_changed_at: Option<Timestamp>,
}

/// A warning to the owner that deliveries to the endpoint fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The epoch to which it belongs.
    pub epoch: u64,
    pub at: Timestamp,
}

/// An account's endpoints. The readable ones come oldest first.
pub type Endpoints = Rows<WebhookEndpoint, UnreadableEndpoint>;

/// An endpoint that this release cannot read. It is there: its events are not done without it, and its deliveries must
/// not end as those of a removed endpoint do.
#[derive(Clone, Debug)]
pub struct UnreadableEndpoint {
    pub id: EndpointId,
    /// The events that it selected, or `None` if they cannot be read either.
    pub events: Option<BTreeSet<EventKind>>,
    pub unreadable: Unreadable,
}

/// Whether an endpoint's deliveries are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Switch {
    /// They are sent.
    On,
    /// They are held.
    Off(DisabledReason),
}

closed_enum! {
    /// Why an endpoint is off.
    pub enum DisabledReason {
        /// Its owner switched it off, or an operator.
        Owner = "owner",
        /// A delivery's last retry failed (specification 6.9.1).
        DeliveriesFailed = "deliveries_failed",
    }
}

impl WebhookEndpoint {
    /// Returns whether its deliveries are sent.
    pub const fn is_on(&self) -> bool {
        matches!(self.switch, Switch::On)
    }

    /// Returns whether a test has to reach its host before a delivery of this time is sent there again.
    pub fn needs_proof(&self, created_at: Timestamp) -> bool {
        self.host_changed_at.is_some_and(|changed_at| created_at <= changed_at)
    }

    /// Returns when its owner was warned last in this epoch, if that has happened.
    pub fn warned_at(&self) -> Option<Timestamp> {
        self.warning.filter(|warning| warning.epoch == self.epoch).map(|warning| warning.at)
    }
}

impl UnreadableEndpoint {
    /// Returns whether it is possible that the endpoint selected this event.
    pub(crate) fn may_select(&self, event: EventKind) -> bool {
        self.events.as_ref().is_none_or(|events| events.contains(&event))
    }
}

impl std::fmt::Debug for WebhookEndpoint {
    /// Shows no secrets, not even sealed ones.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebhookEndpoint").field("id", &self.id).field("switch", &self.switch).finish_non_exhaustive()
    }
}
