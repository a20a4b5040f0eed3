//! Wakes, begins and ends drains. Each step is one conditional write of the drain's row.

use aws_sdk_dynamodb::types::AttributeValue;

use super::table::{ASLEEP, REMOVED, TOKEN, WAKE_AT, WAKES, WOKEN_AT, wake_shard};
use super::{CONFLICT_ATTEMPTS, WebhookStore, table};
use crate::delivery::Token;
use crate::drain::Drain;
use common::change::Change;
use common::ids::{EndpointId, UserId};
use common::store::{Attributes, Row, StoreError, get_row, n, retry_conflicts, s};
use common::timestamp::Timestamp;

/// How often a wake is tried while others wake the drain and runs begin and end.
const WAKE_ATTEMPTS: u32 = 20;

impl Drain {
    pub(super) fn from_row(row: &Row) -> Result<Self, StoreError> {
        table::DRAIN_FORMAT.of_row(row)?;
        let read = Attributes(row);
        let removed = row.get(REMOVED).and_then(|value| value.as_ss().ok()).into_iter().flatten();
        Ok(Self {
            account_id: read
                .text(table::PK)
                .and_then(table::account_of_drain)
                .ok_or_else(|| StoreError::corrupt(table::PK))?,
            token: read.parsed(TOKEN)?,
            wakes: read.required_number(WAKES)?,
            woken_at: Timestamp::from_millis(read.required_number(WOKEN_AT)?),
            wake_at: read.optional_number(WAKE_AT)?.map(Timestamp::from_millis),
            is_asleep: row.contains_key(ASLEEP),
            removed: removed.filter_map(|id| id.parse().ok()).collect(),
        })
    }
}

impl WebhookStore {
    /// Wakes the drain of an account, because something waits that it must look at. Returns whether a message with this
    /// token is to be sent. If not, one is on its way or somebody runs the drain, and will look once more.
    pub async fn wake_drain(
        &self,
        account: UserId,
        token: Token,
        lost_at: Timestamp,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        for _ in 0..WAKE_ATTEMPTS {
            let awake = drain_change(account, "SET #woken_at = :now, #wakes = #wakes + :one")
                .when("attribute_exists(#wake_at) AND attribute_not_exists(#asleep)")
                .value(":now", n(now.millis()))
                .value(":one", n(1));
            if self.change(&awake).await? {
                return Ok(false);
            }
            let asleep = drain_change(
                account,
                "SET #woken_at = :now, #wakes = if_not_exists(#wakes, :zero) + :one, #token = :token, #wake_at = :lost, #wake_shard = :shard \
                 REMOVE #asleep",
            )
            // Its own outcome is allowed as well, because the answer to an earlier try may have been lost.
            .when("attribute_not_exists(#wake_at) OR attribute_exists(#asleep) OR #token = :token")
            .value(":now", n(now.millis()))
            .value(":zero", n(0))
            .value(":one", n(1))
            .value(":token", s(token.to_string()))
            .value(":lost", n(lost_at.millis()))
            .value(":shard", s(wake_shard(account.uuid())));
            if self.change(&asleep).await? {
                return Ok(true);
            }
        }
        Err(StoreError::Conflict)
    }

    /// Lets the drain of an account look at its deliveries by this time.
    pub async fn wake_drain_by(&self, account: UserId, by: Timestamp, now: Timestamp) -> Result<(), StoreError> {
        for _ in 0..WAKE_ATTEMPTS {
            let in_time = drain_change(account, "SET #woken_at = :now, #wakes = #wakes + :one")
                .when("attribute_exists(#wake_at) AND (attribute_not_exists(#asleep) OR #wake_at <= :by)")
                .value(":now", n(now.millis()))
                .value(":one", n(1))
                .value(":by", n(by.millis()));
            if self.change(&in_time).await? {
                return Ok(());
            }
            let earlier = drain_change(
                account,
                "SET #woken_at = :now, #wakes = if_not_exists(#wakes, :zero), #token = if_not_exists(#token, :token), \
                 #wake_at = :by, #wake_shard = :shard, #asleep = :true",
            )
            .when("attribute_not_exists(#wake_at) OR (attribute_exists(#asleep) AND #wake_at > :by)")
            .value(":now", n(now.millis()))
            .value(":zero", n(0))
            .value(":by", n(by.millis()))
            .value(":token", s(Token::random().to_string()))
            .value(":shard", s(wake_shard(account.uuid())))
            .value(":true", AttributeValue::Bool(true));
            if self.change(&earlier).await? {
                return Ok(());
            }
        }
        Err(StoreError::Conflict)
    }

