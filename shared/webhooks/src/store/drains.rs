//! Calls, begins and ends drains. Each step is one conditional write of the drain's row.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue, Update};

use super::table::{ASLEEP, CALLED_AT, CALLS, REMOVED, TOKEN, WAKE_AT, WAKE_SHARD, wake_shard};
use super::{CONFLICT_ATTEMPTS, WakeUp, WebhookStore, table};
use crate::delivery::{LEASE_SECONDS, Token};
use crate::drain::Drain;
use platform::resources::SWEEP_PERIOD;
use platform::store::{Attributes, Row, StoreError, get_row, n, retry_conflicts, s, updated};
use types::ids::{EndpointId, UserId};
use types::timestamp::Timestamp;

/// How often a call is tried while others call and runs begin and end.
const CALL_ATTEMPTS: u32 = 20;

/// What becomes of a drain after a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// It sleeps until then.
    Until(Timestamp),
    /// Nothing waits any more, so its row is removed.
    Over,
}

/// What a run that rests knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// It has seen everything. Then a call for later since the row was read prevents the rest as well.
    Sure,
    /// The drain was called a short time ago, so the index may not show everything.
    Recent,
    /// Something that the run has done or seen may not be in the index yet. That counts as a call at this time.
    Unsure(Timestamp),
}

/// A conditional write of a drain's row.
struct Change<'a> {
    account: UserId,
    update: &'a str,
    condition: &'a str,
    values: HashMap<String, AttributeValue>,
}

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
            calls: read.optional_number(CALLS)?.unwrap_or_default(),
            called_at: Timestamp::from_millis(read.required_number(CALLED_AT)?),
            removed: removed.filter_map(|id| id.parse().ok()).collect(),
        })
    }
}

impl WebhookStore {
    /// Calls the drain of an account, because something waits that it must look at. Returns whether a message with this
    /// token is to be sent. If not, one is on its way or somebody runs the drain, and will look once more.
    pub async fn call_drain(
        &self,
        account: UserId,
        token: Token,
        lost_at: Timestamp,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        for _ in 0..CALL_ATTEMPTS {
            let awake = Change::new(account, "SET #at = :now, #calls = #calls + :one")
                .when("attribute_exists(#wake) AND attribute_not_exists(#asleep)")
                .valued(":now", n(now.millis()))
                .valued(":one", n(1));
            if self.change_drain(awake).await? {
                return Ok(false);
            }
            let asleep = Change::new(
                account,
                "SET #at = :now, #calls = if_not_exists(#calls, :zero) + :one, #token = :token, #wake = :lost, #shard = :shard \
                 REMOVE #asleep",
            )
            // Its own outcome is allowed as well, because the answer to an earlier try may have been lost.
            .when("attribute_not_exists(#wake) OR attribute_exists(#asleep) OR #token = :token")
            .valued(":now", n(now.millis()))
            .valued(":zero", n(0))
            .valued(":one", n(1))
            .valued(":token", s(token.to_string()))
            .valued(":lost", n(lost_at.millis()))
            .valued(":shard", s(wake_shard(account.uuid())));
            if self.change_drain(asleep).await? {
                return Ok(true);
            }
        }
        Err(StoreError::Conflict)
    }

    /// Lets the drain of an account look at its deliveries by this time.
    pub async fn call_drain_by(&self, account: UserId, by: Timestamp, now: Timestamp) -> Result<(), StoreError> {
        for _ in 0..CALL_ATTEMPTS {
            let in_time = Change::new(account, "SET #at = :now")
                .when("attribute_exists(#wake) AND (attribute_not_exists(#asleep) OR #wake <= :by)")
                .valued(":now", n(now.millis()))
                .valued(":by", n(by.millis()));
            if self.change_drain(in_time).await? {
                return Ok(());
            }
            let earlier = Change::new(
                account,
                "SET #at = :now, #calls = if_not_exists(#calls, :zero), #token = if_not_exists(#token, :token), \
                 #wake = :by, #shard = :shard, #asleep = :true",
            )
            .when("attribute_not_exists(#wake) OR (attribute_exists(#asleep) AND #wake > :by)")
            .valued(":now", n(now.millis()))
            .valued(":zero", n(0))
            .valued(":by", n(by.millis()))
            .valued(":token", s(Token::random().to_string()))
            .valued(":shard", s(wake_shard(account.uuid())))
            .valued(":true", AttributeValue::Bool(true));
            if self.change_drain(earlier).await? {
                return Ok(());
            }
        }
        Err(StoreError::Conflict)
    }

