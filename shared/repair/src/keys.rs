//! Brings the rows of keys back in line.

use std::collections::BTreeMap;

use admin::keys::{KeyAdmin, KeyFinding, KeyProblem, KeysPage};
use platform::rows::Unreadable;
use platform::store::StoreError;
use types::ids::{KeyId, UserId};

use crate::mode::Mode;
use crate::progress::Progress;

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

pub(super) async fn repair(keys: &Keys, mode: Mode, progress: &dyn Fn(Progress)) -> Result<KeysReport, StoreError> {
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
