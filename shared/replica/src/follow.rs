//! Keeps a replica up to date. It is loaded once, and then catches up by one Query whenever a second has passed, or by
//! two if the log grows fast: see [`progress`](super::progress).
//!
//! Clocks never decide what is right, only when to look. A Query is due if *either* clock says that a second has passed
//! since the last successful Query was sent, or if the wall clock went back. The monotonic clock alone would not do,
//! because it may stand still while the instance is frozen. A request that is dropped in the middle drops its Query as
//! well, and the Query is then still due.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::Shared;

use crate::base::{Columnar, Load};
use crate::objects::Objects;
use common::backoff::full_jitter;
use common::clock::{Clock, MAX_STALENESS, Moment};
use common::store::StoreError;
use market::{Batch, Change, GapWatch, Log, LogPosition, Record, contiguous};

use super::beside;
use super::progress::Progress;

/// How long the init phase, which Lambda ends after ten seconds, waits for the load. A load that takes longer goes on
/// in the first invocation.
const WARM_UP_TIMEOUT: Duration = Duration::from_secs(7);

/// More changes than this are applied beside the runtime, because they take more than some milliseconds.
const MAX_CHANGES_ON_RUNTIME: usize = 500;

/// The pause before a load goes on after a failure is below this at first. Then the bound doubles with each failure ...
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// ... this many times, up to 1.6 seconds.
const MAX_DOUBLINGS: u32 = 5;

/// An index over a stream's records.
pub trait View: Send + Sync + 'static {
    type Record: Columnar;

    /// Builds an index over all of these records. No id may be among them twice.
    fn build(parts: Vec<<Self::Record as Columnar>::Columns>) -> Self;

    /// Applies changes, in their order.
    fn apply(&mut self, changes: Vec<Change<Self::Record>>);
}

/// A view that follows its stream. Clones share it.
pub struct Replica<V: View>(Arc<Inner<V>>);

struct Inner<V: View> {
    log: Log<V::Record>,
    clock: Arc<dyn Clock>,
    state: RwLock<Option<ReplicaState<V>>>,
    /// Held during a catch-up. Other requests wait for it, and then find the replica caught up.
    following: tokio::sync::Mutex<()>,
    loading: Mutex<Option<Loading>>,
    /// What a load has read so far. It outlives the load, so the next one has only the rest to read.
    load: tokio::sync::Mutex<Load<V::Record>>,
}

struct ReplicaState<V> {
    view: V,
    /// Where in the log the view stands.
    progress: Progress,
}

/// How far a replica got in following its log.
enum Followed {
    /// To the end of the log.
    End,
    /// To a gap, which nothing can bring a state across.
    Gap,
    /// To the end of a page, after which loading the base is less work than reading on.
    Backlog,
}

type Loading = Shared<Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send>>>;

impl<V: View> Clone for Replica<V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<V: View> Replica<V> {
    /// Makes an empty replica. Its first use loads it.
    pub fn new(log: Log<V::Record>, objects: Objects, clock: Arc<dyn Clock>) -> Self {
        let load = tokio::sync::Mutex::new(Load::new(log.clone(), objects, Arc::clone(&clock)));
        let (state, following, loading) = (RwLock::new(None), tokio::sync::Mutex::default(), Mutex::default());
        Self(Arc::new(Inner { log, clock, state, following, loading, load }))
    }

    /// Starts the load in the init phase, and waits for it as long as the time allows.
    pub async fn warm_up(&self) -> Result<(), String> {
        match tokio::time::timeout(WARM_UP_TIMEOUT, self.load()).await {
            Ok(Err(error)) => Err(format!("the first request has to load the replica: {error}")),
            Err(_) => Err("the replica is still loading, and the first request waits for it".to_owned()),
            Ok(Ok(())) => Ok(()),
        }
    }

    /// Answers from one state that holds every change committed more than two seconds ago.
    ///
    /// The instance may be frozen in the middle of a load or of a Query, and what it reads is old when it wakes up. So
    /// the clocks are looked at again after each catch-up.
    pub async fn read<T>(&self, answer: impl FnOnce(&V) -> T) -> Result<T, StoreError> {
        self.read_positioned(answer).await.map(|(answer, ..)| answer)
    }

