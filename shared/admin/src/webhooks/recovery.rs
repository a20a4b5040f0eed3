//! Sends the deliveries of an endpoint again in bulk, after its receiver was away.
//!
//! Each of them begins a new round, and so waits for the drain of the account, which makes ten attempts at a time. Only so
//! many may wait. So new events are not kept behind all that an outage has left.
//!
//! A delivery that was sent again is due at once or delivered, so it is no longer one of those that a recovery looks for. A
//! recovery that was interrupted is therefore repeated, and sends only what is left. Two at a time share the work: each
//! new round begins only if the delivery is still as it was seen.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::deliveries::{RESENDABLE_FOR_MILLIS, ResentBy, span};
use super::{WebhookAdmin, WebhookAdminError};
use common::closed_enum;
use common::ids::EndpointId;
use common::rows::Unreadable;
use common::timestamp::Timestamp;
use webhooks::delivery::{Delivery, Status};
use webhooks::endpoint::WebhookEndpoint;
use webhooks::store::{Span, StartKey, WebhookStore};

/// How many deliveries of an endpoint may wait for the first attempt of a round. While there are as many, no more are
/// sent again. The index that counts them may lag, so it may be a few more.
const MAX_WAITING: u64 = 1_000;
/// How many deliveries are sent again before the endpoint is looked at once more.
const CHUNK: u64 = 10;
/// How long to wait before the waiting deliveries are counted again.
const PAUSE: Duration = Duration::from_secs(1);
/// How many deliveries that are left are counted.
const MAX_LEFT: u64 = 100_000;
/// A pending delivery whose next attempt is due within this time is left alone.
const SOON_MILLIS: i64 = 5 * 60 * 1_000;

