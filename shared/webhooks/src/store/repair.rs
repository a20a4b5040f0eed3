//! Brings the rows of endpoints back in line, after a restore that holds some but not all rows of recent transactions.
//!
//! What was done last holds, even if only a part of it is there: nothing is sent to an endpoint that was removed or
//! switched off, and the owner is told. The drain of every account is woken, because its row may be older than its
//! deliveries are. Each of these is one row. But a first attempt that was begun has no wake-up: if the sender has died and
//! the message was lost, nothing calls for it any more. So each pending delivery without a wake-up gets one.

use std::collections::{BTreeMap, BTreeSet};

use super::accounts::removed_finder;
use super::deliveries::from_row;
use super::drains::removal_forgotten;
use super::endpoint_steps::off;
use super::endpoints::{endpoints, notice_of};
use super::table::{
    ACCOUNT_ID, ACCOUNT_PARTITION, DELIVERY_PARTITION, FINDER_PARTITION, PK, REMOVED_AT, STATUS, WAKE_AT,
};
use super::{StartKey, WebhookStore, table};
use crate::delivery::{Delivery, Status, watch};
use crate::drain::Drain;
use crate::endpoint::{Endpoints, WebhookEndpoint};
use crate::notice::{DisabledNotice, EndpointNotice, disabled_notice_id};
use common::ids::{EndpointId, UserId};
use common::rows::{Unreadable, get_rows};
use common::store::{Attributes, Row, StoreError, s};
use common::timestamp::Timestamp;

/// The largest number of keys in a `BatchGetItem` (DynamoDB's limit).
const ROWS_PER_READ: usize = 100;

/// How endpoints are repaired.
#[derive(Clone, Copy, Debug)]
pub struct EndpointRepair {
    pub now: Timestamp,
    /// Whether it is only a trial, which writes nothing.
    pub dry_run: bool,
    /// Whether every endpoint gets an epoch that it has not had. After a restore, the notice of a switch-off could have
    /// the id of one that was sent after the moment to which the table was restored, and would be taken for a duplicate.
    pub new_epochs: bool,
}

/// A part of the table.
pub struct RepairedPage {
    /// The number of endpoints in it.
    pub endpoints: u64,
    /// Those that were brought in line, beside a new epoch, and their accounts.
    pub changed: Vec<(EndpointId, UserId)>,
    /// The number of pending deliveries that had no wake-up, except those whose first attempt may be under way.
    pub without_wake_up: u64,
    /// Rows that were left as they are.
    pub unreadable: Vec<Unreadable>,
    /// Where the next part begins.
    pub next: Option<StartKey>,
}

struct StoredEndpoint {
    endpoint: WebhookEndpoint,
    /// The notice that it was switched off, if it was and if its row tells.
    notice: Option<DisabledNotice>,
}

/// The row that finds an endpoint, or found it before it was removed.
pub(super) struct StoredFinder {
    endpoint_id: EndpointId,
    account_id: UserId,
}

#[derive(Default)]
struct StoredRows {
    endpoints: Vec<StoredEndpoint>,
    finders: Vec<StoredFinder>,
    /// What found endpoints that are noted as removed.
    removed: Vec<StoredFinder>,
    /// Pending deliveries that have no wake-up.
    unwatched: Vec<Delivery>,
    unreadable: Vec<Unreadable>,
}

/// The rows that the rows of a page name, as far as they are there, by their partition keys.
struct Named(BTreeMap<String, Row>);

impl StoredRows {
    fn add(&mut self, row: &Row) {
        if partition(row).starts_with(ACCOUNT_PARTITION) {
            let Endpoints { readable, unreadable } = endpoints(row);
            self.unreadable.extend(unreadable.into_iter().map(|endpoint| endpoint.unreadable));
            self.endpoints.extend(readable.into_iter().map(|endpoint| {
                let notice = row.get(&table::endpoint_attribute(endpoint.id));
                let notice = notice.and_then(|value| notice_of(value, &endpoint));
                StoredEndpoint { endpoint, notice }
            }));
            return;
        }
        if partition(row).starts_with(DELIVERY_PARTITION) {
            match from_row(row) {
                Ok(delivery) => self.unwatched.push(delivery),
                Err(error) => self.unreadable.push(Unreadable::new(row, error)),
            }
            return;
        }
        match StoredFinder::from_row(row) {
            Ok(finder) if row.contains_key(REMOVED_AT) => self.removed.push(finder),
            Ok(finder) => self.finders.push(finder),
            Err(error) => self.unreadable.push(Unreadable::new(row, error)),
        }
    }
}

