//! The world: simulated time, deliveries, queues and `sweep`. The lanes stand in `direct` and `drain`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use crate::delivery::Delivery;
use crate::direct::Worker;
use crate::drain::{DrainRow, Run};
use crate::endpoint::{Endpoint, Plan};
use crate::figures::{Millis, SQS_RECEIVE, SQS_SEND, SWEEP, Settings, Tally, Usage};

/// The lanes, as indices of [`Settings::workers`].
pub(crate) const FIRST: usize = 0;
pub(crate) const RETRY: usize = 1;
pub(crate) const SLOW: usize = 2;

/// A simulation. The same seed, settings and plans give the same results.
pub(crate) struct World {
    pub(crate) now: Millis,
    pub(crate) rng: fastrand::Rng,
    pub(crate) accounts: Vec<Account>,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) deliveries: Vec<Delivery>,
    pub(crate) workers: Vec<Worker>,
    pub(crate) runs: Vec<Run>,
    pub(crate) queues: [Lane; 3],
    pub(crate) free: Vec<u32>,
    events: BinaryHeap<Reverse<Scheduled>>,
    scheduled: u64,
}

/// What an account's endpoints share.
#[derive(Debug, Default)]
pub(crate) struct Account {
    pub(crate) endpoints: Vec<usize>,
    pub(crate) drain: Option<DrainRow>,
    pub(crate) usage: Usage,
    /// The second for which `admitted` counts the first attempts sent to the first lane.
    pub(crate) second: Millis,
    pub(crate) admitted: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Message {
    Attempt { delivery: u32, stamp: u32 },
    Drain { account: usize, token: u64 },
}

/// Who makes an attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Maker {
    Worker(usize),
    Run(usize),
}

/// Something that happens at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// Events of the account happen that the endpoint selected.
    Born {
        endpoint: usize,
        count: u32,
    },
    /// A message can be received.
    Sent {
        lane: usize,
        message: Message,
    },
    /// A worker receives a batch.
    Receive {
        worker: usize,
    },
    /// A worker's function is done with everything but the attempts under way.
    Handled {
        worker: usize,
    },
    /// The messages whose attempts have not begun are to wait in the table.
    Patience {
        worker: usize,
        batch: u64,
    },
    /// An attempt has been slow for another second.
    Slow {
        worker: usize,
        endpoint: usize,
    },
    CallNow {
        account: usize,
    },
    Answered {
        maker: Maker,
        delivery: u32,
        took: Millis,
        is_acknowledged: bool,
    },
    RunBegins {
        worker: usize,
        account: usize,
        token: u64,
    },
    RunPolls {
        run: usize,
    },
    RunGoesOn {
        run: usize,
    },
    Sweep,
}

struct Scheduled {
    at: Millis,
    number: u64,
    event: Event,
}

impl World {
    pub(crate) fn new(seed: u64, settings: Settings, plans: &[Plan]) -> Self {
        let mut accounts: Vec<Account> = Vec::new();
        for (number, plan) in plans.iter().enumerate() {
            if accounts.len() <= plan.account {
                accounts.resize_with(plan.account + 1, Account::default);
            }
            accounts[plan.account].endpoints.push(number);
        }
        let lanes = [FIRST, RETRY, SLOW].into_iter().flat_map(|lane| [lane].repeat(settings.workers[lane]));
        let mut world = Self {
            now: 0,
            rng: fastrand::Rng::with_seed(seed),
            accounts,
            endpoints: plans.iter().copied().map(Endpoint::new).collect(),
            deliveries: Vec::new(),
            workers: lanes.map(Worker::new).collect(),
            runs: Vec::new(),
            queues: Default::default(),
            free: Vec::new(),
            events: BinaryHeap::new(),
            scheduled: 0,
        };
        world.after(SWEEP, Event::Sweep);
        for (endpoint, plan) in plans.iter().enumerate() {
            let (wait, count) = plan.traffic.next(&mut world.rng);
            world.after(plan.from + wait, Event::Born { endpoint, count });
        }
        world
    }

