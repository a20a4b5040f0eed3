//! What a run knows of the deliveries that wait for one endpoint, and how it looks for them in the index.
//!
//! The index lags. What has ended stands in it for a while, and what waits is not in it yet. So a run remembers with which
//! wake-up it has begun each delivery, pages past those, and takes for certain only what a look that reached the end of
//! the index has shown, several times over.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use common::ids::{DeliveryId, EndpointId};
use common::store::StoreError;
use common::timestamp::Timestamp;
use tokio::time::Instant;
use webhooks::drain::{IN_FLIGHT, PAUSES_MILLIS, PROVEN_AT};
use webhooks::store::{StartKey, Waiting};

use crate::Webhook;

/// By how much clocks may differ, in milliseconds.
const CLOCK_MILLIS: i64 = 60_000;
/// How long after a look that found something the next one comes, if that has reached the end.
const PAUSE_AFTER_FIND: Duration = Duration::from_millis(100);

/// What waits for one endpoint.
pub(super) struct EndpointQueue {
    /// In the order of their attempts.
    pub(super) waiting: VecDeque<Waiting>,
    /// The deliveries that the run has begun, each with its wake-up.
    begun: HashMap<DeliveryId, Timestamp>,
    pub(super) under_way: usize,
    /// When the run looks again, unless it is done.
    look_at: Option<Instant>,
    /// Where the look under way goes on among first attempts, and whether it has found anything.
    position: Option<StartKey>,
    has_found: bool,
    /// How many looks in a row have reached the end and found nothing.
    empty_looks: usize,
    /// When the next delivery is due, as far as the index shows.
    pub(super) next: Option<Timestamp>,
    /// How many answers in a row have been prompt.
    prompt_answers: usize,
}

impl EndpointQueue {
    pub(super) fn new() -> Self {
        Self {
            waiting: VecDeque::new(),
            begun: HashMap::new(),
            under_way: 0,
            look_at: Some(Instant::now()),
            position: None,
            has_found: false,
            empty_looks: 0,
            next: None,
            prompt_answers: 0,
        }
    }

    /// Lets the run look again, because something may have begun to wait.
    pub(super) fn look_again(&mut self) {
        self.look_again_after(Duration::ZERO);
    }

    pub(super) fn look_again_after(&mut self, pause: Duration) {
        let at = Instant::now() + pause;
        self.look_at = Some(self.look_at.map_or(at, |look_at| look_at.min(at)));
        self.empty_looks = 0;
    }

    /// Takes the next delivery, if there is room for its attempt.
    pub(super) fn begin_next(&mut self) -> Option<Waiting> {
        let waiting = if self.under_way < IN_FLIGHT { self.waiting.pop_front()? } else { return None };
        self.under_way += 1;
        self.begun.insert(waiting.id, waiting.at);
        Some(waiting)
    }

    /// Lets the run find a delivery again that it could not attempt.
    pub(super) fn forget(&mut self, id: DeliveryId, pause: Duration) {
        self.begun.remove(&id);
        self.look_again_after(pause);
    }

    pub(super) fn has_room_and_work(&self) -> bool {
        self.under_way < IN_FLIGHT && !self.waiting.is_empty()
    }

    /// Returns whether the time has come to look, and there would be room for what is found.
    pub(super) fn is_to_look(&self) -> bool {
        self.next_look().is_some_and(|at| at <= Instant::now())
    }

    pub(super) fn next_look(&self) -> Option<Instant> {
        self.look_at.filter(|_| self.under_way + self.waiting.len() < IN_FLIGHT)
    }

    /// Notes an answer.
    pub(super) fn answered(&mut self, is_prompt: bool) {
        self.prompt_answers = if is_prompt { self.prompt_answers + 1 } else { 0 };
    }

    /// Returns whether the endpoint has shown that it responds promptly. One answer is enough if nothing of it is under way
    /// or left, as far as the latest look could show.
    pub(super) fn is_proven(&self) -> bool {
        let is_empty = self.under_way == 0 && self.waiting.is_empty() && self.empty_looks > 0;
        self.prompt_answers >= PROVEN_AT || self.prompt_answers > 0 && is_empty
    }

    /// Returns whether the run looks no more.
    pub(super) fn is_done(&self) -> bool {
        self.waiting.is_empty() && self.look_at.is_none()
    }

    fn add(&mut self, entry: Waiting) {
        let is_new = self.begun.get(&entry.id) != Some(&entry.at);
        if is_new && !self.waiting.iter().any(|other| other.id == entry.id) {
            self.waiting.push_back(entry);
            self.has_found = true;
        }
    }

    /// Notes that a look has reached the end.
    fn looked(&mut self) {
        let pause = if std::mem::take(&mut self.has_found) {
            self.empty_looks = 0;
            Some(PAUSE_AFTER_FIND)
        } else {
            self.empty_looks += 1;
            PAUSES_MILLIS.get(self.empty_looks - 1).copied().map(Duration::from_millis)
        };
        self.look_at = pause.map(|pause| Instant::now() + pause);
    }
}

impl Webhook {
    /// Reads what waits for an endpoint until there is more than room for it, or to the end: retries first, so that the
    /// retries of a receiver that is down are made in time, and end in time.
    pub(super) async fn look(
        &self,
        id: EndpointId,
        queue: &mut EndpointQueue,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        queue.next = None;
        for is_retry in [true, false] {
            // A first attempt cannot be early, so clocks that differ do not matter.
            let by = if is_retry { now } else { now.plus_millis(CLOCK_MILLIS) };
            let mut from = if is_retry { None } else { queue.position.take() };
            loop {
                let (entries, next_page) = self.store.waiting(id, is_retry, from).await?;
                let next = entries.iter().map(|entry| entry.at).find(|at| *at > by);
                entries.into_iter().filter(|entry| entry.at <= by).for_each(|entry| queue.add(entry));
                queue.next = queue.next.into_iter().chain(next).min();
                from = next_page.filter(|_| next.is_none());
                if from.is_none() {
                    break;
                }
                if queue.under_way + queue.waiting.len() >= IN_FLIGHT {
                    queue.position = from.filter(|_| !is_retry);
                    return Ok(());
                }
            }
        }
        queue.looked();
        Ok(())
    }
}
