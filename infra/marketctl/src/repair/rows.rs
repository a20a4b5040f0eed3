//! Brings the rows of orders, keys and webhook endpoints back in line.

use std::collections::{BTreeMap, BTreeSet};

use accounts::{Accounts, OrderAuthority, OrderFindings};
use admin::keys::{KeyAdmin, KeyFinding, KeyProblem, KeysPage};
use common::clock::Clock;
use common::ids::{KeyId, OrderId, UserId};
use common::rows::Unreadable;
use common::store::StoreError;
use common::timestamp::Timestamp;
use futures_util::{StreamExt, stream};
use webhooks::store::{EndpointFinding, EndpointRepair, WebhookStore};

use super::mode::{Mode, Progress, RepairError};

/// How many users' orders are repaired at the same time.
const CONCURRENT_USERS: usize = 16;

/// What was found in the orders. Everything was mended, except the orders of those whose repair failed.
#[derive(Debug, Default)]
pub struct OrdersReport {
    /// The number of users with orders.
    pub users: u64,
    /// Authorities whose order was missing. No message could have inserted it.
    pub without_record: u64,
    /// The orders of these authorities.
    pub missing: Vec<OrderId>,
    pub found: OrderFindings,
    /// The users with whose orders something was wrong.
    pub affected: BTreeSet<UserId>,
    /// The users whose orders are not in line now, and why.
    pub failed: Vec<(UserId, StoreError)>,
}

impl OrdersReport {
    /// Returns whether everything was in line.
    pub fn is_in_line(&self) -> bool {
        self.without_record == 0 && self.found == OrderFindings::default() && self.failed.is_empty()
    }
}

pub(super) async fn orders(
    accounts: &Accounts,
    now: Timestamp,
    mode: Mode,
    progress: &dyn Fn(Progress),
) -> Result<OrdersReport, RepairError> {
    let (users, orphans) = scan_orders(accounts, progress).await?;
    let Mode { dry_run, restored } = mode;
    if !dry_run {
        for orphan in &orphans {
            accounts.repair_orphan(orphan).await?;
        }
    }
    let all = users.len() as u64;
    let missing: Vec<OrderId> = orphans.iter().map(OrderAuthority::id).collect();
    let without_record = missing.len() as u64;
    let mut report = OrdersReport { users: all, without_record, missing, ..OrdersReport::default() };
    let users =
        users.into_iter().map(|user| async move { (user, accounts.repair_orders(user, now, dry_run, restored).await) });
    let mut repaired = stream::iter(users).buffer_unordered(CONCURRENT_USERS);
    let mut done = 0;
    while let Some((user, outcome)) = repaired.next().await {
        match outcome {
            Ok(found) => {
                report.found += found;
                report.affected.extend((found != OrderFindings::default()).then_some(user));
            }
            Err(error @ StoreError::Unavailable(_)) => return Err(error.into()),
            Err(error) => report.failed.push((user, error)),
        }
        done += 1;
        progress(Progress::Users { done, of: all });
    }
    report.failed.sort_by_key(|(user, _)| *user);
    Ok(report)
}

/// Finds all users with orders, and all authorities whose record is missing.
async fn scan_orders(
    accounts: &Accounts,
    progress: &dyn Fn(Progress),
) -> Result<(BTreeSet<UserId>, Vec<OrderAuthority>), StoreError> {
    let of = accounts.about_rows().await?;
    let (mut users, mut orphans, mut rows, mut from) = (BTreeSet::new(), Vec::new(), 0, None);
    loop {
        let mut page = accounts.scan_orders(from).await?;
        users.append(&mut page.users);
        orphans.append(&mut page.orphans);
        rows += page.rows;
        progress(Progress::Scanning { rows, of });
        from = page.next;
        if from.is_none() {
            return Ok((users, orphans));
        }
    }
}

/// The table of keys, and the damaged one if there still is one.
pub struct Keys {
    pub table: KeyAdmin,
    /// What is revoked there is revoked in the other table as well.
    pub damaged: Option<KeyAdmin>,
}

/// What was found in the keys. Everything was mended, except rows that cannot be read.
#[derive(Debug, Default)]
pub struct KeysReport {
    /// The number of keys, revoked ones included.
    pub keys: u64,
    /// What was wrong with which key, and its owner if that is known.
    pub found: BTreeMap<(KeyProblem, KeyId), Option<UserId>>,
    /// Rows that were left as they are.
    pub unreadable: Vec<Unreadable>,
}

impl KeysReport {
    /// Returns whether everything was in line.
    pub fn is_in_line(&self) -> bool {
        self.found.is_empty() && self.unreadable.is_empty()
    }

    fn add(&mut self, page: KeysPage, progress: &dyn Fn(Progress)) {
        self.keys += page.keys;
        for KeyFinding { problem, key_id, user_id } in page.found {
            let owner = self.found.entry((problem, key_id)).or_default();
            *owner = owner.or(user_id);
        }
        self.unreadable.extend(page.unreadable);
        progress(Progress::Keys { keys: self.keys });
    }
}

pub(super) async fn keys(keys: &Keys, mode: Mode, progress: &dyn Fn(Progress)) -> Result<KeysReport, StoreError> {
    let Keys { table, damaged } = keys;
    let mut report = KeysReport::default();
    if let Some(damaged) = damaged {
        let mut from = None;
        loop {
            let mut page = table.revoke_as_in(damaged, from, mode.dry_run).await?;
            from = page.next.take();
            report.add(page, progress);
            if from.is_none() {
                break;
            }
        }
    }
    let mut from = None;
    loop {
        let mut page = table.repair_page(from, mode.dry_run).await?;
        from = page.next.take();
        report.add(page, progress);
        if from.is_none() {
            break;
        }
    }
    report.unreadable.sort();
    report.unreadable.dedup();
    Ok(report)
}

/// What was found in the endpoints and deliveries. Everything was mended, except rows that cannot be read.
#[derive(Debug, Default)]
pub struct EndpointsReport {
    /// The number of endpoints.
    pub endpoints: u64,
    pub found: BTreeSet<EndpointFinding>,
    /// The number of pending deliveries that nothing would have attempted, unless their messages are still queued.
    pub without_wake_up: u64,
    /// Rows that were left as they are.
    pub unreadable: Vec<Unreadable>,
}

impl EndpointsReport {
    /// Returns whether everything was in line.
    pub fn is_in_line(&self) -> bool {
        self.found.is_empty() && self.without_wake_up == 0 && self.unreadable.is_empty()
    }
}

pub(super) async fn endpoints(
    webhooks: &WebhookStore,
    clock: &dyn Clock,
    mode: Mode,
    progress: &dyn Fn(Progress),
) -> Result<EndpointsReport, StoreError> {
    let (mut report, mut from) = (EndpointsReport::default(), None);
    loop {
        // Functions may go on meanwhile, so each page has its own time.
        let repair = EndpointRepair { now: clock.now(), dry_run: mode.dry_run, new_epochs: mode.restored };
        let page = webhooks.repair_page(from, repair).await?;
        report.endpoints += page.endpoints;
        report.found.extend(page.found);
        report.without_wake_up += page.without_wake_up;
        report.unreadable.extend(page.unreadable);
        progress(Progress::Endpoints { endpoints: report.endpoints });
        from = page.next;
        if from.is_none() {
            report.unreadable.sort();
            report.unreadable.dedup();
            return Ok(report);
        }
    }
}
