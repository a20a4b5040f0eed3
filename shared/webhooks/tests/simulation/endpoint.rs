//! Endpoints: what their accounts send them, and how their receivers answer.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use webhooks::drain::Proof;

use crate::figures::{DEADLINE, Millis, Tally};

/// How a receiver answers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Receiver {
    /// Acknowledges after this time.
    Steady(Millis),
    /// Acknowledges after the usual time, and one in a hundred after the other.
    Mostly { usual: Millis, one_in_hundred: Millis },
    /// Answers after this time. This share of its answers, in percent, are failures.
    Failing { after: Millis, percent: u32 },
    /// Never answers.
    Hanging,
}

impl Receiver {
    /// Returns how long an attempt takes, and whether it is acknowledged.
    pub(crate) fn answer(self, rng: &mut fastrand::Rng) -> (Millis, bool) {
        match self {
            Self::Steady(after) => (after, true),
            Self::Mostly { usual, one_in_hundred } => (if rng.u32(..100) == 0 { one_in_hundred } else { usual }, true),
            Self::Failing { after, percent } => (after, rng.u32(..100) >= percent),
            Self::Hanging => (DEADLINE, false),
        }
    }
}

/// When events happen that an endpoint selected.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Traffic {
    /// At random. The number is the average per second.
    Poisson(f64),
    /// So many at the same time, once per interval.
    Bursts { size: u32, every: Millis },
}

impl Traffic {
    /// Returns how long it is until the next events, and how many there are.
    pub(crate) fn next(self, rng: &mut fastrand::Rng) -> (Millis, u32) {
        match self {
            Self::Poisson(per_second) => {
                let seconds = -(1.0 - rng.f64()).ln() / per_second;
                (whole_millis(seconds * 1_000.0, rng), 1)
            }
            Self::Bursts { size, every } => (every, size),
        }
    }
}

/// Rounds up or down at random, so the average stays.
#[expect(clippy::cast_sign_loss, reason = "no time is negative")]
fn whole_millis(millis: f64, rng: &mut fastrand::Rng) -> Millis {
    (millis + rng.f64()) as Millis
}

/// An endpoint to be simulated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) account: usize,
    pub(crate) receiver: Receiver,
    pub(crate) traffic: Traffic,
    /// When its events begin and end.
    pub(crate) from: Millis,
    pub(crate) until: Millis,
    /// Whether it is prompt at the beginning, or new.
    pub(crate) is_prompt: bool,
}

impl Plan {
    pub(crate) fn new(account: usize, receiver: Receiver, traffic: Traffic) -> Self {
        Self { account, receiver, traffic, from: 0, until: Millis::MAX, is_prompt: false }
    }

    /// Lets the events begin then.
    pub(crate) fn from(self, from: Millis) -> Self {
        Self { from, ..self }
    }

    /// Lets the events end then.
    pub(crate) fn until(self, until: Millis) -> Self {
        Self { until, ..self }
    }

    pub(crate) fn prompt(self) -> Self {
        Self { is_prompt: true, ..self }
    }
}

/// A delivery in the index `wake`. It is void once the delivery's stamp is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) wake_at: Millis,
    pub(crate) visible_at: Millis,
    pub(crate) delivery: u32,
    pub(crate) stamp: u32,
}

/// An endpoint as the simulation goes on.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) plan: Plan,
    pub(crate) is_prompt: bool,
    /// New deliveries are born held.
    pub(crate) is_full: bool,
    /// How many first attempts wait in the table.
    pub(crate) waiting: usize,
    /// The partitions of the index: retries, and first attempts.
    pub(crate) partitions: [BinaryHeap<Reverse<Entry>>; 2],
    /// The attempts that the drain has in flight.
    pub(crate) in_flight: usize,
    /// What the run of the drain has seen.
    pub(crate) proof: Proof,
    pub(crate) tally: Tally,
}

impl Endpoint {
    pub(crate) fn new(plan: Plan) -> Self {
        Self {
            plan,
            is_prompt: plan.is_prompt,
            is_full: false,
            waiting: 0,
            partitions: Default::default(),
            in_flight: 0,
            proof: Proof::default(),
            tally: Tally::default(),
        }
    }
}
