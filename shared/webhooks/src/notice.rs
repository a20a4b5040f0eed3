//! What the marketplace is told about an endpoint, so that it tells the owner.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::delivery::{Attempt, Delivery};
use crate::endpoint::{Notice, WebhookEndpoint};
use crate::schedule::{ATTEMPTS, Schedule, WARNING_ATTEMPT};
use types::ids::{DeliveryId, EndpointId, NoticeId, UserId};
use types::timestamp::Timestamp;

/// A message to the marketplace about an endpoint (specification 6.9.6 and 6.9.9).
///
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum EndpointNotice {
    /// It was switched off.
    #[serde(rename = "endpoint.disabled")]
    Disabled(Notice),
    /// A delivery to it has been failing for 36 minutes.
    #[serde(rename = "endpoint.failing")]
    Failing(FailingNotice),
    /// It has acknowledged an attempt after that, and no delivery is left that has failed for so long.
    #[serde(rename = "endpoint.recovered")]
    Recovered(RecoveredNotice),
    /// Too many deliveries to it wait, so new ones are held.
    #[serde(rename = "endpoint.full")]
    Full(FullNotice),
}

/// The notice that deliveries to an endpoint fail. There is at most one a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailingNotice {
    /// The same however often the notice is sent, so that duplicates can be dropped.
    pub notice_id: NoticeId,
    pub endpoint_id: EndpointId,
    pub account_id: UserId,
    pub url: String,
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

/// The notice that an endpoint has recovered after a [`FailingNotice`]. There is at most one for each of those.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveredNotice {
    /// The same however often the notice is sent, so that duplicates can be dropped.
    pub notice_id: NoticeId,
    pub endpoint_id: EndpointId,
    pub account_id: UserId,
    pub url: String,
    /// The delivery whose attempt was acknowledged.
    pub delivery_id: DeliveryId,
    /// How many attempts of the delivery's round had failed before.
    pub failed_attempts: u32,
    /// The HTTP status of the acknowledgement.
    pub last_status: Option<u16>,
    /// When the owner was warned.
    pub failing_at: Timestamp,
    pub recovered_at: Timestamp,
}

/// The notice that an endpoint is full. There is at most one a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FullNotice {
    /// The same however often the notice is sent, so that duplicates can be dropped.
    pub notice_id: NoticeId,
    pub endpoint_id: EndpointId,
    pub account_id: UserId,
    pub url: String,
    /// About how many deliveries wait for their first attempt.
    pub waiting: u64,
    /// Since when the oldest of them waits.
    pub waiting_since: Timestamp,
    pub full_at: Timestamp,
}

impl EndpointNotice {
    pub const fn id(&self) -> NoticeId {
        match self {
            Self::Disabled(notice) => notice.notice_id,
            Self::Failing(notice) => notice.notice_id,
            Self::Recovered(notice) => notice.notice_id,
            Self::Full(notice) => notice.notice_id,
        }
    }

    pub const fn endpoint_id(&self) -> EndpointId {
        match self {
            Self::Disabled(notice) => notice.endpoint_id,
            Self::Failing(notice) => notice.endpoint_id,
            Self::Recovered(notice) => notice.endpoint_id,
            Self::Full(notice) => notice.endpoint_id,
        }
    }

    /// Returns when it happened.
    pub const fn at(&self) -> Timestamp {
        match self {
            Self::Disabled(notice) => notice.disabled_at,
            Self::Failing(notice) => notice.failing_at,
            Self::Recovered(notice) => notice.recovered_at,
            Self::Full(notice) => notice.full_at,
        }
    }
}

impl FailingNotice {
    /// Returns the notice that the failure of an attempt calls for, if it calls for one: the attempt must be the one
    /// that falls 36 minutes in or a later one, all of them in the endpoint's epoch, and the owner must not have been
    /// warned in this epoch, or a day ago and the endpoint has recovered since. `delivery` is as it was when it was
    /// claimed.
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
        if delivery.is_test || failed_attempts < WARNING_ATTEMPT || !is_of_epoch {
            return None;
        }
        let number = match endpoint.current_warning() {
            None => 0,
            Some(warning) => warning.next(now)?.number,
        };
        let earlier = usize::try_from(progress.failed_attempts).unwrap_or(usize::MAX);
        let first = progress.attempts.get(progress.attempts.len().saturating_sub(earlier));
        Some(Self {
            notice_id: notice_id(endpoint, "failing", number),
            endpoint_id: endpoint.id,
            account_id: endpoint.account_id,
            url: endpoint.url.clone(),
            delivery_id: delivery.id,
            failed_attempts,
            remaining_attempts: ATTEMPTS - failed_attempts,
            last_status: attempt.status,
            last_error: attempt.error.clone(),
            failing_since: first.unwrap_or(attempt).at,
            failing_at: now,
            disable_due_at: schedule.last_due(failed_attempts, now),
        })
    }
}

impl FullNotice {
    /// Returns the notice that an endpoint is full from now on.
    pub fn new(endpoint: &WebhookEndpoint, waiting: u64, waiting_since: Timestamp, now: Timestamp) -> Self {
        Self {
            notice_id: Uuid::new_v5(&endpoint.id.uuid(), format!("full#{}", now.millis()).as_bytes()).into(),
            endpoint_id: endpoint.id,
            account_id: endpoint.account_id,
            url: endpoint.url.clone(),
            waiting,
            waiting_since,
            full_at: now,
        }
    }
}

impl RecoveredNotice {
    /// Returns the notice that an acknowledged attempt calls for, if it calls for one: the owner must have been warned
    /// in this epoch, and must not have been told since that the endpoint has recovered.
    pub fn after_success(
        endpoint: &WebhookEndpoint,
        delivery: &Delivery,
        attempt: &Attempt,
        now: Timestamp,
    ) -> Option<Self> {
        let warning = endpoint.current_warning().filter(|warning| !warning.is_over && !delivery.is_test)?;
        Some(Self {
            notice_id: notice_id(endpoint, "recovered", warning.number),
            endpoint_id: endpoint.id,
            account_id: endpoint.account_id,
            url: endpoint.url.clone(),
            delivery_id: delivery.id,
            failed_attempts: delivery.progress.failed_attempts,
            last_status: attempt.status,
            failing_at: warning.at,
            recovered_at: now,
        })
    }
}

/// Returns the id of an epoch's notice of this kind with this number, from 0.
fn notice_id(endpoint: &WebhookEndpoint, kind: &str, number: u32) -> NoticeId {
    let number = if number == 0 { String::new() } else { format!("#{number}") };
    Uuid::new_v5(&endpoint.id.uuid(), format!("{kind}#{}{number}", endpoint.epoch).as_bytes()).into()
}
