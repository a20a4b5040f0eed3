//! The slow lane: the row of each account's drain, and its runs.

use std::cmp::Reverse;

use webhooks::drain::{IN_FLIGHT, LOOKS, MEASURE_EVERY_SECONDS, Proof};

use crate::delivery::Delivery;
use crate::direct::id;
use crate::endpoint::Entry;
use crate::figures::{BEGIN_FOR, GRACE, LOOK_EVERY, LOST, Millis, NAP, PAUSE, RUN_LEASE, SECOND, SWEEP};
use crate::world::{Account, Event, Maker, Message, SLOW, World};

/// The row of a drain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DrainRow {
    token: u64,
    /// When `sweep` sends a message for it.
    wake_at: Millis,
    /// There is neither a message nor a run.
    is_asleep: bool,
    /// Counts the calls for "now".
    calls: u64,
    called_at: Millis,
}

/// A run of a drain.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) worker: usize,
    account: usize,
    begun_at: Millis,
    in_flight: usize,
    /// The calls for "now" that the run knows of, and when the latest call came.
    calls: u64,
    called_at: Millis,
    /// How often it still looks into the index, because the index may show a row later than the call that announces it.
    looks: u32,
    /// When it looked into the index last.
    looked_at: Millis,
    /// Whether it recorded a failure, whose next attempt the index may not show yet.
    is_unsure: bool,
    has_handed_on: bool,
    has_ended: bool,
}

impl World {
    // ---- The row ----

    pub(crate) fn call_now(&mut self, account: usize) {
        let now = self.now;
        let new = self.rng.u64(..);
        let Account { drain, usage, .. } = &mut self.accounts[account];
        usage.write_units += 1.0;
        let row = drain.get_or_insert(DrainRow { token: 0, wake_at: 0, is_asleep: true, calls: 0, called_at: 0 });
        (row.calls, row.called_at) = (row.calls + 1, now);
        if row.is_asleep {
            usage.write_units += 2.0;
            (row.token, row.wake_at, row.is_asleep) = (new, now + LOST, false);
            self.send(SLOW, Message::Drain { account, token: new }, 0);
        }
    }

    /// Sees to it that the drain runs at this time.
    pub(crate) fn call_later(&mut self, account: usize, by: Millis) {
        let now = self.now;
        let token = self.rng.u64(..);
        let Account { drain, usage, .. } = &mut self.accounts[account];
        usage.write_units += 1.0;
        let row =
            drain.get_or_insert(DrainRow { token, wake_at: Millis::MAX, is_asleep: true, calls: 0, called_at: 0 });
        row.called_at = now;
        if row.is_asleep && row.wake_at > by {
            usage.write_units += 2.0;
            row.wake_at = by;
        }
    }

    pub(crate) fn sweep(&mut self, account: usize) {
        let now = self.now;
        let Account { drain, usage, .. } = &mut self.accounts[account];
        let Some(row) = drain.as_mut().filter(|row| row.wake_at <= now + SWEEP) else { return };
        usage.write_units += 3.0;
        let (at, token) = (row.wake_at.max(now), row.token);
        row.wake_at = at + LOST;
        self.send(SLOW, Message::Drain { account, token }, at - now);
    }

    // ---- Runs ----

    pub(crate) fn run_begins(&mut self, worker: usize, account: usize, token: u64) {
        let now = self.now;
        let new = self.rng.u64(..);
        let Account { drain, usage, endpoints, .. } = &mut self.accounts[account];
        let Some(row) = drain.as_mut().filter(|row| row.token == token) else {
            self.ended_one(worker);
            return;
        };
        usage.write_units += 3.0;
        (row.token, row.wake_at, row.is_asleep) = (new, now + RUN_LEASE, false);
        let DrainRow { calls, called_at, .. } = *row;
        for endpoint in endpoints.clone() {
            self.endpoints[endpoint].proof = Proof::default();
        }
        let run = self.runs.len();
        self.runs.push(Run {
            worker,
            account,
            begun_at: now,
            in_flight: 0,
            calls,
            called_at,
            looks: LOOKS,
            looked_at: 0,
            is_unsure: false,
            has_handed_on: false,
            has_ended: false,
        });
        self.go_on(run);
        self.after(LOOK_EVERY, Event::RunPolls { run });
    }

