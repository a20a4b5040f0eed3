//! Sends the deliveries of an endpoint again in bulk, after its receiver was away.
//!
//! A delivery that was sent again is pending or delivered, so it is no longer one of those that a recovery looks for. A
//! recovery that was interrupted is therefore repeated, and sends only what is left. Two at a time share the work: each
//! new round begins only if the delivery is still as it was seen.

use std::collections::BTreeSet;
use std::time::Duration;

use super::deliveries::RESENDABLE_FOR_MILLIS;
use super::{WebhookAdmin, WebhookAdminError};
use platform::rows::Unreadable;
use types::closed_enum;
use types::ids::{DeliveryId, EndpointId};
use types::timestamp::Timestamp;
use webhooks::delivery::{Delivery, Status};
use webhooks::endpoint::WebhookEndpoint;
use webhooks::store::Span;

/// How many deliveries are sent again at once. SQS takes no more messages in one call.
const CHUNK: usize = 10;
/// The pause after each ten. It makes twenty deliveries a second at most, twice what one instance of `ingest` lets into
/// the first lane for an account. That brings back a day with an event a second in 72 minutes, and leaves most of the
/// retry lane to others.
const PAUSE: Duration = Duration::from_millis(500);
/// How many of the deliveries that were sent again may be pending. At twenty a second, more than that means that the
/// receiver fails or does not keep up, or that the queue is behind.
const MAX_PENDING: usize = 50;
/// The further pause after each ten while more are pending. It makes one delivery a second. The recovery never stops
/// altogether, because deliveries that the receiver never accepts stay pending for 33 hours.
const LONG_PAUSE: Duration = Duration::from_secs(10);
/// How many of the deliveries that were sent last are watched. One read takes no more (DynamoDB's limit).
const MAX_WATCHED: usize = 100;

closed_enum! {
    /// A status whose deliveries a recovery can send again. Pending ones are sent anyway, and delivered ones have
    /// arrived.
    pub enum Recoverable {
        Held = "held",
        Failed = "failed",
    }
}

/// Which deliveries of an endpoint a recovery sends again. Tests by the owner are never among them.
#[derive(Clone, Debug)]
pub struct Selection {
    pub statuses: BTreeSet<Recoverable>,
    /// Only deliveries that were created at this time or later.
    pub since: Option<Timestamp>,
    /// Only deliveries that were created before this time.
    pub until: Option<Timestamp>,
}

/// The deliveries that a selection finds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    pub held: u64,
    pub failed: u64,
    /// When the first and the last of them were created.
    pub span: Option<Span>,
    /// Deliveries that cannot be read, so that their status is unknown.
    pub unreadable: Vec<Unreadable>,
}

/// What a recovery did.
#[derive(Clone, Debug, Default)]
pub struct Recovery {
    /// What there was to do.
    pub found: Survey,
    /// How many were sent again.
    pub sent: u64,
    /// How many were not as they had been found any more. Most of these somebody else sent again meanwhile.
    pub changed: u64,
    /// How many have had the highest number of rounds, and cannot be sent again.
    pub too_many_rounds: u64,
    /// How many cannot be sent again because they are no longer kept.
    pub expired: u64,
    /// How many are left, because the recovery was stopped.
    pub left: u64,
    /// Why it stopped before the end: the endpoint was switched off or removed, or a call failed.
    pub stopped_by: Option<WebhookAdminError>,
}

/// How far a recovery is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryProgress {
    /// The number of deliveries that were found.
    Counting { found: u64 },
    /// The number of deliveries that were sent again or skipped, of those that were found.
    Sending { done: u64, of: u64 },
    /// The same. It goes on slowly, because the deliveries that were sent pile up.
    Slowed { done: u64, of: u64 },
}

impl WebhookAdmin {
    /// Counts the deliveries of a selection, and changes nothing. The endpoint may be off or removed. Calls `report`
    /// after each page.
    pub async fn survey(
        &self,
        id: EndpointId,
        selection: &Selection,
        report: impl Fn(RecoveryProgress),
    ) -> Result<Survey, WebhookAdminError> {
        self.store.owner_of(id).await?.ok_or(WebhookAdminError::UnknownEndpoint(id))?;
        let span = selection.span(self.clock.now())?;
        let (mut survey, mut from) = (Survey::default(), None);
        loop {
            let page = self.store.deliveries_within(id, span, from).await?;
            for delivery in &page.deliveries {
                survey.add(selection, delivery);
            }
            survey.unreadable.extend(page.unreadable);
            report(RecoveryProgress::Counting { found: survey.total() });
            from = page.next;
            if from.is_none() {
                return Ok(survey);
            }
        }
    }

    /// Sends the deliveries of a selection again, oldest first and paced. The endpoint must be on. Stops once it is
    /// switched off or removed: then the rest stays as it is. The index that finds the deliveries may lag a little, so
    /// one that was held or failed a moment ago may be left out.
    pub async fn recover(
        &self,
        id: EndpointId,
        selection: &Selection,
        report: impl Fn(RecoveryProgress),
    ) -> Result<Recovery, WebhookAdminError> {
        let endpoint = self.find(id).await?;
        self.require_on(endpoint.account_id, id).await?;
        let found = Box::pin(self.survey(id, selection, &report)).await?;
        let Some(span) = found.span else { return Ok(Recovery { found, ..Recovery::default() }) };
        let mut recovery = Recovery { found, ..Recovery::default() };
        let sent = Box::pin(self.resend_within(&endpoint, selection, span, &mut recovery, &report)).await;
        Ok(recovery.ended_with(sent))
    }

