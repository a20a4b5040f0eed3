//! How far behind the delivery queues are. It is measured by probes: messages that are sent only for this purpose.

use super::table::PROBED_AT;
use super::{WebhookStore, table};
use crate::delivery::Lane;
use platform::store::{Attributes, StoreError, get_row, n, put_newer};
use types::timestamp::Timestamp;

impl WebhookStore {
    /// Returns the sending time of the latest probe that has come out of a lane.
    pub async fn probed_at(&self, lane: Lane) -> Result<Option<Timestamp>, StoreError> {
        let Some(row) = get_row(&self.client, &self.table, table::lane(lane)).await? else { return Ok(None) };
        table::LANE_FORMAT.of_row(&row)?;
        Ok(Attributes(&row).number(PROBED_AT).map(Timestamp::from_millis))
    }

    /// Notes that a probe, sent at `sent_at`, has come out of a lane. Changes nothing if a later probe came out before.
    pub async fn probed(&self, lane: Lane, sent_at: Timestamp) -> Result<(), StoreError> {
        let put = put_newer(&self.client, &self.table, table::lane(lane), PROBED_AT, n(sent_at.millis()));
        put.await.map(drop)
    }
}