    /// Begins a run under the token `mine`. Returns `None` if the message is void: another has begun a run already, or
    /// the drain rests. If the run is not heard of any more, the drain is woken again at `lost_at`.
    ///
    /// The run of a drain that was awake counts as waking it. The run before it may have died, and the index may not show yet
    /// what that one has recorded.
    pub async fn begin_drain(
        &self,
        account: UserId,
        token: Token,
        mine: Token,
        lost_at: Timestamp,
        now: Timestamp,
    ) -> Result<Option<Drain>, StoreError> {
        let awake = drain_change(account, "SET #token = :mine, #wake_at = :lost, #woken_at = :now")
            // Its own outcome is allowed as well, because the answer to an earlier try may have been lost.
            .when("(#token = :token AND attribute_not_exists(#asleep)) OR #token = :mine")
            .value(":now", n(now.millis()));
        let asleep = drain_change(account, "SET #token = :mine, #wake_at = :lost REMOVE #asleep")
            .when("(#token = :token AND attribute_exists(#asleep)) OR #token = :mine");
        for change in [awake, asleep] {
            let change = change
                .value(":token", s(token.to_string()))
                .value(":mine", s(mine.to_string()))
                .value(":lost", n(lost_at.millis()));
            let begun = retry_conflicts(CONFLICT_ATTEMPTS, || change.send_for_row(&self.client, &self.table)).await?;
            if let Ok(row) = begun {
                return Drain::from_row(&row).map(Some);
            }
        }
        Ok(None)
    }

    /// Returns the row of an account's drain.
    pub async fn drain(&self, account: UserId) -> Result<Option<Drain>, StoreError> {
        let row = get_row(&self.client, &self.table, table::drain(account)).await?;
        row.filter(|row| row.contains_key(TOKEN)).as_ref().map(Drain::from_row).transpose()
    }

    /// Ends a run, unless the drain was woken since the row was read as `drain`. The drain sleeps until `wake_at`, under a
    /// token of its own: messages for this run are void. Without a time its row is no alarm clock any more. Something that
    /// the run has done or seen may show in the index only later: that counts as waking it at `woken_at`. Returns whether
    /// the run has ended.
    pub async fn rest_drain(
        &self,
        drain: &Drain,
        next: Token,
        wake_at: Option<Timestamp>,
        woken_at: Timestamp,
    ) -> Result<bool, StoreError> {
        let update = match wake_at {
            Some(_) => "SET #token = :next, #wake_at = :wake, #asleep = :true, #woken_at = :now",
            None => "SET #token = :next, #woken_at = :now REMOVE #wake_at, #wake_shard, #asleep",
        };
        let mut change = drain_change(drain.account_id, update)
            // Its own outcome is allowed as well, because the answer to an earlier try may have been lost.
            .when("(#token = :token AND #wakes = :wakes) OR #token = :next")
            .value(":token", s(drain.token.to_string()))
            .value(":wakes", n(drain.wakes))
            .value(":next", s(next.to_string()))
            .value(":now", n(woken_at.millis()));
        if let Some(at) = wake_at {
            change = change.value(":wake", n(at.millis())).value(":true", AttributeValue::Bool(true));
        }
        self.change(&change).await
    }

    /// Hands a drain on to a message with the token `next`. Returns whether the run still had it.
    pub async fn hand_on_drain(&self, drain: &Drain, next: Token, lost_at: Timestamp) -> Result<bool, StoreError> {
        let change = drain_change(drain.account_id, "SET #token = :next, #wake_at = :lost")
            .when("#token = :token OR #token = :next")
            .value(":token", s(drain.token.to_string()))
            .value(":next", s(next.to_string()))
            .value(":lost", n(lost_at.millis()));
        self.change(&change).await
    }

    /// Notes that all deliveries of a removed endpoint have ended.
    pub async fn removal_done(&self, account: UserId, id: EndpointId) -> Result<(), StoreError> {
        self.change(&removal_forgotten(account, id)).await.map(drop)
    }

    /// Lets the drain of an account end the deliveries of an endpoint that was removed before.
    pub(super) async fn note_in_drain(
        &self,
        account: UserId,
        id: EndpointId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let noted = drain_change(account, "ADD #removed :ids")
            .when("attribute_exists(#token)")
            .value(":ids", AttributeValue::Ss(vec![id.to_string()]));
        self.wake_drain_by(account, now, now).await?;
        self.change(&noted).await.map(drop)
    }
}

fn drain_change(account: UserId, update: &str) -> Change {
    table::change(table::drain(account)).update(update)
}

/// Returns the write that lets the drain of an account end the deliveries of an endpoint which is removed. The drain must
/// have been woken before, and must be woken afterwards.
pub(super) fn removed_in_drain(account: UserId, id: EndpointId, now: Timestamp) -> Change {
    drain_change(account, "SET #woken_at = :now ADD #removed :ids, #wakes :one")
        .value(":now", n(now.millis()))
        .value(":one", n(1))
        .value(":ids", AttributeValue::Ss(vec![id.to_string()]))
}

/// Returns the write that takes a removal out of a drain again.
pub(super) fn removal_forgotten(account: UserId, id: EndpointId) -> Change {
    let change = drain_change(account, "DELETE #removed :ids").when("attribute_exists(#token)");
    change.value(":ids", AttributeValue::Ss(vec![id.to_string()]))
}
