//! The state of the limits: token buckets, what is drawn at random, and the report.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use tokio::time::Instant;

use super::report::{Access, Reason, Refusal, Report, Resource, Use};
use super::{Limits, Rate};

/// Limits calls to DynamoDB and S3, once it was told how. Until then it costs nothing.
pub struct Limiter {
    is_on: AtomicBool,
    state: Mutex<State>,
}

struct State {
    limits: Limits,
    /// By table or index, partition key and kind of units. Without a partition key it is that of the whole.
    buckets: HashMap<(Resource, Option<String>, Access), Bucket>,
    /// Those of S3, by prefix.
    prefixes: HashMap<(String, Access), Bucket>,
    random: Rng,
    report: Report,
}

/// A token bucket that admits a call while it holds anything. The call may leave it in debt, because the cost of a
/// read is known only afterwards. In `t` seconds a bucket gives at most `rate * t + burst` units and one call's debt.
struct Bucket {
    rate: Rate,
    level: f64,
    filled_at: Instant,
}

impl Default for Limiter {
    fn default() -> Self {
        Self { is_on: AtomicBool::new(false), state: Mutex::new(State::new(Limits::unlimited())) }
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

    pub(in crate::aws) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// Counts a call, and returns how long it takes.
    pub(in crate::aws) fn begin(&self, is_transaction: bool) -> Duration {
        let mut state = self.state();
        state.report.calls += 1;
        let latency = if is_transaction { state.limits.transaction_latency } else { state.limits.latency };
        latency.draw(&mut state.random)
    }

    /// Draws when a change of a transaction shows that is applied now and ends after `rest`.
    pub(in crate::aws) fn shows_at(&self, rest: Duration) -> Instant {
        Instant::now() + rest.mul_f64(self.state().random.f64())
    }

    /// Draws until when a change that is acknowledged now lags. Without a lag it never does.
    pub(in crate::aws) fn lags_until(&self) -> Option<Instant> {
        let mut state = self.state();
        let lag = state.limits.lag;
        (!lag.is_zero()).then(|| Instant::now() + lag.mul_f64(state.random.f64()))
    }

    /// Takes what all parts of a call use. If a bucket is empty, takes nothing, and returns for each part whether it
    /// was refused.
    pub(in crate::aws) fn take(&self, operation: &str, parts: &[Vec<Use>]) -> Result<(), Vec<Option<Refusal>>> {
        let now = Instant::now();
        let mut state = self.state();
        let mut refusal = |used: &Use| Some(Refusal::new(operation, used, state.shortage(used, now)?));
        let refusals: Vec<_> = parts.iter().map(|uses| uses.iter().find_map(&mut refusal)).collect();
        if refusals.iter().any(Option::is_some) {
            state.report.refused.extend(refusals.iter().flatten().cloned());
            return Err(refusals);
        }
        for used in parts.iter().flatten() {
            state.take(used, now);
        }
        Ok(())
    }

    /// Refuses the parts of a call that met a transaction. Returns for each part whether it was refused.
    pub(in crate::aws) fn refuse(
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
    pub(in crate::aws) fn settle(&self, uses: &[Use]) {
        let now = Instant::now();
        let mut state = self.state();
        for used in uses {
            state.take(used, now);
        }
    }

    /// Returns how long it takes until S3 begins to answer.
    pub(in crate::aws) fn begin_object(&self) -> Duration {
        let State { limits, random, .. } = &mut *self.state();
        limits.objects.first_byte.draw(random)
    }

    /// Counts a request to S3. Returns whether its prefix admits it.
    pub(in crate::aws) fn take_object(&self, prefix: &str, access: Access) -> bool {
        let now = Instant::now();
        let State { limits, prefixes, report, .. } = &mut *self.state();
        let (rate, admitted) = match access {
            Access::Read => (limits.objects.gets, &mut report.objects.gets),
            Access::Write => (limits.objects.puts, &mut report.objects.puts),
        };
        let bucket = filled(prefixes, (prefix.to_owned(), access), rate, now);
        let is_admitted = bucket.level > 0.0;
        if is_admitted {
            bucket.level -= 1.0;
            *admitted += 1;
        } else {
            report.objects.refused += 1;
        }
        is_admitted
    }

    /// Counts the bytes of an object, and returns how long they are under way.
    pub(in crate::aws) fn move_bytes(&self, access: Access, bytes: usize) -> Duration {
        let State { limits, report, .. } = &mut *self.state();
        let sum = match access {
            Access::Read => &mut report.objects.read_bytes,
            Access::Write => &mut report.objects.written_bytes,
        };
        *sum += bytes as u64;
        let bytes = f64::from(u32::try_from(bytes).unwrap_or(u32::MAX));
        Duration::try_from_secs_f64(bytes / limits.objects.bytes_per_second).unwrap_or_default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn new(limits: Limits) -> Self {
        let random = Rng::with_seed(limits.seed);
        Self { limits, buckets: HashMap::new(), prefixes: HashMap::new(), random, report: Report::default() }
    }

    /// Returns which of the buckets is empty that this use needs, if one is.
    fn shortage(&mut self, used: &Use, now: Instant) -> Option<Reason> {
        if self.limits.only_table.is_some_and(|table| table != used.resource.table) {
            return None;
        }
        if used.partition.is_some() && self.bucket(used, true, now).level <= 0.0 {
            return Some(Reason::Partition);
        }
        (self.bucket(used, false, now).level <= 0.0).then_some(Reason::Table)
    }

    /// Takes the units, even if the buckets do not hold as many.
    fn take(&mut self, used: &Use, now: Instant) {
        if used.partition.is_some() {
            self.bucket(used, true, now).level -= used.units;
        }
        self.bucket(used, false, now).level -= used.units;
        self.report.add(used);
    }

    fn bucket(&mut self, used: &Use, of_partition: bool, now: Instant) -> &mut Bucket {
        let throughput = if of_partition { self.limits.partition } else { self.limits.table };
        let partition = used.partition.clone().filter(|_| of_partition);
        let key = (used.resource.clone(), partition, used.access);
        filled(&mut self.buckets, key, throughput.of(used.access), now)
    }
}

/// Returns a bucket with what it earned until now.
fn filled<K: Eq + Hash>(buckets: &mut HashMap<K, Bucket>, key: K, rate: Rate, now: Instant) -> &mut Bucket {
    let bucket = buckets.entry(key).or_insert(Bucket { rate, level: rate.burst, filled_at: now });
    let earned = bucket.rate.per_second * now.duration_since(bucket.filled_at).as_secs_f64();
    bucket.level = (bucket.level + earned).min(bucket.rate.burst);
    bucket.filled_at = now;
    bucket
}

#[cfg(test)]
mod tests {
    use super::super::Throughput;
    use super::*;

    fn read(partition: &str, units: f64) -> Use {
        let partition = Some(partition.to_owned());
        Use { resource: Resource::table("t"), partition, access: Access::Read, units }
    }

    fn state() -> State {
        let throughput = |units| Throughput { read: Rate::with_a_second(units), write: Rate::UNLIMITED };
        State::new(Limits { partition: throughput(10.0), table: throughput(100.0), ..Limits::unlimited() })
    }

    #[test]
    fn a_debt_is_paid_before_the_next_call() {
        let (mut state, start) = (state(), Instant::now());
        state.take(&read("a", 25.0), start);
        let at = |millis| start + Duration::from_millis(millis);
        assert_eq!(state.shortage(&read("a", 1.0), at(1_500)), Some(Reason::Partition));
        assert_eq!(state.shortage(&read("b", 1.0), at(1_500)), None);
        assert_eq!(state.shortage(&read("a", 1.0), at(1_600)), None);
    }

    #[test]
    fn a_bucket_never_holds_more_than_its_burst() {
        let (mut state, start) = (state(), Instant::now());
        state.take(&read("a", 1.0), start);
        let later = start + Duration::from_hours(1);
        assert_eq!(state.shortage(&read("a", 1.0), later), None);
        state.take(&read("a", 10.0), later);
        assert_eq!(state.shortage(&read("a", 1.0), later), Some(Reason::Partition));
    }
}
