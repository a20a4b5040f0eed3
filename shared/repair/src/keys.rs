//! Brings the rows of keys back in line.

use std::collections::BTreeMap;

use admin::keys::{KeyAdmin, KeyFinding, KeyProblem};
use platform::rows::Unreadable;
use platform::store::StoreError;
use types::ids::{KeyId, UserId};

use crate::mode::Mode;
use crate::progress::Progress;

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
}

pub(super) async fn repair(keys: &KeyAdmin, mode: Mode, progress: &dyn Fn(Progress)) -> Result<KeysReport, StoreError> {
    let (mut report, mut from) = (KeysReport::default(), None);
    loop {
        let page = keys.repair_page(from, mode.dry_run).await?;
        report.keys += page.keys;
        for KeyFinding { problem, key_id, user_id } in page.found {
            let owner = report.found.entry((problem, key_id)).or_default();
            *owner = owner.or(user_id);
        }
        report.unreadable.extend(page.unreadable);
        progress(Progress::Keys { keys: report.keys });
        from = page.next;
        if from.is_none() {
            report.unreadable.sort();
            report.unreadable.dedup();
            return Ok(report);
        }
    }
}