    /// Reads the row, and begins what was called for since.
    pub(crate) fn run_polls(&mut self, run: usize) {
        let Run { account, has_ended, has_handed_on, .. } = self.runs[run];
        if has_ended || has_handed_on {
            return;
        }
        self.accounts[account].usage.read_units += 1.0;
        self.learns_of_calls(run);
        self.go_on(run);
        self.after(LOOK_EVERY, Event::RunPolls { run });
    }

    /// Looks into the index if it has to, begins what it can, and ends if nothing is left.
    pub(crate) fn go_on(&mut self, run: usize) {
        if self.runs[run].has_ended {
            return;
        }
        if !self.is_late(run) {
            self.look(run);
        }
        self.settle(run);
    }

    /// Returns whether there were calls since the run last read the row.
    fn learns_of_calls(&mut self, run: usize) -> bool {
        let run = &mut self.runs[run];
        let Some(row) = self.accounts[run.account].drain.filter(|row| row.calls != run.calls) else { return false };
        (run.calls, run.called_at, run.looks) = (row.calls, row.called_at, LOOKS);
        true
    }

    /// Looks into both partitions of each endpoint if it has to, and begins what it can.
    fn look(&mut self, run: usize) {
        let Run { account, looks, in_flight, .. } = self.runs[run];
        let endpoints = self.accounts[account].endpoints.len();
        if looks > 0 {
            (self.runs[run].looks, self.runs[run].looked_at) = (looks - 1, self.now);
            self.accounts[account].usage.read_units += endpoints as f64;
        }
        for number in 0..endpoints {
            self.begin_some(run, self.accounts[account].endpoints[number]);
        }
        if self.runs[run].in_flight > in_flight {
            self.runs[run].looks = self.runs[run].looks.max(1);
        }
    }

    /// Begins as many attempts to an endpoint as there may be.
    fn begin_some(&mut self, run: usize, endpoint: usize) {
        while !self.is_late(run) && self.endpoints[endpoint].in_flight < IN_FLIGHT {
            let Some(delivery) = self.next_due(endpoint, self.runs[run].looked_at) else { return };
            self.endpoints[endpoint].partitions[usize::from(self.deliveries[delivery as usize].failed == 0)].pop();
            self.endpoints[endpoint].waiting -= usize::from(self.deliveries[delivery as usize].failed == 0);
            self.endpoints[endpoint].in_flight += 1;
            self.runs[run].in_flight += 1;
            self.attempt(Maker::Run(run), delivery);
        }
    }

    /// Returns whether the run begins no more attempts.
    fn is_late(&self, run: usize) -> bool {
        self.now >= self.runs[run].begun_at + BEGIN_FOR
    }

    /// Returns the next delivery that is due, of those that a look at that time showed: retries before first attempts.
    fn next_due(&mut self, endpoint: usize, looked_at: Millis) -> Option<u32> {
        [0, 1].into_iter().find_map(|partition| {
            let entry = self.head(endpoint, partition)?;
            (entry.wake_at <= self.now && entry.visible_at <= looked_at).then_some(entry.delivery)
        })
    }

    /// Returns the first entry of a partition of the index.
    fn head(&mut self, endpoint: usize, partition: usize) -> Option<Entry> {
        let entries = &mut self.endpoints[endpoint].partitions[partition];
        while let Some(Reverse(entry)) = entries.peek() {
            let Delivery { stamp, is_leased, .. } = self.deliveries[entry.delivery as usize];
            if stamp == entry.stamp && !is_leased {
                return Some(*entry);
            }
            entries.pop();
        }
        None
    }

