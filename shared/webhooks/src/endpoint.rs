//! An endpoint: where an account wants its events.

use std::collections::BTreeSet;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use types::event::EventKind;
use types::ids::{EndpointId, NoticeId, UserId};
use types::rotation::Secrets;
use types::scope::{UnknownName, one_of};
use types::timestamp::Timestamp;

/// How many endpoints an account may have.
pub const MAX_ENDPOINTS: u32 = 10;

/// Where an account wants its events.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Its identifier.
    pub id: EndpointId,
    /// Whose it is.
    pub account_id: UserId,
    /// Where deliveries are sent; checked at registration, and again for each attempt.
    pub url: String,
    /// What it selected.
    pub events: BTreeSet<EventKind>,
    /// Whether deliveries are sent.
    pub switch: Switch,
    /// From 1; grows each time that it is switched on again.
    pub epoch: u64,
    /// When it was added.
    pub created_at: Timestamp,
    /// Its secrets, each sealed.
    pub secrets: Secrets<String>,
    /// Grows with each change of the secrets.
    pub secret_version: u64,
    /// Until then its deliveries keep to the slower lane.
    pub slow_until: Option<Timestamp>,
}

/// Whether deliveries are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Switch {
    /// They are.
    On,
    /// They are held.
    Off(DisabledReason),
}

/// Why an endpoint is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DisabledReason {
    /// Its owner wanted so.
    Owner,
    /// A delivery's last retry failed (specification, section 6).
    DeliveriesFailed,
}

impl Endpoint {
    /// Whether its deliveries are sent.
    pub const fn is_on(&self) -> bool {
        matches!(self.switch, Switch::On)
    }

    /// Whether its deliveries keep to the slower lane.
    pub fn is_slow(&self, now: Timestamp) -> bool {
        self.slow_until.is_some_and(|until| until > now)
    }
}

impl DisabledReason {
    const ALL: [Self; 2] = [Self::Owner, Self::DeliveriesFailed];

    /// The name in the table and on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::DeliveriesFailed => "deliveries_failed",
        }
    }
}

impl FromStr for DisabledReason {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        one_of(&Self::ALL, Self::as_str, text)
    }
}

/// The id of the notice that an endpoint was switched off: one for each time that it had been on.
pub fn notice_id(endpoint: EndpointId, epoch: u64) -> NoticeId {
    Uuid::new_v5(&endpoint.uuid(), epoch.to_string().as_bytes()).into()
}

/// What the marketplace is told, so that it can tell the owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "endpoint.disabled")]
pub struct Notice {
    /// The same however often it is sent.
    pub notice_id: NoticeId,
    /// What was switched off.
    pub endpoint_id: EndpointId,
    /// Whose it is.
    pub account_id: UserId,
    /// Where it led.
    pub url: String,
    /// The delivery whose last retry failed.
    pub delivery_id: types::ids::DeliveryId,
    /// When.
    pub disabled_at: Timestamp,
}

impl std::fmt::Debug for Endpoint {
    /// Sealed or not, secrets are not shown.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("id", &self.id).field("switch", &self.switch).finish_non_exhaustive()
    }
}
