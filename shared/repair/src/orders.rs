//! Brings the orders of every user back in line.

use std::collections::BTreeSet;

use accounts::{Accounts, OrderAuthority, OrderFindings};
use futures_util::{StreamExt, stream};
use platform::store::StoreError;
use types::ids::UserId;
use types::timestamp::Timestamp;

use crate::error::RepairError;
use crate::mode::Mode;
use crate::progress::Progress;

/// How many users' orders are repaired at the same time.
const CONCURRENT_USERS: usize = 16;

/// What was found in the orders. Everything was mended, except the orders of those whose repair failed.
#[derive(Debug, Default)]
pub struct OrdersReport {
    /// The number of users with orders.
    pub users: u64,
    /// Authorities whose order was missing. No message could have inserted it.
    pub without_record: u64,
    pub found: OrderFindings,
    /// The users whose orders are not in line now, and why.
    pub failed: Vec<(UserId, StoreError)>,
}

impl OrdersReport {
    /// Returns whether everything was in line. Months that are not marked are only slow.
    pub fn is_in_line(&self) -> bool {
        let wrong = OrderFindings { unmarked_months: 0, ..self.found };
        self.without_record == 0 && wrong == OrderFindings::default() && self.failed.is_empty()
    }
}

pub(super) async fn repair(
    accounts: &Accounts,
    now: Timestamp,
    mode: Mode,
    progress: &dyn Fn(Progress),
) -> Result<OrdersReport, RepairError> {
    let (users, orphans) = scan(accounts, progress).await?;
    let Mode { dry_run, restored } = mode;
    if !dry_run {
        for orphan in &orphans {
            accounts.repair_orphan(orphan).await?;
        }
    }
    let all = users.len() as u64;
    let mut report = OrdersReport { users: all, without_record: orphans.len() as u64, ..OrdersReport::default() };
    let users =
        users.into_iter().map(|user| async move { (user, accounts.repair_orders(user, now, dry_run, restored).await) });
    let mut repaired = stream::iter(users).buffer_unordered(CONCURRENT_USERS);
    let mut done = 0;
    while let Some((user, outcome)) = repaired.next().await {
        match outcome {
            Ok(found) => report.found += found,
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
async fn scan(
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