impl StoredFinder {
    pub(super) fn from_row(row: &Row) -> Result<Self, StoreError> {
        table::FINDER_FORMAT.of_row(row)?;
        let endpoint_id = table::endpoint_of_finder(partition(row)).ok_or_else(|| StoreError::corrupt(PK))?;
        Ok(Self { endpoint_id, account_id: Attributes(row).parsed(ACCOUNT_ID)? })
    }
}

impl Named {
    /// Returns the row with this table key.
    fn get(&self, key: &Row) -> Option<&Row> {
        self.0.get(partition(key))
    }

    /// Returns whether the endpoint that a row finds is in its account's row.
    fn has_endpoint(&self, finder: &StoredFinder) -> bool {
        let account = self.get(&table::account(finder.account_id));
        account.is_some_and(|row| row.contains_key(&table::endpoint_attribute(finder.endpoint_id)))
    }

    /// Returns whether the drain of its account would end the endpoint's deliveries.
    fn is_ended_by_drain(&self, StoredEndpoint { endpoint, .. }: &StoredEndpoint) -> bool {
        let drain = self.get(&table::drain(endpoint.account_id)).map(Drain::from_row);
        drain.is_some_and(|drain| drain.is_ok_and(|drain| drain.removed.contains(&endpoint.id)))
    }
}

impl WebhookStore {
    /// Reads a part of the table and brings it in line, unless it is only a trial. It may be repeated after a crash at
    /// any step.
    pub async fn repair_page(
        &self,
        from: Option<StartKey>,
        repair: EndpointRepair,
    ) -> Result<RepairedPage, StoreError> {
        let EndpointRepair { now, dry_run, .. } = repair;
        let (stored, next) = self.stored_rows(from).await?;
        let StoredRows { endpoints, finders, removed, unwatched, unreadable } = stored;
        let named = self.named(&endpoints, &finders).await?;
        let without_wake_up = self.watch_all(&unwatched, now, dry_run).await?;
        let counted = endpoints.len() as u64;
        let mut page = RepairedPage { endpoints: counted, changed: Vec::new(), without_wake_up, unreadable, next };
        for stored in &endpoints {
            self.repair_endpoint(stored, &named, repair, &mut page).await?;
        }
        for finder in finders.iter().filter(|finder| !named.has_endpoint(finder)) {
            let StoredFinder { endpoint_id, account_id } = *finder;
            page.changed.push((endpoint_id, account_id));
            if !dry_run {
                let removal = self.end_deliveries(endpoint_id, now, || true).await?;
                page.unreadable.extend(removal.unreadable);
                self.note_removal(finder, now).await?;
            }
        }
        for StoredFinder { endpoint_id, account_id } in removed.into_iter().filter(|_| !dry_run) {
            // The row of the drain may be older than the removal.
            self.note_in_drain(account_id, endpoint_id, now).await?;
        }
        Ok(page)
    }

    /// Does only what a repair does with deliveries. Functions may go on meanwhile.
    pub async fn repair_deliveries(
        &self,
        from: Option<StartKey>,
        now: Timestamp,
    ) -> Result<(u64, Option<StartKey>), StoreError> {
        let (stored, next) = self.stored_rows(from).await?;
        Ok((self.watch_all(&stored.unwatched, now, false).await?, next))
    }

    /// Gives deliveries the wake-ups that they lack. Returns their number, without those whose attempt may be under way:
    /// they lack nothing, unless their sender has died and their message is lost. From the end of its lease on, the drain
    /// makes the attempt.
    async fn watch_all(&self, unwatched: &[Delivery], now: Timestamp, dry_run: bool) -> Result<u64, StoreError> {
        let (mut calls, mut steps) = (BTreeMap::new(), Vec::new());
        for Delivery { id, endpoint_id, account_id, progress, .. } in unwatched {
            let wake_at = progress.lease.map_or(now, |lease| lease.until.max(now));
            let Some(step) = watch(progress, wake_at).filter(|_| !dry_run) else { continue };
            let earliest = calls.entry(*account_id).or_insert(wake_at);
            *earliest = wake_at.min(*earliest);
            steps.push((*id, *endpoint_id, step));
        }
        // Before, because this may be cut short; and afterwards, because a drain may have looked meanwhile.
        self.send_drains(&calls, now).await?;
        for (id, endpoint_id, step) in &steps {
            self.apply(*id, *endpoint_id, step).await?;
        }
        self.send_drains(&calls, now).await?;
        Ok(unwatched.iter().filter(|delivery| !delivery.progress.is_leased(now)).count() as u64)
    }

