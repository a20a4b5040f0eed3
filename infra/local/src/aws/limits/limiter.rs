//! The switch of the limits, and their state.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use tokio::time::Instant;

use super::bucket::Buckets;
use super::config::Limits;
use super::flights::Flights;
use super::objects::{ObjectRequest, Prefixes};
use super::recovery::Recovery;
use super::report::{Reason, Refusal, Report};
use super::usage::{Access, Use};

/// Limits calls to DynamoDB and S3, once it was told how. Until then it costs nothing.
pub struct Limiter {
    pub(super) flights: Flights,
    recovery: Recovery,
    is_on: AtomicBool,
    state: Mutex<State>,
}

struct State {
    limits: Limits,
    buckets: Buckets,
    prefixes: Prefixes,
    random: Rng,
    report: Report,
}

impl Default for Limiter {
    fn default() -> Self {
        let state = Mutex::new(State::new(Limits::unlimited()));
        Self { flights: Flights::default(), recovery: Recovery::default(), is_on: AtomicBool::new(false), state }
    }
}

impl State {
    fn new(limits: Limits) -> Self {
        let random = Rng::with_seed(limits.seed);
        let (buckets, prefixes) = (Buckets::new(&limits), Prefixes::new(limits.objects));
        Self { limits, buckets, prefixes, random, report: Report::default() }
    }
}

impl Limiter {
    /// Applies these limits from now on. All buckets are full, and the report is empty.
    pub fn set(&self, limits: Limits) {
        *self.state() = State::new(limits);
        self.is_on.store(true, Ordering::Release);
    }

    /// Admits every call from now on, at once.
    pub fn lift(&self) {
        self.is_on.store(false, Ordering::Release);
    }

    /// Returns what happened since the last time this was asked, and forgets it.
    pub fn take_report(&self) -> Report {
        std::mem::take(&mut self.state().report)
    }

    /// Point-in-time recovery and backups, which DynamoDB has with and without limits.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// Keeps every transaction under way, once it was applied, until [`Limiter::release_transactions`]. A test can then
    /// make other calls meet it.
    pub fn hold_transactions(&self) {
        self.flights.hold(true);
    }

    /// Lets the transactions that are held end, and no longer holds any.
    pub fn release_transactions(&self) {
        self.flights.hold(false);
    }

    /// Waits until this many transactions are held.
    pub async fn wait_until_held(&self, transactions: usize) {
        self.flights.wait_until_held(transactions).await;
    }

    pub(in crate::aws) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// Counts a call, and returns how long it takes.
    pub(super) fn begin(&self, is_transaction: bool) -> Duration {
        let mut state = self.state();
        state.report.calls += 1;
        let latency = if is_transaction { state.limits.transaction_latency } else { state.limits.latency };
        latency.draw(&mut state.random)
    }

    /// Draws when a change of a transaction shows that is applied now and ends after `rest`. If transactions are held,
    /// half of the changes show at once, and the others when the transaction ends.
    pub(super) fn shows_at(&self, rest: Duration) -> Option<Instant> {
        let is_holding = self.flights.is_holding();
        let now = Instant::now();
        let mut state = self.state();
        if is_holding { state.random.bool().then_some(now) } else { Some(now + rest.mul_f64(state.random.f64())) }
    }

    /// Draws until when a change that is acknowledged now lags. Without a lag it never does.
    pub(super) fn lags_until(&self) -> Option<Instant> {
        let mut state = self.state();
        let lag = state.limits.lag;
        (!lag.is_zero()).then(|| Instant::now() + lag.mul_f64(state.random.f64()))
    }

    /// Takes what all parts of a call use. If a bucket is empty, takes nothing, and returns for each part whether it
    /// was refused.
    pub(super) fn take(&self, operation: &str, parts: &[Vec<Use>]) -> Result<(), Vec<Option<Refusal>>> {
        let now = Instant::now();
        let mut state = self.state();
        let State { buckets, report, .. } = &mut *state;
        let mut refusal = |used: &Use| Some(Refusal::new(operation, used, buckets.shortage(used, now)?));
        let refusals: Vec<_> = parts.iter().map(|uses| uses.iter().find_map(&mut refusal)).collect();
        if refusals.iter().any(Option::is_some) {
            report.refused.extend(refusals.iter().flatten().cloned());
            return Err(refusals);
        }
        for used in parts.iter().flatten() {
            buckets.take(used, now);
            report.add(used);
        }
        Ok(())
    }

    /// Refuses the parts of a call that met a transaction. Returns for each part whether it was refused.
    pub(super) fn refuse(
        &self,
        operation: &str,
        parts: &[Vec<Use>],
        met: &[bool],
        reason: Reason,
    ) -> Vec<Option<Refusal>> {
        let refusal = |(uses, met): (&Vec<Use>, &bool)| {
            let used = uses.first().filter(|_| *met)?;
            Some(Refusal::new(operation, used, reason))
        };
        let refusals: Vec<_> = parts.iter().zip(met).map(refusal).collect();
        self.state().report.refused.extend(refusals.iter().flatten().cloned());
        refusals
    }

    /// Takes what a call turned out to use beyond what it was admitted with.
    pub(super) fn settle(&self, uses: &[Use]) {
        let now = Instant::now();
        let mut state = self.state();
        for used in uses {
            state.buckets.take(used, now);
            state.report.add(used);
        }
    }

    /// Returns how long it takes until S3 begins to answer.
    pub(super) fn begin_object(&self) -> Duration {
        let mut state = self.state();
        let State { limits, random, .. } = &mut *state;
        limits.objects.first_byte.draw(random)
    }

    /// Counts a request to S3. Returns whether its prefix admits it.
    pub(super) fn take_object(&self, request: &ObjectRequest<'_>) -> bool {
        let mut state = self.state();
        let is_admitted = state.prefixes.take(request.prefix, request.access, Instant::now());
        state.report.objects.count(request.access, is_admitted);
        is_admitted
    }

    /// Counts the bytes of an object, and returns how long they are under way.
    pub(super) fn move_bytes(&self, access: Access, bytes: usize) -> Duration {
        let mut state = self.state();
        state.report.objects.add_bytes(access, bytes);
        state.limits.objects.time_for(bytes)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
