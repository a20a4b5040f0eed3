//! Brings the rows of webhook endpoints back in line.

use std::collections::BTreeSet;

use platform::rows::Unreadable;
use platform::store::StoreError;
use types::timestamp::Timestamp;
use webhooks::store::{EndpointFinding, EndpointRepair, WebhookStore};

use crate::mode::Mode;
use crate::progress::Progress;

/// What was found in the endpoints. Everything was mended, except rows that cannot be read.
#[derive(Debug, Default)]
pub struct EndpointsReport {
    /// The number of endpoints.
    pub endpoints: u64,
    pub found: BTreeSet<EndpointFinding>,
    /// Rows that were left as they are.
    pub unreadable: Vec<Unreadable>,
}

impl EndpointsReport {
    /// Returns whether everything was in line.
    pub fn is_in_line(&self) -> bool {
        self.found.is_empty() && self.unreadable.is_empty()
    }
}

pub(super) async fn repair(
    webhooks: &WebhookStore,
    now: Timestamp,
    mode: Mode,
    progress: &dyn Fn(Progress),
) -> Result<EndpointsReport, StoreError> {
    let repair = EndpointRepair { now, dry_run: mode.dry_run, new_epochs: mode.restored };
    let (mut report, mut from) = (EndpointsReport::default(), None);
    loop {
        let page = webhooks.repair_page(from, repair).await?;
        report.endpoints += page.endpoints;
        report.found.extend(page.found);
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