    async fn send_drains(&self, calls: &BTreeMap<UserId, Timestamp>, now: Timestamp) -> Result<(), StoreError> {
        for (account, wake_at) in calls {
            self.wake_drain_by(*account, *wake_at, now).await?;
        }
        Ok(())
    }

    async fn repair_endpoint(
        &self,
        stored: &StoredEndpoint,
        named: &Named,
        repair: EndpointRepair,
        page: &mut RepairedPage,
    ) -> Result<(), StoreError> {
        let EndpointRepair { now, dry_run, new_epochs } = repair;
        let (id, account_id) = (stored.endpoint.id, stored.endpoint.account_id);
        let finder = named.get(&table::finder(id));
        if finder.is_some_and(|row| row.contains_key(REMOVED_AT)) {
            page.changed.push((id, account_id));
            if !dry_run {
                // In this order a crash in between leaves what the next repair finds again.
                let removal = self.end_deliveries(id, now, || true).await?;
                page.unreadable.extend(removal.unreadable);
                self.wake_drain_by(account_id, now, now).await?;
                self.remove_endpoint(account_id, id, now).await?;
            }
            return Ok(());
        }
        if finder.is_none() {
            page.changed.push((id, account_id));
            if !dry_run {
                self.put_finder(id, account_id).await?;
            }
        }
        self.repair_switch(stored, named, repair, page).await?;
        if !dry_run {
            if named.is_ended_by_drain(stored) {
                self.forget_removal(account_id, id).await?;
            }
            self.wake_drain_by(account_id, now, now).await?;
        }
        if new_epochs && !dry_run {
            // If it has another epoch by now, that one is new as well.
            let seen = stored.endpoint.epoch;
            let next = u64::try_from(now.millis()).unwrap_or_default().max(seen + 1);
            self.renew_epoch(account_id, id, seen, next).await?;
        }
        Ok(())
    }

    /// Makes switch and notice agree. The notice of an epoch is there only if the endpoint was switched off in it.
    async fn repair_switch(
        &self,
        stored: &StoredEndpoint,
        named: &Named,
        EndpointRepair { now, dry_run, .. }: EndpointRepair,
        page: &mut RepairedPage,
    ) -> Result<(), StoreError> {
        let endpoint = &stored.endpoint;
        if endpoint.is_on() {
            let Some(row) = named.get(&table::notice(disabled_notice_id(endpoint.id, endpoint.epoch))) else {
                return Ok(());
            };
            match DisabledNotice::from_row(row) {
                Ok(notice) => {
                    page.changed.push((endpoint.id, endpoint.account_id));
                    if !dry_run {
                        self.complete_switch_off(endpoint, &notice).await?;
                    }
                }
                Err(error) => page.unreadable.push(Unreadable::new(row, error)),
            }
        } else if let Some(notice) = stored.notice.as_ref().filter(|notice| notice.is_kept(now))
            && named.get(&table::notice(notice.about.notice_id)).is_none()
        {
            page.changed.push((endpoint.id, endpoint.account_id));
            if !dry_run {
                self.put_notice(notice, now).await?;
            }
        }
        Ok(())
    }

    /// Reads a part of the table. Returns its endpoints and what finds them, the pending deliveries without a wake-up, and
    /// where the next part begins.
    async fn stored_rows(&self, from: Option<StartKey>) -> Result<(StoredRows, Option<StartKey>), StoreError> {
        let scan = self
            .client
            .scan()
            .table_name(&self.table)
            .consistent_read(true)
            .filter_expression(
                "begins_with(#pk, :account) OR begins_with(#pk, :finder) \
                 OR (begins_with(#pk, :delivery) AND #status = :pending AND attribute_not_exists(#wake_at))",
            )
            .expression_attribute_names("#pk", PK)
            .expression_attribute_names("#status", STATUS)
            .expression_attribute_names("#wake_at", WAKE_AT)
            .expression_attribute_values(":delivery", s(DELIVERY_PARTITION))
            .expression_attribute_values(":pending", s(Status::Pending.as_str()))
            .expression_attribute_values(":account", s(ACCOUNT_PARTITION))
            .expression_attribute_values(":finder", s(FINDER_PARTITION))
            .set_exclusive_start_key(from);
        let found = scan.send().await?;
        let mut stored = StoredRows::default();
        for row in found.items() {
            stored.add(row);
        }
        Ok((stored, found.last_evaluated_key))
    }