    pub(crate) fn answered_run(&mut self, run: usize, delivery: u32, took: Millis, is_acknowledged: bool) {
        let endpoint = self.deliveries[delivery as usize].endpoint;
        let account = self.runs[run].account;
        if let Some(wake_at) = self.record(delivery, is_acknowledged) {
            self.runs[run].is_unsure = true;
            // A run that has handed on cannot tell the next one.
            if self.runs[run].has_handed_on {
                self.call_later(account, wake_at);
            }
        }
        self.runs[run].in_flight -= 1;
        self.endpoints[endpoint].in_flight -= 1;
        let (worker, looked_at) = (self.runs[run].worker, self.runs[run].looked_at);
        if took < SECOND {
            self.workers[worker].promptness.answered(id(endpoint));
        }
        self.endpoints[endpoint].proof.note(took < SECOND);
        let is_idle = self.endpoints[endpoint].in_flight == 0 && self.next_due(endpoint, looked_at).is_none();
        if self.endpoints[endpoint].proof.is_enough(is_idle) && !self.endpoints[endpoint].is_prompt {
            self.endpoints[endpoint].is_prompt = true;
            self.workers[worker].promptness.forget(id(endpoint));
            self.accounts[account].usage.write_units += 1.0;
        }
        self.go_on(run);
    }

    /// Hands a run on if its time is up, and ends it if it has nothing left to do.
    fn settle(&mut self, run: usize) {
        let Run { account, worker, in_flight, has_handed_on, .. } = self.runs[run];
        if self.is_late(run) {
            if !has_handed_on {
                self.runs[run].has_handed_on = true;
                self.hand_on(account);
            }
            if in_flight > 0 {
                return;
            }
        } else if in_flight > 0 {
            return;
        } else if self.runs[run].looks > 0 || self.learns_of_calls(run) || self.is_due(run) {
            self.after(PAUSE, Event::RunGoesOn { run });
            return;
        } else {
            self.sleep(run);
        }
        self.runs[run].has_ended = true;
        self.ended_one(worker);
    }

    /// Returns whether something is due that the run knows of. If the run has nothing in flight, the attempts that the
    /// run before it began leave no room.
    fn is_due(&mut self, run: usize) -> bool {
        let Run { account, looked_at, .. } = self.runs[run];
        let endpoints = self.accounts[account].endpoints.clone();
        endpoints.into_iter().any(|endpoint| self.next_due(endpoint, looked_at).is_some())
    }

    fn hand_on(&mut self, account: usize) {
        let (now, token) = (self.now, self.rng.u64(..));
        let Account { drain, usage, endpoints, .. } = &mut self.accounts[account];
        let Some(row) = drain else { return };
        usage.write_units += 3.0;
        (row.token, row.wake_at, row.called_at) = (token, now + LOST, now);
        let measured =
            if now % (u64::from(MEASURE_EVERY_SECONDS) * SECOND) < BEGIN_FOR { endpoints.clone() } else { Vec::new() };
        for endpoint in measured {
            // Sixteen kilobytes of entries are two read units.
            self.accounts[account].usage.read_units += self.endpoints[endpoint].waiting as f64 / 50.0;
            self.measure(endpoint);
        }
        self.send(SLOW, Message::Drain { account, token }, 0);
    }

    /// Lets the drain sleep until something is due, or ends it if it has nothing left.
    fn sleep(&mut self, run: usize) {
        let (now, account) = (self.now, self.runs[run].account);
        let endpoints = self.accounts[account].endpoints.clone();
        // Nothing is left that is due.
        for endpoint in &endpoints {
            self.endpoints[*endpoint].is_full = false;
        }
        let heads = endpoints.into_iter().flat_map(|endpoint| [self.head(endpoint, 0), self.head(endpoint, 1)]);
        let next = heads.flatten().map(|entry| entry.wake_at).filter(|wake_at| *wake_at > now).min();
        let is_unsure = self.runs[run].is_unsure;
        let is_recent = is_unsure || now < self.runs[run].called_at + GRACE;
        let Account { drain, usage, .. } = &mut self.accounts[account];
        usage.write_units += 3.0;
        let wake_at = if is_recent { Some(next.map_or(now + NAP, |next| next.min(now + NAP))) } else { next };
        match (wake_at, drain.as_mut()) {
            (Some(wake_at), Some(row)) => {
                (row.wake_at, row.is_asleep) = (wake_at, true);
                row.called_at = if is_unsure { now } else { row.called_at };
            }
            _ => *drain = None,
        }
    }
}