    /// Goes on until this time.
    pub(crate) fn run_until(&mut self, until: Millis) {
        while self.events.peek().is_some_and(|Reverse(next)| next.at <= until) {
            let Some(Reverse(Scheduled { at, event, .. })) = self.events.pop() else { break };
            self.now = at;
            self.happen(event);
        }
        self.now = until;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Born { endpoint, count } => self.born(endpoint, count),
            Event::Sent { lane, message } => {
                let account = self.payer(&message);
                self.queues[lane].push(account, message);
                self.wake_worker(lane);
            }
            Event::Receive { worker } => self.receive(worker),
            Event::Handled { worker } => self.ended_one(worker),
            Event::Patience { worker, batch } => self.patience(worker, batch),
            Event::Slow { worker, endpoint } => self.slow(worker, endpoint),
            Event::CallNow { account } => self.call_now(account),
            Event::Answered { maker: Maker::Worker(worker), delivery, took, is_acknowledged } => {
                self.answered_directly(worker, delivery, took, is_acknowledged);
            }
            Event::Answered { maker: Maker::Run(run), delivery, took, is_acknowledged } => {
                self.answered_run(run, delivery, took, is_acknowledged);
            }
            Event::RunBegins { worker, account, token } => self.run_begins(worker, account, token),
            Event::RunPolls { run } => self.run_polls(run),
            Event::RunGoesOn { run } => self.go_on(run),
            Event::Sweep => {
                (0..self.accounts.len()).for_each(|account| self.sweep(account));
                self.after(SWEEP, Event::Sweep);
            }
        }
    }

    pub(crate) fn after(&mut self, wait: Millis, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse(Scheduled { at: self.now + wait, number: self.scheduled, event }));
    }

    /// Returns a time that AWS takes: at least this, and up to half of it more.
    pub(crate) fn jitter(&mut self, least: Millis) -> Millis {
        least + self.rng.u64(..=least / 2)
    }

    // ---- Queues ----

    pub(crate) fn send(&mut self, lane: usize, message: Message, delay: Millis) {
        let account = self.payer(&message);
        self.accounts[account].usage.sqs_requests += 1.0;
        let wait = delay + self.jitter(SQS_SEND);
        self.after(wait, Event::Sent { lane, message });
    }

    /// Lets an idle worker receive what its lane holds.
    pub(crate) fn wake_worker(&mut self, lane: usize) {
        let idle = self.workers.iter().position(|worker| worker.lane == lane && worker.is_idle);
        if let Some(worker) = idle.filter(|_| !self.queues[lane].is_empty()) {
            self.workers[worker].is_idle = false;
            let wait = self.jitter(SQS_RECEIVE);
            self.after(wait, Event::Receive { worker });
        }
    }

    /// Takes a batch from a queue.
    pub(crate) fn take(&mut self, lane: usize, most: usize) -> Vec<Message> {
        (0..most).map_while(|_| self.queues[lane].pop()).collect()
    }

    /// Returns the account of a message, which is its message group.
    pub(crate) fn payer(&self, message: &Message) -> usize {
        match *message {
            Message::Attempt { delivery, .. } => self.account_of(delivery),
            Message::Drain { account, .. } => account,
        }
    }

    // ---- Results ----

    /// Returns the sum of what happened to these endpoints.
    pub(crate) fn tally(&self, endpoints: impl IntoIterator<Item = usize>) -> Tally {
        let mut sum = Tally::default();
        endpoints.into_iter().for_each(|endpoint| sum.merge(&self.endpoints[endpoint].tally));
        sum
    }

    /// Returns the pending deliveries of an endpoint.
    pub(crate) fn pending(&self, endpoint: usize) -> impl Iterator<Item = &Delivery> {
        self.deliveries.iter().filter(move |delivery| delivery.is_pending && delivery.endpoint == endpoint)
    }

    /// Returns how long the oldest delivery has waited for its first attempt.
    pub(crate) fn oldest(&self, endpoint: usize) -> Millis {
        let waiting = self.pending(endpoint).filter(|delivery| delivery.failed == 0 && !delivery.is_leased);
        waiting.map(|delivery| self.now - delivery.born).max().unwrap_or_default()
    }

    /// Asserts that no delivery was lost: each one was delivered, has failed, is held or is pending.
    pub(crate) fn assert_nothing_lost(&self) {
        let mut pending = vec![0; self.endpoints.len()];
        for delivery in self.deliveries.iter().filter(|delivery| delivery.is_pending) {
            pending[delivery.endpoint] += 1;
        }
        for (endpoint, pending) in self.endpoints.iter().zip(pending) {
            let Tally { born, delivered, failed, held, .. } = endpoint.tally;
            assert_eq!(born, delivered + failed + held + pending, "{:?}", endpoint.plan);
        }
    }
}

/// A fair queue of SQS: while an account has more than half of the messages in flight, those of others go first.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    waiting: BTreeMap<usize, VecDeque<(u64, Message)>>,
    sent: u64,
    /// The messages in flight, of each account and in all.
    in_flight: BTreeMap<usize, usize>,
    all_in_flight: usize,
}

impl Lane {
    fn push(&mut self, account: usize, message: Message) {
        self.sent += 1;
        self.waiting.entry(account).or_default().push_back((self.sent, message));
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn pop(&mut self) -> Option<Message> {
        let is_noisy =
            |account: usize| 2 * self.in_flight.get(&account).copied().unwrap_or_default() > self.all_in_flight;
        let first = self.waiting.iter().filter_map(|(account, messages)| Some((messages.front()?.0, *account)));
        let (_, (_, account)) = first.map(|first| (is_noisy(first.1), first)).min()?;
        let messages = self.waiting.get_mut(&account)?;
        let (_, message) = messages.pop_front()?;
        if messages.is_empty() {
            self.waiting.remove(&account);
        }
        *self.in_flight.entry(account).or_default() += 1;
        self.all_in_flight += 1;
        Some(message)
    }

    /// Notes that a message of an account is handled.
    pub(crate) fn done(&mut self, account: usize) {
        *self.in_flight.entry(account).or_default() -= 1;
        self.all_in_flight -= 1;
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Scheduled {}