    /// Reads the rows that these rows name: what finds an endpoint, its notice, the drain of its account, and the account
    /// of what finds one.
    async fn named(&self, endpoints: &[StoredEndpoint], finders: &[StoredFinder]) -> Result<Named, StoreError> {
        let accounts: BTreeSet<UserId> = finders.iter().map(|finder| finder.account_id).collect();
        let mut keys: Vec<Row> = accounts.into_iter().map(table::account).collect();
        let with_drains: BTreeSet<UserId> = endpoints.iter().map(|stored| stored.endpoint.account_id).collect();
        keys.extend(with_drains.into_iter().map(table::drain));
        for StoredEndpoint { endpoint, notice } in endpoints {
            keys.push(table::finder(endpoint.id));
            let of_epoch = endpoint.is_on().then(|| disabled_notice_id(endpoint.id, endpoint.epoch));
            keys.extend(of_epoch.or(notice.as_ref().map(|notice| notice.about.notice_id)).map(table::notice));
        }
        let mut named = BTreeMap::new();
        for keys in keys.chunks(ROWS_PER_READ) {
            let rows = get_rows(&self.client, &self.table, keys.to_vec()).await?;
            named.extend(rows.into_iter().map(|row| (partition(&row).to_owned(), row)));
        }
        Ok(Named(named))
    }

    /// Puts the row that finds an endpoint.
    async fn put_finder(&self, id: EndpointId, account: UserId) -> Result<(), StoreError> {
        let endpoint = table::endpoint_change(account, id).part(&self.table)?;
        self.transact(vec![self.new_finder(id, account)?, endpoint], None).await.map(drop)
    }

    /// Takes the removal of an endpoint that is there back out of the drain of its account. The drain would end what
    /// waits for it.
    async fn forget_removal(&self, account: UserId, id: EndpointId) -> Result<(), StoreError> {
        let writes = [table::endpoint_change(account, id), removal_forgotten(account, id)];
        self.transact(self.parts(&writes)?, None).await.map(drop)
    }

    /// Notes in the row that finds an endpoint that this was removed.
    async fn note_removal(&self, finder: &StoredFinder, now: Timestamp) -> Result<(), StoreError> {
        let StoredFinder { endpoint_id, account_id } = *finder;
        let gone = table::change(table::account(account_id)).name("#e", table::endpoint_attribute(endpoint_id));
        let gone = gone.when("attribute_not_exists(#e)");
        let removed = removed_finder(endpoint_id, now).when("attribute_exists(#pk)");
        self.transact(self.parts(&[removed, gone])?, None).await.map(drop)
    }

    /// Switches an endpoint off as its notice says.
    async fn complete_switch_off(&self, endpoint: &WebhookEndpoint, notice: &DisabledNotice) -> Result<(), StoreError> {
        let noticed = table::change(table::notice(notice.about.notice_id)).when("attribute_exists(#pk)");
        self.transact(self.parts(&[off(endpoint, notice), noticed])?, None).await.map(drop)
    }

    /// Puts the notice of an endpoint that is off, for a sweep to send.
    async fn put_notice(&self, notice: &DisabledNotice, wake_at: Timestamp) -> Result<(), StoreError> {
        let endpoint = table::endpoint_change(notice.about.account_id, notice.about.endpoint_id)
            .when("#e.#notice_id = :notice")
            .value(":notice", s(notice.about.notice_id.to_string()));
        let put = self.new_notice(&EndpointNotice::Disabled(notice.clone()), wake_at)?;
        self.transact(vec![put, endpoint.part(&self.table)?], None).await.map(drop)
    }
}

/// Returns the partition key of a row.
fn partition(row: &Row) -> &str {
    Attributes(row).text(PK).unwrap_or_default()
}