closed_enum! {
    /// A status whose deliveries a recovery can send again.
    pub enum Recoverable {
        Held = "held",
        Failed = "failed",
        /// Those whose next attempt is more than five minutes away. So a recovery that is repeated over and over, while
        /// the receiver still fails, makes no more attempts than the first steps of the schedule.
        Pending = "pending",
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
    pub pending: u64,
    /// When the first and the last of them were created.
    pub span: Option<Span>,
    /// Deliveries that cannot be read.
    pub unreadable: Vec<Unreadable>,
}

/// What a recovery did.
#[derive(Clone, Debug, Default)]
pub struct Recovery {
    /// What there was to do. A recovery whose time is limited does not count it before: it names only what it could not
    /// read.
    pub found: Survey,
    /// How many were sent again.
    pub sent: u64,
    /// How many were not as they had been found any more. Most of these somebody else sent again meanwhile.
    pub changed: u64,
    /// How many have had the highest number of rounds, and cannot be sent again.
    pub too_many_rounds: u64,
    /// How many have reached the bound of rounds that owners can begin on a day.
    pub too_many_rounds_today: u64,
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
    /// The same. It waits until fewer of the endpoint's deliveries wait.
    Slowed { done: u64, of: u64 },
}

/// The deliveries of a selection: those that are held or failed, oldest first, and then the pending ones. Most of what is
/// pending is not selected, so reading it must not keep the others waiting.
struct Selected {
    endpoint: EndpointId,
    span: Span,
    /// One list for each status.
    lists: Vec<SelectedList>,
    unreadable: Vec<Unreadable>,
}

struct SelectedList {
    status: Status,
    found: VecDeque<Delivery>,
    next: Option<StartKey>,
    is_read: bool,
}

impl WebhookAdmin {
    /// Counts the deliveries of a selection, and changes nothing. The endpoint may be off or removed. Calls `report`
    /// again and again meanwhile.
    pub async fn survey(
        &self,
        id: EndpointId,
        selection: &Selection,
        report: impl Fn(RecoveryProgress),
    ) -> Result<Survey, WebhookAdminError> {
        self.store.owner_of(id).await?.ok_or(WebhookAdminError::UnknownEndpoint(id))?;
        let mut selected = Selected::new(id, selection, self.clock.now())?;
        let mut survey = Survey::default();
        while selected.read_on(&self.store, self.clock.now()).await? {
            for delivery in selected.take(CHUNK) {
                survey.add(&delivery);
            }
            report(RecoveryProgress::Counting { found: survey.total() });
        }
        Ok(Survey { unreadable: selected.unreadable, ..survey })
    }

    /// Sends the deliveries of a selection again, oldest first, and waits while too many wait. The endpoint must be on.
    /// Stops once it is switched off or removed: then the rest stays as it is. The index that finds the deliveries may lag
    /// a little, so one that was held or failed a moment ago may be left out.
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
        let mut selected = Selected::within(id, selection, span);
        let sent = Box::pin(self.resend_selected(&endpoint, &mut selected, &mut recovery, None, &report)).await;
        Ok(recovery.ended_with(sent.map(drop)))
    }

    /// Does the same for the owner, for as long as `limit` says, or until too many wait. What is left is sent by calling
    /// again. If a selected time lies before the endpoint got a host that no test has reached, nothing is sent.
    pub async fn recover_for(
        &self,
        id: EndpointId,
        selection: &Selection,
        limit: Duration,
    ) -> Result<Recovery, WebhookAdminError> {
        let until = Instant::now() + limit;
        let endpoint = self.find(id).await?;
        let mut selected = Selected::new(id, selection, self.clock.now())?;
        self.require_sendable(&endpoint, &selected).await?;
        self.count_trial(endpoint.account_id, None).await?;
        let mut recovery = Recovery::default();
        let sent = self.resend_selected(&endpoint, &mut selected, &mut recovery, Some(until), |_| {}).await;
        let is_done = match sent {
            Ok(is_done) => is_done,
            Err(error) if recovery.sent == 0 => return Err(error),
            Err(error) => {
                recovery.stopped_by = Some(error);
                false
            }
        };
        if !is_done {
            // It is not finished, even if what it stopped at has changed since then.
            recovery.left = selected.count_left(&self.store).await?.max(1);
        }
        recovery.found.unreadable = selected.unreadable;
        Ok(recovery)
    }

    /// Refuses to go on unless what was selected can be sent to the endpoint.
    async fn require_sendable(&self, endpoint: &WebhookEndpoint, selected: &Selected) -> Result<(), WebhookAdminError> {
        let endpoint = self.require_on(endpoint.account_id, endpoint.id).await?;
        if endpoint.needs_proof(selected.span.first) {
            return Err(WebhookAdminError::Unproven(endpoint.id));
        }
        Ok(())
    }

    /// Sends again what was selected. If `until` is given, an owner sends, and it stops at that time, or when too many
    /// wait. Returns whether nothing is left.
    async fn resend_selected(
        &self,
        endpoint: &WebhookEndpoint,
        selected: &mut Selected,
        recovery: &mut Recovery,
        until: Option<Instant>,
        report: impl Fn(RecoveryProgress),
    ) -> Result<bool, WebhookAdminError> {
        let (mut room, of) = (0, recovery.found.total());
        let by = if until.is_some() { ResentBy::Owner } else { ResentBy::Operator };
        while selected.read_on(&self.store, self.clock.now()).await? {
            if until.is_some_and(|until| until <= Instant::now()) {
                return Ok(selected.has_only_unread_pending());
            }
            if !selected.has_next() {
                continue;
            }
            self.require_sendable(endpoint, selected).await?;
            if room == 0 {
                let waiting = self.store.count_waiting(endpoint.id, self.clock.now(), MAX_WAITING).await?;
                room = MAX_WAITING.saturating_sub(waiting);
            }
            if room > 0 {
                let chunk = selected.take(room.min(CHUNK));
                room -= chunk.len() as u64;
                self.resend_chunk(&chunk, by, recovery).await?;
                report(RecoveryProgress::Sending { done: recovery.done(), of });
            } else if until.is_some() {
                return Ok(false);
            } else {
                report(RecoveryProgress::Slowed { done: recovery.done(), of });
                sleep(PAUSE).await;
            }
        }
        Ok(true)
    }

    /// Begins a new round of each delivery, one after the other. The drain of the account is called before, so that it
    /// finds them even if this is cut short, and afterwards, so that it looks at once.
    async fn resend_chunk(
        &self,
        chunk: &[Delivery],
        by: ResentBy,
        recovery: &mut Recovery,
    ) -> Result<(), WebhookAdminError> {
        let Some(account) = chunk.first().map(|seen| seen.account_id) else { return Ok(()) };
        let (now, mut begun) = (self.clock.now(), Ok(()));
        self.store.wake_drain_by(account, now, now).await?;
        for seen in chunk {
            match self.begin_round(seen, by).await {
                Ok(()) => recovery.sent += 1,
                Err(WebhookAdminError::Changed | WebhookAdminError::Busy(_)) => recovery.changed += 1,
                Err(WebhookAdminError::TooManyRounds(_)) => recovery.too_many_rounds += 1,
                Err(WebhookAdminError::TooManyRoundsToday { .. }) => recovery.too_many_rounds_today += 1,
                Err(WebhookAdminError::UnknownDelivery(_)) => recovery.expired += 1,
                Err(error) => {
                    begun = Err(error);
                    break;
                }
            }
        }
        self.drains.wake(account, self.clock.now()).await?;
        begun
    }
}

impl Selection {
    /// Returns the span of the deliveries that can still be sent again.
    fn span(&self, now: Timestamp) -> Result<Span, WebhookAdminError> {
        let Span { first, last } = span(self.since, self.until)?;
        Ok(Span { first: first.max(now.plus_millis(1 - RESENDABLE_FOR_MILLIS)), last })
    }
}

impl Selected {
    fn new(endpoint: EndpointId, selection: &Selection, now: Timestamp) -> Result<Self, WebhookAdminError> {
        Ok(Self::within(endpoint, selection, selection.span(now)?))
    }

