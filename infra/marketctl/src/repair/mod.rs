//! Brings a table in line, after a restore that holds some but not all rows of recent transactions. Nobody may write to
//! the table meanwhile, except to that of webhooks.
//!
//! It may be repeated at any time, also after a crash in the middle: each step leaves a table that readers read right.
//!
//! # The market
//!
//! The entities are taken as they are, because only they have versions: a message changes an entity unless the entity
//! is as new, whatever the log says. So a new base is made of the entities, and the stream *begins anew* with it: in one
//! transaction, its head moves to a number that no batch has had, an empty entry is put there, and the manifest names the
//! new base. Nothing connects that entry to the log before it. Every reader takes this for a gap, and reads the new base.
//! Until then it goes on with what there is.
//!
//! The number is the time in milliseconds. A stream commits far less than a thousand batches a second, so the number is
//! higher than every one before it, also than those that were lost with a damaged table.

pub(crate) mod command;
pub(crate) mod settings;
mod versions;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use accounts::{Accounts, OrderAuthority};
use admin::keys::{ChangedKey, KeyAdmin, KeysPage};
use common::clock::Clock;
use common::ids::{EndpointId, KeyId, UserId};
use common::records::{PublicItem, PublicListing};
use common::rows::Unreadable;
use common::store::StoreError;
use futures_util::{StreamExt, stream};
use market::{ENTITY_PARTITIONS, Log, Market};
use replica::base::{Columnar, Compacted, Compaction};
use replica::objects::Objects;
use serde::Serialize;
use thiserror::Error;
use webhooks::store::{EndpointRepair, WebhookStore};

use crate::progress::Progress;

/// How many users' orders are repaired at the same time.
const CONCURRENT_USERS: usize = 16;
/// How often the entities are read if other runs get ahead.
const MAX_RUNS: usize = 3;

/// A repair of one table.
pub struct Repair {
    clock: Arc<dyn Clock>,
    dry_run: bool,
    /// Whether the service uses the table. Otherwise all endpoints get a new epoch, because instances, queues and the
    /// marketplace may remember later ones than those of a restored table.
    pub is_in_use: bool,
    progress: Progress,
    pub done: Repaired,
}

/// What a repair has done so far, or would have done if it only looks. If it ends early, a repetition finds less.
#[derive(Debug, Default)]
pub struct Repaired {
    pub counts: Vec<Count>,
    /// Keys whose rows were brought in line, and their owners if they are known.
    pub changed_keys: BTreeMap<KeyId, Option<UserId>>,
    /// Endpoints whose rows were brought in line, and their accounts.
    pub changed_endpoints: BTreeMap<EndpointId, UserId>,
    /// Rows that were left as they are.
    pub unreadable: BTreeSet<Unreadable>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Count {
    pub what: &'static str,
    pub looked_at: u64,
    pub changed: u64,
}

/// Why a repair ended early. What it did until then holds.
#[derive(Debug, Error)]
pub enum RepairError {
    /// Somebody wrote to the stream of this name.
    #[error("the stream {0} was written to during the repair")]
    Written(&'static str),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Repaired {
    /// Returns how many of something were looked at, and how many of them changed.
    pub fn count(&self, what: &str) -> (u64, u64) {
        let found = self.counts.iter().find(|count| count.what == what);
        found.map_or((0, 0), |count| (count.looked_at, count.changed))
    }

    fn add(&mut self, what: &'static str, looked_at: u64, changed: u64) {
        match self.counts.iter_mut().find(|count| count.what == what) {
            Some(count) => {
                count.looked_at += looked_at;
                count.changed += changed;
            }
            None => self.counts.push(Count { what, looked_at, changed }),
        }
    }
}

impl Repair {
    /// Makes a repair of a table that nobody uses yet. It writes nothing if it is only a trial.
    pub fn new(clock: Arc<dyn Clock>, dry_run: bool) -> Self {
        Self { clock, dry_run, is_in_use: false, progress: Progress::start(), done: Repaired::default() }
    }

    /// Lets the catalog and the listings begin anew.
    pub async fn market(&mut self, market: &Market, objects: &Objects) -> Result<(), RepairError> {
        Box::pin(self.stream(&Log::<PublicItem>::new(market.clone()), objects)).await?;
        Box::pin(self.stream(&Log::<PublicListing>::new(market.clone()), objects)).await
    }

