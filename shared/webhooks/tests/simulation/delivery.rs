//! Deliveries: how they are born, wait, and are attempted.

use std::cmp::Reverse;

use common::timestamp::Timestamp;
use webhooks::drain::{FULL_AFTER_SECONDS, Load, load};
use webhooks::{FIRST_ATTEMPTS_PER_SECOND, Schedule, Wait};

use crate::endpoint::{Entry, Plan};
use crate::figures::{DYNAMO, INDEX_LAG, Millis, SECOND, Usage};
use crate::world::{Event, FIRST, Maker, Message, RETRY, World};

/// A pending delivery. Ended and held ones are only counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    pub(crate) endpoint: usize,
    pub(crate) born: Millis,
    /// When the next attempt is due.
    pub(crate) due: Millis,
    /// The attempts that failed.
    pub(crate) failed: u32,
    /// Changes with each record. Messages and entries of the index that bear another one are void.
    pub(crate) stamp: u32,
    pub(crate) is_leased: bool,
    /// It has entries in the indices `wake` and `statuses`.
    is_listed: bool,
    pub(crate) is_pending: bool,
    next: NextAttempt,
}

/// What the next attempt is.
#[derive(Clone, Copy, Debug)]
enum NextAttempt {
    First,
    MessagedRetry,
    ParkedRetry,
}

impl World {
    /// Fans events out, as `ingest` does, and schedules the next ones.
    pub(crate) fn born(&mut self, endpoint: usize, count: u32) {
        let Plan { account, traffic, until, .. } = self.endpoints[endpoint].plan;
        if self.now >= until {
            return;
        }
        for _ in 0..count {
            self.endpoints[endpoint].tally.born += 1;
            let delivery = self.new_delivery(endpoint);
            let lane = self.lane(account, self.endpoints[endpoint].is_prompt);
            let stamp = self.deliveries[delivery as usize].stamp;
            self.send(lane, Message::Attempt { delivery, stamp }, 0);
        }
        let (wait, count) = traffic.next(&mut self.rng);
        self.after(wait, Event::Born { endpoint, count });
    }

    fn new_delivery(&mut self, endpoint: usize) -> u32 {
        let slot = self.free.pop().unwrap_or(self.deliveries.len() as u32);
        let stamp = self.deliveries.get(slot as usize).map_or(0, |before| before.stamp + 1);
        let (born, due) = (self.now, self.now);
        let new = Delivery {
            endpoint,
            born,
            due,
            failed: 0,
            stamp,
            is_leased: false,
            is_listed: false,
            is_pending: true,
            next: NextAttempt::First,
        };
        match self.deliveries.get_mut(slot as usize) {
            Some(before) => *before = new,
            None => self.deliveries.push(new),
        }
        slot
    }

    /// Returns the lane of a first attempt, and counts it (`webhooks::pace`).
    fn lane(&mut self, account: usize, is_prompt: bool) -> usize {
        let second = self.now / SECOND;
        let account = &mut self.accounts[account];
        if account.second != second {
            (account.second, account.admitted) = (second, 0);
        }
        account.admitted += u32::from(is_prompt);
        if is_prompt && account.admitted <= FIRST_ATTEMPTS_PER_SECOND { FIRST } else { RETRY }
    }

    pub(crate) fn account_of(&self, delivery: u32) -> usize {
        self.endpoints[self.deliveries[delivery as usize].endpoint].plan.account
    }

    pub(crate) fn usage_of(&mut self, delivery: u32) -> &mut Usage {
        let account = self.account_of(delivery);
        &mut self.accounts[account].usage
    }

    /// Lets a delivery wait in the table. Returns whether the caller is to call the drain: if the endpoint is full, the
    /// delivery is held.
    #[must_use]
    pub(crate) fn wait(&mut self, delivery: u32) -> bool {
        let Delivery { endpoint, failed, .. } = self.deliveries[delivery as usize];
        if failed == 0 {
            if self.endpoints[endpoint].is_full {
                self.endpoints[endpoint].tally.held += 1;
                // The row and its entry in `statuses`.
                self.usage_of(delivery).write_units += 2.0;
                self.end(delivery);
                return false;
            }
            self.endpoints[endpoint].waiting += 1;
        }
        // The row, and two entries: of a first attempt in `wake` and `statuses`, of a retry the one in `wake` moves.
        self.usage_of(delivery).write_units += 3.0;
        self.wake_at(delivery, self.now);
        true
    }

