//! The first and the retry lane: attempts that are made by whoever receives their messages.

use std::collections::VecDeque;

use common::ids::EndpointId;
use uuid::Uuid;
use webhooks::promptness::Promptness;

use crate::delivery::Delivery;
use crate::figures::{BATCH, DIRECT_IN_FLIGHT, DYNAMO, INVOKE, Millis, SECOND, SLOW_AFTER};
use crate::world::{Event, Maker, Message, SLOW, World};

/// A place for one invocation at a time, with its instance of the function.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) lane: usize,
    pub(crate) is_idle: bool,
    pub(crate) promptness: Promptness,
    /// The number of the batch.
    batch: u64,
    /// What the invocation still waits for: attempts, runs, and the handling of the messages.
    pub(crate) open: usize,
    groups: Vec<Group>,
    began_at: Millis,
    /// The account of each message of the batch.
    payers: Vec<usize>,
}

/// The messages of a batch for one endpoint.
#[derive(Debug)]
struct Group {
    endpoint: usize,
    waiting: VecDeque<u32>,
}

impl Worker {
    pub(crate) fn new(lane: usize) -> Self {
        Self {
            lane,
            is_idle: true,
            promptness: Promptness::default(),
            batch: 0,
            open: 0,
            groups: Vec::new(),
            began_at: 0,
            payers: Vec::new(),
        }
    }
}

impl World {
    /// Begins an invocation with what the worker's queue holds.
    pub(crate) fn receive(&mut self, worker: usize) {
        let lane = self.workers[worker].lane;
        let messages = self.take(lane, BATCH);
        if messages.is_empty() {
            self.workers[worker].is_idle = true;
            return;
        }
        let payers: Vec<usize> = messages.iter().map(|message| self.payer(message)).collect();
        let share = 1.0 / payers.len() as f64;
        for (number, payer) in payers.iter().enumerate() {
            let usage = &mut self.accounts[*payer].usage;
            // One request receives the batch and one deletes it. The invocation reads each account once.
            usage.sqs_requests += 2.0 * share;
            usage.invocations += share;
            usage.read_units += f64::from(u8::from(!payers[..number].contains(payer)));
        }
        let (began_at, now) = (self.now + INVOKE, self.now);
        let begins = self.jitter(INVOKE) + DYNAMO;
        {
            let worker = &mut self.workers[worker];
            worker.batch += 1;
            (worker.open, worker.began_at, worker.payers) = (0, began_at, payers);
            worker.groups.clear();
        }
        if lane == SLOW {
            for message in messages {
                if let Message::Drain { account, token } = message {
                    self.workers[worker].open += 1;
                    self.after(begins, Event::RunBegins { worker, account, token });
                }
            }
            return;
        }
        // From here on it is the time at which the invocation has read the accounts.
        self.now += begins;
        self.handle(worker, messages);
        self.now = now;
    }

    fn handle(&mut self, worker: usize, messages: Vec<Message>) {
        let mut callers = Vec::new();
        for message in messages {
            let Message::Attempt { delivery, stamp } = message else { continue };
            let Delivery { endpoint, stamp: current, is_leased, .. } = self.deliveries[delivery as usize];
            if stamp != current || is_leased {
                continue;
            }
            if !self.endpoints[endpoint].is_prompt {
                if self.wait(delivery) {
                    callers.push(self.endpoints[endpoint].plan.account);
                }
                continue;
            }
            let groups = &mut self.workers[worker].groups;
            match groups.iter_mut().find(|group| group.endpoint == endpoint) {
                Some(group) => group.waiting.push_back(delivery),
                None => groups.push(Group { endpoint, waiting: [delivery].into() }),
            }
        }
        self.call_all(callers);
        // The messages that wait are written, and then the drain is called.
        self.workers[worker].open += 1;
        self.after(2 * DYNAMO, Event::Handled { worker });
        for group in 0..self.workers[worker].groups.len() {
            for _ in 0..DIRECT_IN_FLIGHT {
                self.begin_next(worker, group);
            }
        }
        let batch = self.workers[worker].batch;
        if self.workers[worker].groups.iter().any(|group| !group.waiting.is_empty()) {
            self.after(SLOW_AFTER, Event::Patience { worker, batch });
        }
    }

    /// Calls the drains of accounts once their deliveries are written.
    fn call_all(&mut self, mut accounts: Vec<usize>) {
        accounts.sort_unstable();
        accounts.dedup();
        for account in accounts {
            self.after(2 * DYNAMO, Event::CallNow { account });
        }
    }

    fn begin_next(&mut self, worker: usize, group: usize) {
        let Group { waiting, .. } = &mut self.workers[worker].groups[group];
        let Some(delivery) = waiting.pop_front() else { return };
        self.workers[worker].open += 1;
        self.attempt(Maker::Worker(worker), delivery);
    }

    pub(crate) fn slow(&mut self, worker: usize, endpoint: usize) {
        if self.workers[worker].promptness.lagged(id(endpoint)) && self.endpoints[endpoint].is_prompt {
            self.endpoints[endpoint].is_prompt = false;
            let account = self.endpoints[endpoint].plan.account;
            self.accounts[account].usage.write_units += 1.0;
        }
    }

    pub(crate) fn patience(&mut self, worker: usize, batch: u64) {
        if self.workers[worker].batch != batch {
            return;
        }
        let waiting: Vec<u32> =
            self.workers[worker].groups.iter_mut().flat_map(|group| group.waiting.drain(..)).collect();
        if waiting.is_empty() {
            return;
        }
        let mut callers = Vec::new();
        for delivery in waiting {
            if self.wait(delivery) {
                callers.push(self.account_of(delivery));
            }
        }
        self.call_all(callers);
        self.workers[worker].open += 1;
        self.after(2 * DYNAMO, Event::Handled { worker });
    }

    pub(crate) fn answered_directly(&mut self, worker: usize, delivery: u32, took: Millis, is_acknowledged: bool) {
        let endpoint = self.deliveries[delivery as usize].endpoint;
        if took < SECOND {
            self.workers[worker].promptness.answered(id(endpoint));
        }
        let account = self.account_of(delivery);
        if let Some(wake_at) = self.record(delivery, is_acknowledged) {
            self.call_later(account, wake_at);
        }
        if let Some(group) = self.workers[worker].groups.iter().position(|group| group.endpoint == endpoint) {
            self.begin_next(worker, group);
        }
        self.ended_one(worker);
    }

    /// Ends the invocation if it waits for nothing else.
    pub(crate) fn ended_one(&mut self, worker: usize) {
        let ended = &mut self.workers[worker];
        ended.open -= 1;
        if ended.open > 0 {
            return;
        }
        let seconds = (self.now - ended.began_at) as f64 / SECOND as f64;
        ended.is_idle = true;
        let (lane, payers) = (ended.lane, std::mem::take(&mut ended.payers));
        for payer in &payers {
            self.accounts[*payer].usage.function_seconds += seconds / payers.len() as f64;
            self.queues[lane].done(*payer);
        }
        self.wake_worker(lane);
    }
}

/// Returns the id of an endpoint, by its number.
pub(crate) fn id(endpoint: usize) -> EndpointId {
    Uuid::from_u128(endpoint as u128).into()
}