    async fn resend_within(
        &self,
        endpoint: &WebhookEndpoint,
        selection: &Selection,
        span: Span,
        recovery: &mut Recovery,
        report: impl Fn(RecoveryProgress),
    ) -> Result<(), WebhookAdminError> {
        let (mut watched, mut since_pause, mut from) = (Vec::new(), 0, None);
        loop {
            let page = self.store.deliveries_within(endpoint.id, span, from).await?;
            let selected = page.deliveries.into_iter().filter(|delivery| selection.status(delivery).is_some());
            let selected: Vec<Delivery> = selected.collect();
            for chunk in selected.chunks(CHUNK) {
                if since_pause + chunk.len() > CHUNK {
                    self.pace(&mut watched, recovery, &report).await?;
                    since_pause = 0;
                }
                since_pause += chunk.len();
                self.require_on(endpoint.account_id, endpoint.id).await?;
                watched.extend(self.resend_chunk(chunk, recovery).await?);
                report(RecoveryProgress::Sending { done: recovery.done(), of: recovery.found.total() });
            }
            from = page.next;
            if from.is_none() {
                return Ok(());
            }
        }
    }

    /// Begins a new round of each delivery, one after the other, and then sends their messages. A message that cannot be
    /// sent now is sent by a sweep. Returns the deliveries that were sent again.
    async fn resend_chunk(
        &self,
        chunk: &[Delivery],
        recovery: &mut Recovery,
    ) -> Result<Vec<DeliveryId>, WebhookAdminError> {
        let (mut ids, mut begun) = (Vec::with_capacity(chunk.len()), Ok(()));
        if let Some(seen) = chunk.first() {
            let now = self.clock.now();
            self.store.call_drain_by(seen.account_id, now, now).await?;
        }
        for seen in chunk {
            match self.begin_round(seen).await {
                Ok(()) => ids.push(seen.id),
                Err(WebhookAdminError::Changed | WebhookAdminError::Busy(_)) => recovery.changed += 1,
                Err(WebhookAdminError::TooManyRounds(_)) => recovery.too_many_rounds += 1,
                Err(WebhookAdminError::UnknownDelivery(_)) => recovery.expired += 1,
                Err(error) => {
                    begun = Err(error);
                    break;
                }
            }
        }
        recovery.sent += ids.len() as u64;
        if let Some(seen) = chunk.first() {
            self.drains.call(seen.account_id, self.clock.now()).await?;
        }
        begun.map(|()| ids)
    }

    /// Waits before the next chunk, and longer if too many of the deliveries that were sent last are still pending.
    async fn pace(
        &self,
        watched: &mut Vec<DeliveryId>,
        recovery: &Recovery,
        report: impl Fn(RecoveryProgress),
    ) -> Result<(), WebhookAdminError> {
        tokio::time::sleep(PAUSE).await;
        watched.drain(..watched.len().saturating_sub(MAX_WATCHED));
        let pending = self.store.pending_among(watched).await?;
        watched.retain(|id| pending.contains(id));
        if watched.len() > MAX_PENDING {
            report(RecoveryProgress::Slowed { done: recovery.done(), of: recovery.found.total() });
            tokio::time::sleep(LONG_PAUSE).await;
        }
        Ok(())
    }
}

impl Selection {
    /// Returns the span of the deliveries that can still be sent again.
    fn span(&self, now: Timestamp) -> Result<Span, WebhookAdminError> {
        if let (Some(since), Some(until)) = (self.since, self.until)
            && since >= until
        {
            return Err(WebhookAdminError::Invalid { field: "since", reason: "must be before until".to_owned() });
        }
        let kept = now.plus_millis(1 - RESENDABLE_FOR_MILLIS);
        let last = self.until.map_or(Timestamp::from_millis(i64::MAX), |until| until.plus_millis(-1));
        Ok(Span { first: self.since.map_or(kept, |since| since.max(kept)), last })
    }

    /// Returns the status of a delivery if it is one of those that are sent again.
    fn status(&self, delivery: &Delivery) -> Option<Recoverable> {
        let status = match delivery.progress.status {
            Status::Held => Recoverable::Held,
            Status::Failed => Recoverable::Failed,
            Status::Pending | Status::Delivered => return None,
        };
        (!delivery.is_test && self.statuses.contains(&status)).then_some(status)
    }
}

impl Survey {
    /// Returns how many there are.
    pub const fn total(&self) -> u64 {
        self.held + self.failed
    }

    /// Counts a delivery if it belongs to the selection. They come oldest first.
    fn add(&mut self, selection: &Selection, delivery: &Delivery) {
        let Some(status) = selection.status(delivery) else { return };
        match status {
            Recoverable::Held => self.held += 1,
            Recoverable::Failed => self.failed += 1,
        }
        let last = delivery.created_at;
        self.span = Some(Span { first: self.span.map_or(last, |span| span.first), last });
    }
}

impl Recovery {
    /// Returns how many of the deliveries were sent again or skipped.
    const fn done(&self) -> u64 {
        self.sent + self.changed + self.too_many_rounds + self.expired
    }

    /// Accounts for the deliveries that were found and not met any more. If everything was read, somebody else has
    /// changed them. Otherwise they are left.
    fn ended_with(mut self, result: Result<(), WebhookAdminError>) -> Self {
        let rest = self.found.total().saturating_sub(self.done());
        match result {
            Ok(()) => self.changed += rest,
            Err(error) => (self.left, self.stopped_by) = (rest, Some(error)),
        }
        self
    }
}