    async fn stream<R: Columnar>(&mut self, log: &Log<R>, objects: &Objects) -> Result<(), RepairError> {
        self.progress.say(format!("reading the entities of {}", R::STREAM));
        if self.dry_run {
            let mut records = 0;
            for partition in 0..ENTITY_PARTITIONS {
                log.scan(partition, |_| records += 1).await?;
            }
            self.done.add(R::STREAM, records, records);
            return Ok(());
        }
        let standing = log.standing().await?;
        // At least two more than any entry, so that there is a gap.
        let after_all = standing.head.seq.max(log.newest_entry().await?).max(standing.base_seq()) + 2;
        let seq = after_all.max(u64::try_from(self.clock.now().millis()).unwrap_or_default());
        let compaction = Compaction::new(log.clone(), objects.clone(), Arc::clone(&self.clock));
        for _ in 0..MAX_RUNS {
            if let Compacted::Written { records, .. } = Box::pin(compaction.begin_anew(seq)).await? {
                self.done.add(R::STREAM, records, records);
                return Ok(());
            }
            if log.head().await? != standing.head.seq {
                return Err(RepairError::Written(R::STREAM));
            }
        }
        Err(StoreError::Conflict.into())
    }

    /// Counts the orders of all users anew.
    pub async fn accounts(&mut self, accounts: &Accounts) -> Result<(), RepairError> {
        let (mut users, mut orphans, mut rows, mut from) = (BTreeSet::new(), Vec::new(), 0, None);
        loop {
            let mut page = accounts.scan_orders(from).await?;
            users.append(&mut page.users);
            orphans.append(&mut page.orphans);
            rows += page.rows;
            self.progress.show_rows(rows, None, "rows");
            from = page.next;
            if from.is_none() {
                break;
            }
        }
        self.remove_orphans(accounts, &orphans).await?;
        let (now, dry_run, all) = (self.clock.now(), self.dry_run, users.len() as u64);
        let users =
            users.into_iter().map(|user| async move { (user, accounts.repair_orders(user, now, dry_run).await) });
        let mut repaired = stream::iter(users).buffer_unordered(CONCURRENT_USERS);
        let mut done = 0;
        while let Some((user, outcome)) = repaired.next().await {
            match outcome {
                Ok(found) => {
                    self.done.add("users", 1, 1);
                    self.done.add("orders", found.orders as u64, found.changed as u64);
                }
                Err(error @ (StoreError::Unavailable(_) | StoreError::Throttled | StoreError::Conflict)) => {
                    return Err(error.into());
                }
                Err(error) => {
                    self.done.unreadable.insert(Unreadable { row: format!("orders#{user}"), what: error.to_string() });
                }
            }
            done += 1;
            self.progress.show_rows(done, Some(all), "users");
        }
        Ok(())
    }

    /// Removes the authorities of orders that are not there. Otherwise no message could insert these orders.
    async fn remove_orphans(&mut self, accounts: &Accounts, orphans: &[OrderAuthority]) -> Result<(), StoreError> {
        for orphan in orphans {
            if !self.dry_run {
                accounts.repair_orphan(orphan).await?;
            }
            self.done.add("authorities without an order", 1, 1);
        }
        Ok(())
    }

    /// Brings the rows of keys in line. Keys that were revoked or replaced in one of the other tables are revoked.
    pub async fn keys(&mut self, keys: &KeyAdmin, others: &[KeyAdmin]) -> Result<(), RepairError> {
        for other in others {
            let mut from = None;
            loop {
                let mut page = keys.revoke_as_in(other, from, self.dry_run).await?;
                from = page.next.take();
                self.add_keys("keys revoked in another table", page);
                if from.is_none() {
                    break;
                }
            }
        }
        let mut from = None;
        loop {
            let mut page = keys.repair_page(from, self.dry_run).await?;
            from = page.next.take();
            self.add_keys("keys", page);
            if from.is_none() {
                return Ok(());
            }
        }
    }

    fn add_keys(&mut self, what: &'static str, page: KeysPage) {
        // The rows of one key may lie in several parts.
        let mut changed = BTreeSet::new();
        for ChangedKey { key_id, user_id } in page.changed {
            let owner = self.done.changed_keys.entry(key_id).or_insert_with(|| {
                changed.insert(key_id);
                None
            });
            *owner = owner.or(user_id);
        }
        self.done.add(what, page.keys, changed.len() as u64);
        self.done.unreadable.extend(page.unreadable);
        self.progress.show_rows(self.done.count(what).0, None, what);
    }

    /// Brings the rows of endpoints in line, and gives deliveries the wake-ups that they lack.
    pub async fn webhooks(&mut self, webhooks: &WebhookStore) -> Result<(), RepairError> {
        let mut from = None;
        loop {
            // Functions may go on meanwhile, so each page has its own time.
            let repair = EndpointRepair { now: self.clock.now(), dry_run: self.dry_run, new_epochs: !self.is_in_use };
            let page = webhooks.repair_page(from, repair).await?;
            self.done.add("endpoints", page.endpoints, page.changed.len() as u64);
            self.done.add("deliveries without a wake-up", page.without_wake_up, page.without_wake_up);
            self.done.changed_endpoints.extend(page.changed);
            self.done.unreadable.extend(page.unreadable);
            self.progress.show_rows(self.done.count("endpoints").0, None, "endpoints");
            from = page.next;
            if from.is_none() {
                return Ok(());
            }
        }
    }
}
