//! Brings the rows of endpoints back in line, after a restore that holds some but not all rows of recent transactions.
//!
//! What was done last holds, even if only a part of it is there: nothing is sent to an endpoint that was removed or
//! switched off, and the owner is told. Deliveries need no repair, because each is one row. But the drain of every account
//! is called, because its row may be older than they are.

mod finding;
mod mend;
mod stored;

pub use finding::{EndpointFinding, EndpointProblem};
pub(super) use stored::StoredFinder;

use platform::rows::Unreadable;
use platform::store::StoreError;
use types::timestamp::Timestamp;

use super::table::REMOVED_AT;
use super::{StartKey, WebhookStore, table};
use crate::endpoint::{Notice, notice_id};
use stored::{Named, StoredEndpoint, StoredRows};

/// What a repair of endpoints may do, and what it must.
#[derive(Clone, Copy, Debug)]
pub struct EndpointRepair {
    pub now: Timestamp,
    /// It only looks, and writes nothing.
    pub dry_run: bool,
    /// Every endpoint gets an epoch that it has not had. Otherwise the notice of a switch-off could have the id of one
    /// that was sent after the moment to which the table was restored, and would be taken for a duplicate of that.
    pub new_epochs: bool,
}

/// A part of the table.
pub struct RepairedPage {
    /// The number of endpoints in it.
    pub endpoints: u64,
    pub found: Vec<EndpointFinding>,
    /// Rows that were left as they are.
    pub unreadable: Vec<Unreadable>,
    /// Where the next part begins.
    pub next: Option<StartKey>,
}

impl WebhookStore {
    /// Reads a part of the table and brings it in line, unless it is only a trial. It may be repeated after a crash at
    /// any step.
    pub async fn repair_page(
        &self,
        from: Option<StartKey>,
        repair: EndpointRepair,
    ) -> Result<RepairedPage, StoreError> {
        let (StoredRows { endpoints, finders, removed, unreadable }, next) = self.stored_rows(from).await?;
        let named = self.named(&endpoints, &finders).await?;
        let mut page = RepairedPage { endpoints: endpoints.len() as u64, found: Vec::new(), unreadable, next };
        for stored in &endpoints {
            self.repair_endpoint(stored, &named, repair, &mut page).await?;
        }
        for finder in finders.iter().filter(|finder| !named.has_endpoint(finder)) {
            let StoredFinder { endpoint_id, account_id } = *finder;
            page.found.push(EndpointFinding { problem: EndpointProblem::Lost, endpoint_id, account_id });
            if !repair.dry_run {
                let removal = self.end_deliveries(endpoint_id, repair.now, || true).await?;
                page.unreadable.extend(removal.unreadable);
                self.note_removal(finder, repair.now).await?;
            }
        }
        for StoredFinder { endpoint_id, account_id } in removed.into_iter().filter(|_| !repair.dry_run) {
            // The row of the drain may be older than the removal.
            self.note_in_drain(account_id, endpoint_id, repair.now).await?;
        }
        Ok(page)
    }

    async fn repair_endpoint(
        &self,
        stored: &StoredEndpoint,
        named: &Named,
        repair: EndpointRepair,
        page: &mut RepairedPage,
    ) -> Result<(), StoreError> {
        let (id, account_id) = (stored.endpoint.id, stored.endpoint.account_id);
        let finder = named.get(&table::finder(id));
        if finder.is_some_and(|row| row.contains_key(REMOVED_AT)) {
            page.found.push(stored.finding(EndpointProblem::RemovalCut));
            if !repair.dry_run {
                // In this order a crash in between leaves what the next repair finds again.
                let removal = self.end_deliveries(id, repair.now, || true).await?;
                page.unreadable.extend(removal.unreadable);
                self.call_drain_by(account_id, repair.now, repair.now).await?;
                self.remove_endpoint(account_id, id, repair.now).await?;
            }
            return Ok(());
        }
        if finder.is_none() {
            page.found.push(stored.finding(EndpointProblem::NotFindable));
            if !repair.dry_run {
                self.put_finder(id, account_id).await?;
            }
        }
        self.repair_switch(stored, named, repair, page).await?;
        if !repair.dry_run {
            self.call_drain_by(account_id, repair.now, repair.now).await?;
        }
        if repair.new_epochs && !repair.dry_run {
            let seen = stored.endpoint.epoch;
            let next = u64::try_from(repair.now.millis()).unwrap_or_default().max(seen + 1);
            if !self.renew_epoch(account_id, id, seen, next).await? {
                return Err(StoreError::Conflict);
            }
        }
        Ok(())
    }

    /// Makes switch and notice agree. The notice of an epoch is there only if the endpoint was switched off in it.
    async fn repair_switch(
        &self,
        stored: &StoredEndpoint,
        named: &Named,
        repair: EndpointRepair,
        page: &mut RepairedPage,
    ) -> Result<(), StoreError> {
        let endpoint = &stored.endpoint;
        if endpoint.is_on() {
            let Some(row) = named.get(&table::notice(notice_id(endpoint.id, endpoint.epoch))) else { return Ok(()) };
            match Notice::from_row(row) {
                Ok(notice) => {
                    page.found.push(stored.finding(EndpointProblem::SwitchOffCut));
                    if !repair.dry_run {
                        self.complete_switch_off(endpoint, &notice).await?;
                    }
                }
                Err(error) => page.unreadable.push(Unreadable::new(row, error)),
            }
        } else if let Some(notice) = stored.notice.as_ref().filter(|notice| notice.is_kept(repair.now))
            && named.get(&table::notice(notice.notice_id)).is_none()
        {
            page.found.push(stored.finding(EndpointProblem::NoticeMissing));
            if !repair.dry_run {
                self.put_notice(notice, repair.now).await?;
            }
        }
        Ok(())
    }
}
