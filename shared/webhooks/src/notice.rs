//! What the marketplace is told about an endpoint, so that it tells the owner (specification 6.9.5).

use aws_sdk_sqs::Client;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::delivery::{Attempt, Delivery};
use crate::endpoint::WebhookEndpoint;
use crate::schedule::{ATTEMPTS, Schedule, WARNING_ATTEMPT};
use crate::store::WebhookStore;
use common::aws::Missing;
use common::event::EventKind;
use common::ids::{DeliveryId, EndpointId, NoticeId, UserId};
use common::resources::Queue;
use common::runtime::Service;
use common::store::{StoreError, explain};
use common::timestamp::{DAY_MILLIS, Timestamp};

/// A message to the marketplace about an endpoint (specification 6.9.6 and 6.9.8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum EndpointNotice {
    /// It was switched off.
    #[serde(rename = "endpoint.disabled")]
    Disabled(DisabledNotice),
    /// A delivery to it has been failing for 36 minutes.
    #[serde(rename = "endpoint.failing")]
    Failing(FailingNotice),
}

/// What every notice begins with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The same however often the notice is sent, so that duplicates can be dropped.
    pub notice_id: NoticeId,
    pub endpoint_id: EndpointId,
    pub account_id: UserId,
    pub url: String,
}

/// The notice that an endpoint was switched off (specification 6.9.6).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisabledNotice {
    #[serde(flatten)]
    pub about: About,
    /// The delivery whose last retry failed.
    pub delivery_id: DeliveryId,
    /// What it reports. Like the answer below, it is `None` if the notice was lost and made again.
    pub event: Option<EventKind>,
    /// The HTTP status of the last answer, if there was one.
    pub last_status: Option<u16>,
    /// What went wrong with the last attempt.
    pub last_error: Option<String>,
    /// When the endpoint was switched off.
    pub disabled_at: Timestamp,
}

/// The notice that deliveries to an endpoint fail. There is at most one a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailingNotice {
    #[serde(flatten)]
    pub about: About,
    /// The delivery whose attempt failed.
    pub delivery_id: DeliveryId,
    /// How many attempts of the delivery's round have failed, and how many are left.
    pub failed_attempts: u32,
    pub remaining_attempts: u32,
    /// The HTTP status of the latest answer, if there was one.
    pub last_status: Option<u16>,
    /// What went wrong with the latest attempt.
    pub last_error: Option<String>,
    /// When the first attempt of the round was sent.
    pub failing_since: Timestamp,
    /// When the latest failure was recorded.
    pub failing_at: Timestamp,
    /// When the delivery's last attempt is due. If that fails too, the endpoint is switched off.
    pub disable_due_at: Timestamp,
}

impl About {
    pub fn new(notice_id: NoticeId, endpoint: &WebhookEndpoint) -> Self {
        let WebhookEndpoint { id, account_id, url, .. } = endpoint;
        Self { notice_id, endpoint_id: *id, account_id: *account_id, url: url.clone() }
    }
}

impl EndpointNotice {
    pub const fn about(&self) -> &About {
        match self {
            Self::Disabled(DisabledNotice { about, .. }) | Self::Failing(FailingNotice { about, .. }) => about,
        }
    }

    /// Returns when it happened.
    pub const fn at(&self) -> Timestamp {
        match self {
            Self::Disabled(notice) => notice.disabled_at,
            Self::Failing(notice) => notice.failing_at,
        }
    }
}

impl DisabledNotice {
    /// Returns the notice that an endpoint is switched off now, because this is how a delivery's last attempt ended.
    pub fn new(endpoint: &WebhookEndpoint, delivery: &Delivery, last: &Attempt, now: Timestamp) -> Self {
        Self {
            about: About::new(disabled_notice_id(endpoint.id, endpoint.epoch), endpoint),
            delivery_id: delivery.id,
            event: Some(delivery.event),
            last_status: last.status,
            last_error: last.error.clone(),
            disabled_at: now,
        }
    }
}

impl FailingNotice {
    /// Returns the notice that the failure of an attempt calls for, if it calls for one: the attempt must be the one
    /// that falls 36 minutes in or a later one, all of them in the endpoint's epoch, and the owner must not have been
    /// warned in this epoch within a day. `delivery` is as it was when it was claimed.
    pub fn after_failure(
        endpoint: &WebhookEndpoint,
        delivery: &Delivery,
        attempt: &Attempt,
        schedule: Schedule,
        now: Timestamp,
    ) -> Option<Self> {
        let progress = &delivery.progress;
        let failed_attempts = progress.failed_attempts + 1;
        let is_of_epoch = progress.epoch == Some(endpoint.epoch);
        let is_warned = endpoint.warned_at().is_some_and(|at| at.plus_millis(DAY_MILLIS) > now);
        if delivery.is_test || failed_attempts < WARNING_ATTEMPT || !is_of_epoch || is_warned {
            return None;
        }
        let id = Uuid::new_v5(&endpoint.id.uuid(), format!("failing#{}#{}", endpoint.epoch, now.millis()).as_bytes());
        let earlier = usize::try_from(progress.failed_attempts).unwrap_or(usize::MAX);
        let first = progress.attempts.get(progress.attempts.len().saturating_sub(earlier));
        Some(Self {
            about: About::new(id.into(), endpoint),
            delivery_id: delivery.id,
            failed_attempts,
            remaining_attempts: ATTEMPTS.saturating_sub(failed_attempts),
            last_status: attempt.status,
            last_error: attempt.error.clone(),
            failing_since: first.unwrap_or(attempt).at,
            failing_at: now,
            disable_due_at: schedule.last_due(failed_attempts, now),
        })
    }
}

/// Returns the id of the notice that an endpoint was switched off. Each epoch has one notice, whoever sends it and
/// however often.
pub fn disabled_notice_id(endpoint: EndpointId, epoch: u64) -> NoticeId {
    Uuid::new_v5(&endpoint.uuid(), epoch.to_string().as_bytes()).into()
}

/// Sends notices from the table to a queue that drops duplicates.
#[derive(Clone)]
pub struct Notices {
    store: WebhookStore,
    client: Client,
    queue_url: String,
}

impl Notices {
    /// Sends the table's notices to the queue that the environment names. A function can start without that queue: a
    /// notice that cannot be sent stays in the table, and `sweep` tries again.
    pub fn from_service(service: &Service<'_>, store: WebhookStore) -> Result<Self, Missing> {
        let (client, [queue_url]) =
            service.optionally(|service| common::queues::from_service(service, [Queue::Notices]))?;
        Ok(Self { store, client, queue_url })
    }

    /// Sends a notice that has not been sent, then marks it as sent. After a crash between the two it is sent again.
    pub async fn send(&self, id: NoticeId) -> Result<(), StoreError> {
        let Some(notice) = self.store.unsent_notice(id).await? else { return Ok(()) };
        let request = self.client.send_message().queue_url(&self.queue_url);
        let request = request.message_body(serde_json::to_string(&notice)?);
        let request = request.message_group_id(notice.about().endpoint_id.to_string());
        let request = request.message_deduplication_id(notice.about().notice_id.to_string());
        request.send().await.map_err(|error| StoreError::Unavailable(explain(&error)))?;
        self.store.notice_sent(id).await
    }
}
