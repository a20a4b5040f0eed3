//! Keeping a replica right: load once, then catch up by one Query when a second has passed.
//!
//! No clock decides what is right, only when to look: a Query is due when *either* clock says that a
//! second has passed since the last successful one was sent, or the wall clock went back (a frozen
//! instance's monotonic clock may stand still). A request dropped in the middle drops its Query with it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::Shared;

use crate::clock::{Clock, Moment};
use crate::error::ApiError;
use crate::market::{Batch, Change, Log, Record};
use crate::store::StoreError;

/// A Query is due after so long.
const DUE: Duration = Duration::from_secs(1);
/// What an instance answers from was true so long ago at most.
const STALE: Duration = Duration::from_secs(2);
/// Lambda gives the init phase ten seconds; a load that needs more goes on in the first invocation.
const WARM_UP: Duration = Duration::from_secs(7);

/// An index over a stream's records.
pub trait View: Send + Sync + 'static {
    /// What it indexes.
    type Record: Record;

    /// An index over all of these.
    fn build(records: Vec<Self::Record>) -> Self;

    /// Takes in one change.
    fn apply(&mut self, change: Change<Self::Record, <Self::Record as Record>::Id>);
}

/// A view that follows its stream. Clones share it.
pub struct Replica<V: View>(Arc<Inner<V>>);

struct Inner<V: View> {
    log: Log<V::Record>,
    clock: Arc<dyn Clock>,
    state: RwLock<Option<State<V>>>,
    /// One catch-up at a time; others wait for it and find themselves caught up.
    following: tokio::sync::Mutex<()>,
    loading: Mutex<Option<Loading>>,
}

struct State<V> {
    view: V,
    cursor: u64,
    /// When the last successful Query was sent.
    caught_up: Moment,
}

type Loading = Shared<Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send>>>;

impl<V: View> Clone for Replica<V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<V: View> Replica<V> {
    /// An empty replica, loaded by its first use.
    pub fn new(log: Log<V::Record>, clock: Arc<dyn Clock>) -> Self {
        let (state, following, loading) = (RwLock::new(None), tokio::sync::Mutex::default(), Mutex::default());
        Self(Arc::new(Inner { log, clock, state, following, loading }))
    }

    /// Loads in the init phase, as far as its time allows.
    pub async fn warm_up(&self) {
        match tokio::time::timeout(WARM_UP, self.load()).await {
            Ok(Err(error)) => tracing::warn!(%error, "the replica is loaded by the first request instead"),
            Err(_) => tracing::warn!("the replica's load goes on in the first request"),
            Ok(Ok(())) => {}
        }
    }

    /// Answers from one state that holds every change committed more than two seconds ago.
    pub async fn read<T>(&self, answer: impl FnOnce(&V) -> T) -> Result<T, ApiError> {
        let inner = &self.0;
        if !inner.is_fresh(DUE) {
            let _turn = inner.following.lock().await;
            if !inner.is_fresh(DUE) {
                self.catch_up().await?;
            }
        }
        let state = inner.state.read().unwrap_or_else(PoisonError::into_inner);
        let state = state.as_ref().ok_or_else(|| ApiError::Unavailable("the replica is not loaded".to_owned()))?;
        Ok(answer(&state.view))
    }

    async fn catch_up(&self) -> Result<(), ApiError> {
        let inner = &self.0;
        let Some(cursor) = inner.cursor() else {
            return Ok(self.load().await?);
        };
        let sent = Moment::of(&*inner.clock);
        match inner.log.since(cursor).await {
            Ok(batches) => {
                if !inner.apply(batches, sent) {
                    tracing::warn!(stream = V::Record::STREAM, "a gap in the log: the replica is loaded afresh");
                    return Ok(self.load().await?);
                }
                Ok(())
            }
            Err(_) if inner.is_fresh(STALE) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Joins a load under way or starts one. The load is a task of its own, so that a request that gives
    /// up does not throw away what has been read.
    async fn load(&self) -> Result<(), StoreError> {
        let loading = {
            let mut slot = self.0.loading.lock().unwrap_or_else(PoisonError::into_inner);
            let under_way = slot.as_ref().filter(|loading| loading.peek().is_none()).cloned();
            under_way.unwrap_or_else(|| slot.insert(Arc::clone(&self.0).spawn_load()).clone())
        };
        loading.await
    }
}

impl<V: View> Inner<V> {
    fn spawn_load(self: Arc<Self>) -> Loading {
        let task = tokio::spawn(async move { self.load().await });
        let outcome = task.map(|joined| match joined {
            Ok(outcome) => outcome,
            Err(error) => Err(StoreError::Unavailable(error.to_string())),
        });
        let outcome: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(outcome);
        outcome.shared()
    }

    /// Head first, then the entities, then the log behind that head: see [`crate::market::Log`].
    async fn load(&self) -> Result<(), StoreError> {
        let cursor = self.log.head().await?;
        let mut view = V::build(self.log.scan().await?);
        let caught_up = Moment::of(&*self.clock);
        let batches = self.log.since(cursor).await?;
        let Some(cursor) = advance(&mut view, cursor, batches) else {
            return Err(StoreError::Unavailable("the log has a gap".to_owned()));
        };
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = Some(State { view, cursor, caught_up });
        Ok(())
    }

    /// Takes in batches read after a Query sent at `sent`; false if there is a gap.
    fn apply(&self, batches: Vec<Batch<V::Record>>, sent: Moment) -> bool {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let Some(state) = state.as_mut() else { return false };
        let Some(cursor) = advance(&mut state.view, state.cursor, batches) else { return false };
        state.cursor = cursor;
        state.caught_up = sent;
        true
    }

    fn cursor(&self) -> Option<u64> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(|state| state.cursor)
    }

    /// Whether both clocks say that less than `age` has passed since the last successful Query was sent.
    fn is_fresh(&self, age: Duration) -> bool {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.as_ref().is_some_and(|state| state.caught_up.is_within(age, &*self.clock))
    }
}

/// Applies the contiguous batches behind `cursor` and returns the new cursor; `None` if there is a gap.
fn advance<V: View>(view: &mut V, mut cursor: u64, batches: Vec<Batch<V::Record>>) -> Option<u64> {
    for (seq, changes) in batches {
        if seq != cursor + 1 {
            return None;
        }
        for change in changes {
            view.apply(change);
        }
        cursor = seq;
    }
    Some(cursor)
}
