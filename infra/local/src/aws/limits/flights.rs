//! Transactions that are under way, and the calls that meet them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dynoxide::Item;
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, watch};
use tokio::time::Instant;

/// A row of any table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RowKey {
    table: String,
    key: BTreeMap<String, Option<String>>,
}

/// Transactions hold their rows from their arrival until their answer leaves.
#[derive(Default)]
pub(super) struct Flights {
    state: Mutex<State>,
    /// Single writes read-lock it while they are applied, so that no transaction begins meanwhile.
    applying: RwLock<()>,
    is_holding: watch::Sender<bool>,
    /// How many transactions were applied and wait to be released.
    held: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    begun: u64,
    rows: HashMap<RowKey, Flight>,
    /// What eventually consistent reads still see of rows that a transaction has changed.
    lagging: HashMap<RowKey, Disguise>,
}

/// What one row has to do with a transaction that is under way.
struct Flight {
    transaction: u64,
    token: Option<String>,
    disguise: Option<Disguise>,
}

/// What reads see of a row that a transaction changes, until its change shows.
pub(super) struct Disguise {
    /// The row as it was, unless it was not there.
    pub(super) before: Option<Item>,
    /// When the change shows, unless it shows only when the transaction ends.
    pub(super) until: Option<Instant>,
}

/// What a read sees of a row.
pub(super) enum Seen {
    Stored,
    Before(Item),
    Nothing,
}

/// A transaction that holds its rows until it ends.
pub(super) struct Transaction(u64);

/// Why a transaction cannot begin.
pub(super) enum Met {
    /// Other transactions hold the rows for which this says so.
    Others(Vec<bool>),
    /// It is itself under way already.
    Itself,
}

impl RowKey {
    pub(super) fn new(table: &str, key: &Item) -> Self {
        let key = key.iter().map(|(name, value)| (name.clone(), value.to_key_string())).collect();
        Self { table: table.to_owned(), key }
    }
}

impl Flights {
    /// Waits until no transaction begins, and holds that off while a single write is applied.
    pub(super) async fn apply_single(&self) -> RwLockReadGuard<'_, ()> {
        self.applying.read().await
    }

    /// Waits until no single write is half applied.
    pub(super) async fn begin_transaction(&self) -> RwLockWriteGuard<'_, ()> {
        self.applying.write().await
    }

    /// Gives these rows to a transaction, unless another one holds one of them. A token names a transaction that may be
    /// sent several times.
    pub(super) fn take_off(&self, rows: &[RowKey], token: Option<&str>) -> Result<Transaction, Met> {
        let mut state = self.state();
        let holders: Vec<Option<&Flight>> = rows.iter().map(|row| state.rows.get(row)).collect();
        if token.is_some() && holders.iter().flatten().any(|holder| holder.token.as_deref() == token) {
            return Err(Met::Itself);
        }
        if holders.iter().any(Option::is_some) {
            return Err(Met::Others(holders.iter().map(Option::is_some).collect()));
        }
        state.begun += 1;
        let transaction = state.begun;
        for row in rows {
            state.rows.insert(row.clone(), Flight { transaction, token: token.map(str::to_owned), disguise: None });
        }
        Ok(Transaction(transaction))
    }

    /// Disguises rows that a transaction holds, just before it is applied.
    pub(super) fn disguise(&self, rows: impl Iterator<Item = (RowKey, Disguise)>) {
        let mut state = self.state();
        for (row, disguise) in rows {
            if let Some(flight) = state.rows.get_mut(&row) {
                flight.disguise = Some(disguise);
            }
        }
    }

    /// Returns whether any row may look other than it is stored.
    pub(super) fn has_disguises(&self) -> bool {
        let state = self.state();
        !state.lagging.is_empty() || state.rows.values().any(|flight| flight.disguise.is_some())
    }

    /// Returns what a read sees of a row now that may see half of a transaction.
    pub(super) fn seen(&self, row: &RowKey, is_consistent: bool, now: Instant) -> Seen {
        let state = self.state();
        let is_worn = |disguise: &&Disguise| disguise.until.is_none_or(|until| now < until);
        let lagging = state.lagging.get(row).filter(|_| !is_consistent).filter(is_worn);
        let disguise = state.rows.get(row).and_then(|flight| flight.disguise.as_ref()).filter(is_worn);
        match lagging.or(disguise) {
            None => Seen::Stored,
            Some(Disguise { before: Some(before), .. }) => Seen::Before(before.clone()),
            Some(Disguise { before: None, .. }) => Seen::Nothing,
        }
    }

    /// Gives a transaction's rows back. Eventually consistent reads go on to see each as it was until `lags_until`, which
    /// is asked for every row.
    pub(super) fn land(&self, transaction: &Transaction, lags_until: impl Fn() -> Option<Instant>) {
        let mut state = self.state();
        let State { rows, lagging, .. } = &mut *state;
        let now = Instant::now();
        lagging.retain(|_, disguise| disguise.until.is_some_and(|until| now < until));
        let mut landed: Vec<_> = rows.extract_if(|_, flight| flight.transaction == transaction.0).collect();
        // In an order of their own, so that the same seed makes the same rows lag.
        landed.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        for (row, flight) in landed {
            if let (Some(disguise), Some(until)) = (flight.disguise, lags_until()) {
                lagging.insert(row, Disguise { until: Some(until), ..disguise });
            }
        }
    }

    /// Returns for each row whether a transaction holds it.
    pub(super) fn held_rows(&self, rows: &[RowKey]) -> Vec<bool> {
        let state = self.state();
        rows.iter().map(|row| state.rows.contains_key(row)).collect()
    }

    /// Keeps transactions under way after they were applied, or no longer.
    pub(super) fn hold(&self, is_holding: bool) {
        self.is_holding.send_replace(is_holding);
    }

    pub(super) fn is_holding(&self) -> bool {
        *self.is_holding.borrow()
    }

    /// Waits until this many transactions are held.
    pub(super) async fn wait_until_held(&self, transactions: usize) {
        let _ = self.held.subscribe().wait_for(|held| *held >= transactions).await;
    }

    /// Waits, if transactions are held, until they are released.
    pub(super) async fn wait_for_release(&self) {
        self.held.send_modify(|held| *held += 1);
        let _ = self.is_holding.subscribe().wait_for(|is_holding| !*is_holding).await;
        self.held.send_modify(|held| *held -= 1);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