    /// Begins a run under the token `mine`. Returns `None` if the message is void: another has begun a run already, or
    /// the drain is over. If the run dies, the next one begins after its leases have ended: sweeps call a period early.
    pub async fn begin_drain(
        &self,
        account: UserId,
        token: Token,
        mine: Token,
        now: Timestamp,
    ) -> Result<Option<Drain>, StoreError> {
        let until = now.plus_millis((LEASE_SECONDS + SWEEP_PERIOD.as_secs().cast_signed()) * 1_000);
        let change = Change::new(account, "SET #token = :mine, #wake = :until REMOVE #asleep")
            // Its own outcome is allowed as well, because the answer to an earlier try may have been lost.
            .when("#token = :token OR #token = :mine")
            .valued(":token", s(token.to_string()))
            .valued(":mine", s(mine.to_string()))
            .valued(":until", n(until.millis()));
        self.changed_drain(&change).await?.as_ref().map(Drain::from_row).transpose()
    }

    /// Returns the row of an account's drain.
    pub async fn drain(&self, account: UserId) -> Result<Option<Drain>, StoreError> {
        let row = get_row(&self.client, &self.table, table::drain(account)).await?;
        row.filter(|row| row.contains_key(TOKEN)).as_ref().map(Drain::from_row).transpose()
    }

    /// Ends a run, unless the drain was called for at once since the row was read as `drain`. Returns whether the run has
    /// ended.
    pub async fn rest_drain(&self, drain: &Drain, rest: Rest, certainty: Certainty) -> Result<bool, StoreError> {
        let (update, at) = match (rest, certainty) {
            (Rest::Until(at), Certainty::Unsure(_)) => ("SET #wake = :wake, #asleep = :true, #at = :now", Some(at)),
            (Rest::Until(at), _) => ("SET #wake = :wake, #asleep = :true", Some(at)),
            (Rest::Over, _) => ("REMOVE #wake, #shard, #asleep", None),
        };
        let condition = match certainty {
            Certainty::Sure => "#token = :token AND #calls = :calls AND #at = :called",
            Certainty::Recent | Certainty::Unsure(_) => "#token = :token AND #calls = :calls",
        };
        let mut change = Change::new(drain.account_id, update)
            .when(condition)
            .valued(":token", s(drain.token.to_string()))
            .valued(":calls", n(drain.calls));
        match certainty {
            Certainty::Sure => change = change.valued(":called", n(drain.called_at.millis())),
            Certainty::Unsure(now) => change = change.valued(":now", n(now.millis())),
            Certainty::Recent => {}
        }
        if let Some(at) = at {
            change = change.valued(":wake", n(at.millis())).valued(":true", AttributeValue::Bool(true));
        }
        self.change_drain(change).await
    }

    /// Hands a drain on to a message with the token `next`. Returns whether the run still had it. It counts as a call,
    /// because the index may not show yet what the run has recorded, and its last attempts are still to be recorded.
    pub async fn hand_on_drain(
        &self,
        drain: &Drain,
        next: Token,
        lost_at: Timestamp,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let change = Change::new(drain.account_id, "SET #token = :next, #wake = :lost, #at = :now")
            .valued(":now", n(now.millis()))
            .when("#token = :token OR #token = :next")
            .valued(":token", s(drain.token.to_string()))
            .valued(":next", s(next.to_string()))
            .valued(":lost", n(lost_at.millis()));
        self.change_drain(change).await
    }