    fn within(endpoint: EndpointId, selection: &Selection, span: Span) -> Self {
        let lists = selection.statuses.iter().map(|status| SelectedList {
            status: match status {
                Recoverable::Held => Status::Held,
                Recoverable::Failed => Status::Failed,
                Recoverable::Pending => Status::Pending,
            },
            found: VecDeque::new(),
            next: None,
            is_read: false,
        });
        Self { endpoint, span, lists: lists.collect(), unreadable: Vec::new() }
    }

    /// Returns the lists from which deliveries are taken now.
    fn current(&mut self) -> impl Iterator<Item = &mut SelectedList> {
        let is_pending_next =
            self.lists.iter().filter(|list| list.status != Status::Pending).all(SelectedList::is_over);
        self.lists.iter_mut().filter(move |list| (list.status == Status::Pending) == is_pending_next)
    }

    /// Returns whether it is known which delivery comes next.
    fn has_next(&mut self) -> bool {
        let mut found = false;
        self.current().all(|list| {
            found |= !list.found.is_empty();
            list.is_read || !list.found.is_empty()
        }) && found
    }

    /// Returns whether all that is left are pending deliveries that were not read. They are attempted by themselves.
    fn has_only_unread_pending(&self) -> bool {
        self.lists.iter().all(|list| list.is_over() || list.status == Status::Pending && list.found.is_empty())
    }

    /// Reads a page of each list of which nothing is at hand. Returns whether there is, or may be, something to take.
    async fn read_on(&mut self, store: &WebhookStore, now: Timestamp) -> Result<bool, WebhookAdminError> {
        let endpoint = self.endpoint;
        let span = self.span;
        let mut unreadable = Vec::new();
        for list in self.current().filter(|list| list.found.is_empty() && !list.is_read) {
            let page = store.deliveries_with(endpoint, list.status, Some(span), list.next.take()).await?;
            list.found
                .extend(page.deliveries.into_iter().filter(|delivery| !delivery.is_test && !is_soon(delivery, now)));
            unreadable.extend(page.unreadable);
            list.is_read = page.next.is_none();
            list.next = page.next;
        }
        self.unreadable.append(&mut unreadable);
        Ok(!self.lists.iter().all(SelectedList::is_over))
    }

    /// Takes at most `most` of the next deliveries. It takes fewer if one of the lists must be read further first.
    fn take(&mut self, most: u64) -> Vec<Delivery> {
        let mut taken = Vec::new();
        while (taken.len() as u64) < most && self.has_next() {
            let age = |list: &&mut SelectedList| list.found.front().map(|delivery| (delivery.created_at, delivery.id));
            let oldest = self.current().filter(|list| !list.found.is_empty()).min_by_key(age);
            let Some(delivery) = oldest.and_then(|list| list.found.pop_front()) else { break };
            taken.push(delivery);
        }
        taken
    }

    /// Counts the deliveries that were not taken. Those that were not read may have tests among them. Pending ones that
    /// were not read are not counted: most of them are new, and sent anyway.
    async fn count_left(&self, store: &WebhookStore) -> Result<u64, WebhookAdminError> {
        let mut left = 0;
        for SelectedList { status, found, next, is_read } in &self.lists {
            left += found.len() as u64;
            if !is_read && *status != Status::Pending {
                left += store.count_with(self.endpoint, *status, Some(self.span), next.clone(), MAX_LEFT).await?;
            }
        }
        Ok(left.min(MAX_LEFT))
    }
}

impl SelectedList {
    /// Returns whether nothing more can be taken from it.
    fn is_over(&self) -> bool {
        self.is_read && self.found.is_empty()
    }
}

/// Returns whether an attempt of the delivery comes soon by itself. If its sender has died, its message may be lost too.
fn is_soon(delivery: &Delivery, now: Timestamp) -> bool {
    let progress = &delivery.progress;
    let is_lost = progress.is_unwatched() && !progress.is_leased(now);
    progress.status == Status::Pending && progress.due <= now.plus_millis(SOON_MILLIS) && !is_lost
}

impl Survey {
    /// Returns how many there are.
    pub const fn total(&self) -> u64 {
        self.held + self.failed + self.pending
    }

    /// Counts a delivery of the selection.
    fn add(&mut self, delivery: &Delivery) {
        match delivery.progress.status {
            Status::Held => self.held += 1,
            Status::Pending => self.pending += 1,
            Status::Delivered | Status::Failed => self.failed += 1,
        }
        let at = delivery.created_at;
        let Span { first, last } = self.span.unwrap_or(Span { first: at, last: at });
        self.span = Some(Span { first: first.min(at), last: last.max(at) });
    }
}

impl Recovery {
    /// Returns how many of the deliveries were sent again or skipped.
    const fn done(&self) -> u64 {
        self.sent + self.changed + self.too_many_rounds + self.too_many_rounds_today + self.expired
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
