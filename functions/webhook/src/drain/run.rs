//! What a run knows and has under way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use common::ids::EndpointId;
use common::store::StoreError;
use common::timestamp::Timestamp;
use tokio::task::JoinSet;
use tokio::time::Instant;
use webhooks::drain::{BEGIN_FOR, Drain, LOOK_EVERY, PAUSE_AFTER_ERROR};
use webhooks::store::Waiting;

use super::queue::EndpointQueue;
use crate::batch::Found;
use crate::outcome::DispatchOutcome;
use crate::record::AttemptResult;

/// What became of a delivery that waited. There is no result if another instance makes its attempt, or if its endpoint was changed.
pub(super) type WaitingResult = Result<Option<AttemptResult>, StoreError>;

/// What has ended.
pub(super) enum Ended {
    Waiting(EndpointId, Vec<(Waiting, WaitingResult)>),
    /// The deliveries of a removed endpoint have ended, or not all of them.
    Removal(EndpointId, Result<bool, StoreError>),
}

/// What a run knows.
pub(super) struct Run {
    pub(super) drain: Drain,
    pub(super) begun: Instant,
    /// The endpoints as they were at `read_at`, once they were read. There may be new ones since a call.
    pub(super) found: Found,
    pub(super) read_at: Option<Instant>,
    pub(super) queues: BTreeMap<EndpointId, EndpointQueue>,
    pub(super) under_way: JoinSet<Ended>,
    /// The removed endpoints whose deliveries it has begun to end.
    pub(super) ending: BTreeSet<EndpointId>,
    /// When it looks next whether the drain was woken again, while attempts are under way.
    pub(super) look_at: Instant,
    /// It begins nothing before.
    pub(super) paused_until: Instant,
    /// Until it hands the drain on. Then its failures wake the drain as those of messages do.
    pub(super) has_drain: Arc<AtomicBool>,
    /// From when on a drain makes the first attempt of those that follow what the run has done.
    pub(super) next: Option<Timestamp>,
    /// Whether a later run has to look again, because something failed.
    pub(super) is_unsure: bool,
    pub(super) outcomes: Vec<DispatchOutcome>,
}

impl Run {
    pub(super) fn new(drain: Drain) -> Self {
        let now = Instant::now();
        Self {
            drain,
            begun: now,
            found: Found::new(),
            read_at: None,
            queues: BTreeMap::new(),
            under_way: JoinSet::new(),
            ending: BTreeSet::new(),
            look_at: now + LOOK_EVERY,
            paused_until: now,
            has_drain: Arc::new(AtomicBool::new(true)),
            next: None,
            is_unsure: false,
            outcomes: Vec::new(),
        }
    }

    /// Notes that a call failed.
    pub(super) fn pause(&mut self, error: &StoreError) {
        self.paused_until = Instant::now() + PAUSE_AFTER_ERROR;
        self.is_unsure = true;
        self.outcomes.push(DispatchOutcome::Postponed(error.to_string()));
    }

    /// Returns whether nothing is under way and nothing more is looked for.
    pub(super) fn is_idle(&self) -> bool {
        self.under_way.is_empty() && self.queues.values().all(EndpointQueue::is_done)
    }

    /// Returns when there is something to do again, if nothing ends before.
    pub(super) fn next_step(&self) -> Instant {
        let end = self.begun + BEGIN_FOR;
        if self.paused_until > Instant::now() {
            return self.paused_until.min(end);
        }
        let looks = self.queues.values().filter_map(EndpointQueue::next_look);
        let call = (!self.under_way.is_empty()).then_some(self.look_at);
        looks.chain(call).min().map_or(end, |at| at.min(end))
    }
}