    /// Moves the wake-up of a drain that `sweep` calls. Returns the token of its message, and whether the drain was
    /// asleep. Returns `None` if the wake-up was moved before.
    pub async fn wake_drain(
        &self,
        account: UserId,
        seen: &WakeUp,
        lost_at: Timestamp,
    ) -> Result<Option<(Token, bool)>, StoreError> {
        let change = Change::new(account, "SET #wake = :lost")
            .when("#wake = :seen")
            .valued(":seen", seen.at.clone())
            .valued(":lost", n(lost_at.millis()));
        let row = self.changed_drain(&change).await?;
        row.map(|row| Ok((Drain::from_row(&row)?.token, row.contains_key(ASLEEP)))).transpose()
    }

    /// Notes that all deliveries of a removed endpoint have ended.
    pub async fn removal_done(&self, account: UserId, id: EndpointId) -> Result<(), StoreError> {
        let change = Change::new(account, "DELETE #removed :ids").when("attribute_exists(#token)");
        self.change_drain(change.valued(":ids", AttributeValue::Ss(vec![id.to_string()]))).await.map(drop)
    }

    /// Lets the drain of an account end the deliveries of an endpoint that was removed before.
    pub(super) async fn note_in_drain(
        &self,
        account: UserId,
        id: EndpointId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let noted = Change::new(account, "ADD #removed :ids")
            .when("attribute_exists(#token)")
            .valued(":ids", AttributeValue::Ss(vec![id.to_string()]));
        self.call_drain_by(account, now, now).await?;
        self.change_drain(noted).await.map(drop)
    }

    /// Returns the write that lets the drain of an account end the deliveries of an endpoint which is removed. The drain
    /// must have been called before, and must be called afterwards.
    pub(super) fn removed_in_drain(
        &self,
        account: UserId,
        id: EndpointId,
        now: Timestamp,
    ) -> Result<Update, StoreError> {
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(table::drain(account)))
            .update_expression("SET #at = :now ADD #removed :ids")
            .expression_attribute_names("#removed", REMOVED)
            .expression_attribute_names("#at", CALLED_AT)
            .expression_attribute_values(":now", n(now.millis()))
            .expression_attribute_values(":ids", AttributeValue::Ss(vec![id.to_string()]));
        Ok(update.build()?)
    }

    async fn change_drain(&self, change: Change<'_>) -> Result<bool, StoreError> {
        self.changed_drain(&change).await.map(|row| row.is_some())
    }

    /// Makes a change. Returns the changed row, unless its condition does not hold.
    async fn changed_drain(&self, change: &Change<'_>) -> Result<Option<Row>, StoreError> {
        let text = format!("{} {}", change.update, change.condition);
        let used = NAMES.iter().filter(|(name, _)| text.contains(name));
        let names: HashMap<String, String> =
            used.map(|(name, attribute)| ((*name).to_owned(), (*attribute).to_owned())).collect();
        retry_conflicts(CONFLICT_ATTEMPTS, || async {
            let update = self
                .client
                .update_item()
                .table_name(&self.table)
                .set_key(Some(table::drain(change.account)))
                .update_expression(change.update)
                .condition_expression(change.condition)
                .set_expression_attribute_names(Some(names.clone()))
                .set_expression_attribute_values(Some(change.values.clone()).filter(|values| !values.is_empty()))
                .return_values(ReturnValue::AllNew);
            match update.send().await {
                Ok(changed) => Ok(changed.attributes),
                error => updated(error).map(|_| None),
            }
        })
        .await
    }
}

/// The names in the expressions, and the attributes for which they stand.
const NAMES: [(&str, &str); 7] = [
    ("#token", TOKEN),
    ("#wake", WAKE_AT),
    ("#shard", WAKE_SHARD),
    ("#asleep", ASLEEP),
    ("#calls", CALLS),
    ("#at", CALLED_AT),
    ("#removed", REMOVED),
];

impl<'a> Change<'a> {
    fn new(account: UserId, update: &'a str) -> Self {
        Self { account, update, condition: "", values: HashMap::new() }
    }

    fn when(self, condition: &'a str) -> Self {
        Self { condition, ..self }
    }

    fn valued(mut self, name: &str, value: AttributeValue) -> Self {
        self.values.insert(name.to_owned(), value);
        self
    }
}