    /// Marks an endpoint as full, or ends the mark.
    pub(crate) fn measure(&mut self, endpoint: usize) {
        let now = at(self.now);
        let endpoint = &mut self.endpoints[endpoint];
        let oldest = endpoint.partitions[1].peek().map_or(now, |Reverse(entry)| at(entry.wake_at));
        match load(endpoint.waiting as u64, oldest, FULL_AFTER_SECONDS, now) {
            Load::Full => endpoint.is_full = true,
            Load::Eased => endpoint.is_full = false,
            Load::Between => {}
        }
    }

    /// Lets the drain make the next attempt of a delivery from then on. Older messages are void.
    fn wake_at(&mut self, delivery: u32, wake_at: Millis) {
        let visible_at = self.now + DYNAMO + self.rng.u64(INDEX_LAG.0..=INDEX_LAG.1);
        let Delivery { endpoint, failed, stamp, .. } = {
            let found = &mut self.deliveries[delivery as usize];
            (found.stamp, found.is_leased, found.is_listed) = (found.stamp + 1, false, true);
            *found
        };
        let entry = Entry { wake_at, visible_at, delivery, stamp };
        self.endpoints[endpoint].partitions[usize::from(failed == 0)].push(Reverse(entry));
    }

    fn end(&mut self, delivery: u32) {
        let ended = &mut self.deliveries[delivery as usize];
        (ended.stamp, ended.is_pending) = (ended.stamp + 1, false);
        self.free.push(delivery);
    }

    /// Begins an attempt. Its answer comes later.
    pub(crate) fn attempt(&mut self, maker: Maker, delivery: u32) {
        let found = &mut self.deliveries[delivery as usize];
        found.is_leased = true;
        let Delivery { endpoint, due, next, .. } = *found;
        let begins = self.now + DYNAMO;
        let (receiver, tally) = (self.endpoints[endpoint].plan.receiver, &mut self.endpoints[endpoint].tally);
        let times = match next {
            NextAttempt::First => &mut tally.first,
            NextAttempt::MessagedRetry => &mut tally.messaged,
            NextAttempt::ParkedRetry => &mut tally.parked,
        };
        times.add(begins - due);
        let (took, is_acknowledged) = receiver.answer(&mut self.rng);
        self.usage_of(delivery).write_units += 1.0;
        // The claim comes before the attempt, and the record after it.
        self.after(took + 2 * DYNAMO, Event::Answered { maker, delivery, took, is_acknowledged });
        let worker = match maker {
            Maker::Worker(worker) => worker,
            Maker::Run(run) => self.runs[run].worker,
        };
        for seconds in 1..=took.saturating_sub(1) / SECOND {
            self.after(seconds * SECOND + DYNAMO, Event::Slow { worker, endpoint });
        }
    }

    /// Records an attempt. Returns when the drain makes the next one if nobody did before.
    pub(crate) fn record(&mut self, delivery: u32, is_acknowledged: bool) -> Option<Millis> {
        let now = self.now - DYNAMO;
        let Delivery { endpoint, born, failed, is_listed, .. } = self.deliveries[delivery as usize];
        // Only an acknowledged attempt of a delivery that never waited changes no entry of an index.
        self.usage_of(delivery).write_units += if is_listed || !is_acknowledged { 3.0 } else { 1.0 };
        if is_acknowledged {
            let tally = &mut self.endpoints[endpoint].tally;
            tally.delivered += 1;
            tally.arrived.add(now - born);
            self.end(delivery);
            return None;
        }
        let Some(wait) = Schedule::default().after_failure(failed + 1, at(now)) else {
            self.endpoints[endpoint].tally.failed += 1;
            self.end(delivery);
            return None;
        };
        let (due, wake_at) = wait.times(Schedule::default(), at(now));
        let [due, wake_at] = [due, wake_at].map(|time| time.millis().cast_unsigned());
        let is_delayed = matches!(wait, Wait::Delayed { .. });
        let found = &mut self.deliveries[delivery as usize];
        (found.failed, found.due) = (failed + 1, due);
        found.next = if is_delayed { NextAttempt::MessagedRetry } else { NextAttempt::ParkedRetry };
        self.wake_at(delivery, wake_at);
        if is_delayed {
            let stamp = self.deliveries[delivery as usize].stamp;
            self.send(RETRY, Message::Attempt { delivery, stamp }, due - now);
        }
        Some(wake_at)
    }
}

fn at(time: Millis) -> Timestamp {
    Timestamp::from_millis(time.cast_signed())
}