    /// Does what [`read`](Self::read) does, and also returns the position in the log of the state that it answered from,
    /// and as of when that state was.
    pub async fn read_positioned<T>(&self, answer: impl FnOnce(&V) -> T) -> Result<(T, u64, Moment), StoreError> {
        let inner = &self.0;
        if inner.is_query_due() {
            let _turn = inner.following.lock().await;
            if inner.is_query_due() {
                self.catch_up().await?;
                if !inner.is_fresh(MAX_STALENESS) {
                    self.catch_up().await?;
                }
            }
        }
        let state = inner.state.read().unwrap_or_else(PoisonError::into_inner);
        let state = state.as_ref().filter(|state| state.progress.is_within(MAX_STALENESS, &*inner.clock));
        let state = state.ok_or_else(|| StoreError::Unavailable("the replica is not up to date".to_owned()))?;
        Ok((answer(&state.view), state.progress.position.seq, state.progress.caught_up))
    }

    /// Returns for how long the replica may have been out of date, or `None` until it is loaded.
    pub fn age(&self) -> Option<Duration> {
        let state = self.0.state.read().unwrap_or_else(PoisonError::into_inner);
        let state = state.as_ref()?;
        Some(state.progress.age(&*self.0.clock))
    }

    /// Follows the log to its end, or only reads the bulk of it if that is due. Loads the replica if it is empty, or if
    /// the base is nearer than the end of the log. If the request gives up in between, what has been applied stays
    /// applied and a load goes on, so that any backlog is worked off in the end.
    async fn catch_up(&self) -> Result<(), StoreError> {
        if self.0.position().is_none() || self.0.is_loading() {
            return self.load().await;
        }
        if self.0.is_bulk_due() {
            return match self.0.read_bulk().await {
                Err(error) if !self.0.is_fresh(MAX_STALENESS) => Err(error),
                _ => Ok(()),
            };
        }
        match self.0.follow().await {
            Ok(Followed::End) => Ok(()),
            // The next request goes on.
            _ if self.0.is_fresh(MAX_STALENESS) => Ok(()),
            Err(error) => Err(error),
            Ok(followed) => {
                if let Followed::Gap = followed {
                    tracing::warn!(stream = V::Record::STREAM, "the log has a gap, so the replica is loaded again");
                }
                self.0.drop_state();
                self.load().await
            }
        }
    }

    /// Joins the load that is under way, or starts one. The load is a task of its own, so a request that gives up does
    /// not throw away what has been read.
    async fn load(&self) -> Result<(), StoreError> {
        let loading = {
            let mut slot = self.0.loading.lock().unwrap_or_else(PoisonError::into_inner);
            slot.get_or_insert_with(|| Arc::clone(&self.0).spawn_load()).clone()
        };
        loading.await
    }
}

impl<V: View> Inner<V> {
    fn spawn_load(self: Arc<Self>) -> Loading {
        let task = tokio::spawn(async move {
            let ended = Ended(&self.loading);
            let outcome = self.load().await;
            drop(ended);
            outcome
        });
        let outcome =
            task.map(|joined| joined.unwrap_or_else(|_| Err(StoreError::Defect("loading panicked".to_owned()))));
        let outcome: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(outcome);
        outcome.shared()
    }

    /// Reads the base or the entities, and then the log after them: see [`crate::base::Load`]. There is no state meanwhile,
    /// so the load goes on after every failure that may pass.
    async fn load(&self) -> Result<(), StoreError> {
        let mut load = self.load.lock().await;
        let mut failures = 0;
        let snapshot = loop {
            let error = match load.step().await {
                Ok(snapshot) => break snapshot,
                Err(error @ (StoreError::Conflict | StoreError::Throttled | StoreError::Unavailable(_))) => error,
                Err(error) => return Err(error),
            };
            if failures >= MAX_DOUBLINGS {
                tracing::warn!(stream = V::Record::STREAM, %error, failures, "the load goes on after a pause");
            }
            tokio::time::sleep(full_jitter(FIRST_PAUSE * (1_u32 << failures.min(MAX_DOUBLINGS)))).await;
            failures += 1;
        };
        drop(load);
        let progress = Progress::new(snapshot.end(), snapshot.as_of);
        let state = ReplicaState { view: beside(move || V::build(snapshot.folded())).await?, progress };
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = Some(state);
        Ok(())
    }

    /// Drops the state before another one is read. With ten million records, an instance has no room for both. Until the
    /// other one is there, requests wait for the load.
    fn drop_state(&self) {
        let old = self.state.write().unwrap_or_else(PoisonError::into_inner).take();
        drop(old);
    }

    /// Reads and applies the log, page by page. After the first page, if there are more, asks where the base is: an
    /// instance that was frozen for long may be far behind it.
    async fn follow(self: &Arc<Self>) -> Result<Followed, StoreError> {
        let (mut is_first, mut gap) = (true, GapWatch::default());
        loop {
            let Some(position) = self.position() else { return Ok(Followed::Gap) };
            let sent = Moment::now(&*self.clock);
            let (batches, more) = self.log.since(position.seq).await?;
            match self.take_in(batches, more, sent).await? {
                None => {}
                Some(Followed::Gap) if self.bridge(&mut gap).await? => continue,
                Some(followed) => return Ok(followed),
            }
            if std::mem::take(&mut is_first) && self.is_base_nearer().await {
                return Ok(Followed::Backlog);
            }
        }
    }

