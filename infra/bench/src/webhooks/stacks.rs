//! Stacks side by side, among which the accounts are divided. Each has an AWS side of its own, because an embedded
//! store does one thing at a time.

use std::num::NonZeroU32;
use std::ops::Range;
use std::time::Duration;

use futures_util::future::try_join_all;
use local::meter::Bill;
use local::workers::BackgroundTask;

use super::bare::BareLoop;
use super::load::{Load, account, burst};
use super::stack::MeteredStack;

/// The stacks of one run.
pub(super) struct Stacks {
    shares: Vec<Share>,
    accounts: u64,
}

/// A stack and the numbers of its accounts.
struct Share {
    stack: MeteredStack,
    accounts: Range<u64>,
}

impl Stacks {
    /// Starts the stacks for a load. Each account has one endpoint, whose URL ends with the account's number.
    pub(super) async fn start(load: Load, base_url: &str) -> Result<Self, String> {
        let mut shares = Vec::new();
        let bound = |stacks: u64| load.endpoints * stacks / load.stores;
        for stack in 0..load.stores {
            let share = Share { stack: MeteredStack::start().await?, accounts: bound(stack)..bound(stack + 1) };
            for number in share.accounts.clone() {
                share.stack.add(account(number), format!("{base_url}/{number}")).await?;
            }
            shares.push(share);
        }
        Ok(Self { shares, accounts: load.endpoints })
    }

    /// Starts the functions of each stack. Their calls are counted.
    pub(super) async fn functions(&self, time_scale: NonZeroU32) -> Result<Vec<BackgroundTask>, String> {
        let started = try_join_all(self.shares.iter().map(|share| share.stack.functions(time_scale))).await?;
        Ok(started.into_iter().flatten().collect())
    }

    /// Returns a bare loop for each stack, which POSTs to this URL.
    pub(super) fn bare_loops(&self, url: &str) -> Result<Vec<BareLoop<'_>>, String> {
        let loops = self.shares.iter().map(|share| BareLoop::new(&share.stack, share.accounts.start, url.to_owned()));
        loops.collect()
    }

    /// Sends events to the accounts in turn, as fast as the queues accept them.
    pub(super) async fn burst(&self, events: u64) -> Result<(), String> {
        let bursts = self.shares.iter().map(|share| {
            let events = self.events_of(share, events);
            burst(&share.stack, events, share.accounts.clone())
        });
        try_join_all(bursts).await.map(drop)
    }

    /// Delivers this many events by bare loops, one for each stack.
    pub(super) async fn deliver_by(&self, loops: &[BareLoop<'_>], events: u64) -> Result<(), String> {
        let runs = self.shares.iter().zip(loops).map(|(share, bare)| bare.run(self.events_of(share, events)));
        try_join_all(runs).await.map(drop)
    }

    /// Returns the CPU time of all AWS sides so far.
    pub(super) fn cpu(&self) -> Duration {
        self.shares.iter().map(|share| share.stack.aws.cpu()).sum()
    }

    /// Returns what the functions of all stacks have called since the last time.
    pub(super) fn take_bill(&self) -> Bill {
        let mut sum = Bill::default();
        for share in &self.shares {
            sum += share.stack.meter.take();
        }
        sum
    }

    /// Returns how many of all events are for the accounts of a share.
    fn events_of(&self, share: &Share, events: u64) -> u64 {
        let bound = |accounts: u64| events * accounts / self.accounts;
        bound(share.accounts.end) - bound(share.accounts.start)
    }
}