    /// Applies the batch behind a gap that only Queries see. Returns false if the gap is one.
    async fn bridge(self: &Arc<Self>, gap: &mut GapWatch) -> Result<bool, StoreError> {
        let Some(LogPosition { mut seq, .. }) = self.position() else { return Ok(false) };
        let mut missing = Vec::new();
        let goes_on = gap.bridge(&self.log, &mut seq, &mut missing).await?;
        self.apply(missing, |_, _| ()).await?;
        Ok(goes_on)
    }

    /// Reads and applies the bulk of the log, up to the first entry that an eventually consistent Query misses.
    async fn read_bulk(self: &Arc<Self>) -> Result<(), StoreError> {
        let Some(position) = self.position() else { return Ok(()) };
        let (batches, _) = self.log.since_eventually(position.seq).await?;
        self.apply(batches, |state, _| state.progress.read_bulk()).await.map(drop)
    }

    /// Applies a page of the log, which was asked for at `sent`. Returns `None` if the next page is to be read.
    async fn take_in(
        self: &Arc<Self>,
        batches: Vec<Batch<V::Record>>,
        more: bool,
        sent: Moment,
    ) -> Result<Option<Followed>, StoreError> {
        let followed = self.apply(batches, move |state, is_whole| match (is_whole, more) {
            (false, _) => Some(Followed::Gap),
            (true, true) => None,
            (true, false) => {
                state.progress.catch_up(sent);
                Some(Followed::End)
            }
        });
        Ok(followed.await?.unwrap_or(Some(Followed::Gap)))
    }

    /// Applies batches up to the first gap, and then does something with the state, which is told whether there is none.
    /// Returns `None` if there is no state. All of it is done, even if the caller gives up meanwhile.
    async fn apply<T: Send + 'static>(
        self: &Arc<Self>,
        batches: Vec<Batch<V::Record>>,
        then: impl FnOnce(&mut ReplicaState<V>, bool) -> T + Send + 'static,
    ) -> Result<Option<T>, StoreError> {
        let (inner, changes) = (Arc::clone(self), batches.iter().map(|(_, changes)| changes.len()).sum::<usize>());
        let apply = move || {
            let mut state = inner.state.write().unwrap_or_else(PoisonError::into_inner);
            let state = state.as_mut()?;
            let is_whole = state.apply(batches);
            Some(then(state, is_whole))
        };
        if changes > MAX_CHANGES_ON_RUNTIME { beside(apply).await } else { Ok(apply()) }
    }

    /// Returns whether the base is nearer than the end of the log. If it cannot be read where the base stands, it is
    /// not.
    async fn is_base_nearer(&self) -> bool {
        let (Some(position), Ok(standing)) = (self.position(), self.log.standing().await) else { return false };
        standing.is_base_nearer_than_end(position)
    }

    fn position(&self) -> Option<LogPosition> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(|state| state.progress.position)
    }

    fn is_loading(&self) -> bool {
        self.loading.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn is_query_due(&self) -> bool {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.as_ref().is_none_or(|state| state.progress.is_query_due(&*self.clock))
    }

    fn is_bulk_due(&self) -> bool {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.as_ref().is_some_and(|state| state.progress.is_bulk_due(&*self.clock))
    }

    /// Returns whether both clocks say that the replica holds everything that was acknowledged this long ago.
    fn is_fresh(&self, age: Duration) -> bool {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.as_ref().is_some_and(|state| state.progress.is_within(age, &*self.clock))
    }
}

impl<V: View> ReplicaState<V> {
    /// Applies batches up to the first gap. Returns whether there is none.
    fn apply(&mut self, batches: Vec<Batch<V::Record>>) -> bool {
        let mut taken = Vec::with_capacity(batches.len());
        let is_whole = contiguous(&mut self.progress.position.seq, batches, &mut taken);
        let changes = changes::<V::Record>(taken);
        self.progress.position.changes += changes.len() as u64;
        self.view.apply(changes);
        is_whole
    }
}

/// Empties the slot of the load under way when the load ends, even by a panic. The next request then starts a new one.
struct Ended<'a>(&'a Mutex<Option<Loading>>);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Returns the changes of batches, in their order.
fn changes<R: Columnar>(batches: Vec<Batch<R>>) -> Vec<Change<R>> {
    batches.into_iter().flat_map(|(_, changes)| changes).collect()
}
