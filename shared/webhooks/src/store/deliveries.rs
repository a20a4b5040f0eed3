//! Deliveries: their rows, and the conditional writes that make the steps of their lives.

use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure};

use super::table::{
    ACCOUNT_ID, ATTEMPTS, BODY, CLAIMS, CREATED_AT, DROPPED_ATTEMPTS, DUE, ENDPOINT_ID, EPOCH, EVENT, EVENT_ID,
    FAILED_ATTEMPTS, FAILURE, IS_TEST, KEPT_UNTIL, LEASE_ID, LEASE_UNTIL, LISTED, OWNER_DAY, OWNER_ROUNDS, PK, ROUND,
    STATUS, TOKEN, TTL, WAKE_AT, WAKE_SHARD,
};
use super::{CONFLICT_ATTEMPTS, WebhookStore, table};
use crate::delivery::{Attempt, Condition, Delivery, Effect, Lease, OwnerRounds, Progress, Status, Transition};
use common::change::Change;
use common::ids::{DeliveryId, EndpointId, UserId};
use common::store::{Attributes, Row, StoreError, get_row, n, retry_conflicts, s};
use common::timestamp::Timestamp;

/// What became of writing a new delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Put {
    New,
    /// The delivery exists already. Holds its present state.
    Present(Box<Delivery>),
}

/// What became of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepOutcome {
    /// The step was made. Holds the delivery after it.
    Changed(Box<Delivery>),
    /// A condition did not hold. Holds the delivery as it stands, if there is one.
    Refused(Option<Box<Delivery>>),
}

impl WebhookStore {
    /// Writes a new delivery, unless it exists already.
    pub async fn put_delivery(&self, delivery: &Delivery) -> Result<Put, StoreError> {
        retry_conflicts(CONFLICT_ATTEMPTS, || async {
            let put = self
                .client
                .put_item()
                .table_name(&self.table)
                .set_item(Some(to_row(delivery)?))
                .condition_expression("attribute_not_exists(#pk)")
                .expression_attribute_names("#pk", PK)
                .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
            let Err(error) = put.send().await else { return Ok(Put::New) };
            match error.as_service_error() {
                Some(PutItemError::ConditionalCheckFailedException(failed)) => {
                    let found = failed.item().ok_or_else(|| StoreError::corrupt("a delivery without attributes"))?;
                    Ok(Put::Present(Box::new(from_row(found)?)))
                }
                _ => Err(error.into()),
            }
        })
        .await
    }

    /// Reads a delivery, strongly consistently.
    pub async fn delivery(&self, id: DeliveryId) -> Result<Option<Delivery>, StoreError> {
        get_row(&self.client, &self.table, table::delivery(id)).await?.map(|row| from_row(&row)).transpose()
    }

    /// Returns the account of a delivery, or `None` if there is no such delivery or its row does not tell. Nothing else
    /// of the row needs to be readable.
    pub async fn account_of(&self, id: DeliveryId) -> Result<Option<UserId>, StoreError> {
        let row = get_row(&self.client, &self.table, table::delivery(id)).await?;
        Ok(row.and_then(|row| Attributes(&row).parsed(ACCOUNT_ID).ok()))
    }

    /// Makes a step of a delivery to this endpoint in one conditional write, which also returns the delivery.
    pub async fn step(
        &self,
        id: DeliveryId,
        endpoint: EndpointId,
        transition: &Transition,
    ) -> Result<StepOutcome, StoreError> {
        let step = step(id, endpoint, transition)?;
        let read = |row: &Row| from_row(row).map(Box::new);
        match retry_conflicts(CONFLICT_ATTEMPTS, || step.send_for_row(&self.client, &self.table)).await? {
            Ok(row) => Ok(StepOutcome::Changed(read(&row)?)),
            Err(row) if row.is_empty() => Ok(StepOutcome::Refused(None)),
            Err(row) => Ok(StepOutcome::Refused(Some(read(&row)?))),
        }
    }

    /// Makes a step of a delivery to this endpoint in one conditional write. Returns whether its conditions held.
    pub async fn apply(
        &self,
        id: DeliveryId,
        endpoint: EndpointId,
        transition: &Transition,
    ) -> Result<bool, StoreError> {
        self.change(&step(id, endpoint, transition)?).await
    }
}

/// Renders a step of a delivery to this endpoint. It is refused if the row is missing, because each step requires at
/// least one attribute to have a certain value.
pub(super) fn step(id: DeliveryId, endpoint: EndpointId, transition: &Transition) -> Result<Change, StoreError> {
    let mut rendered =
        Rendered { change: table::change(table::delivery(id)), values: 0, set: Vec::new(), remove: Vec::new() };
    for condition in &transition.when {
        rendered.require(*condition);
    }
    for effect in &transition.then {
        rendered.make(effect, endpoint)?;
    }
    let part = |clause: &str, parts: &[String]| {
        if parts.is_empty() { String::new() } else { format!("{clause} {} ", parts.join(", ")) }
    };
    Ok(rendered.change.update(part("SET", &rendered.set) + &part("REMOVE", &rendered.remove)))
}

/// A transition that is being rendered.
struct Rendered {
    change: Change,
    values: usize,
    set: Vec<String>,
    remove: Vec<String>,
}

impl Rendered {
    fn require(&mut self, condition: Condition) {
        match condition {
            Condition::Status(status) => self.equals(STATUS, s(status.as_str())),
            Condition::Round(round) => self.equals(ROUND, n(round)),
            Condition::FailedAttempts(failed) => self.equals(FAILED_ATTEMPTS, n(failed)),
            Condition::Token(token) => self.equals(TOKEN, s(token.to_string())),
            Condition::LeaseOf(id) => self.equals(LEASE_ID, s(id.to_string())),
            Condition::WakeAt(at) => self.equals(WAKE_AT, n(at.millis())),
            Condition::NoWakeUp => self.when(&format!("attribute_not_exists(#{WAKE_AT})")),
            Condition::NoLease(now) => {
                let now = self.value(n(now.millis()));
                self.when(&format!("attribute_not_exists(#{LEASE_UNTIL}) OR #{LEASE_UNTIL} < {now}"));
            }
        }
    }

    fn make(&mut self, effect: &Effect, endpoint: EndpointId) -> Result<(), StoreError> {
        match effect {
            Effect::Status(status) => {
                self.set(STATUS, s(status.as_str()));
                self.set_or_remove(LISTED, table::listed(endpoint, *status).map(s));
                // DynamoDB removes the row once it is no longer kept, but never while it is pending.
                match status {
                    Status::Pending => self.remove.push(format!("#{TTL}")),
                    _ => self.set.push(format!("#{TTL} = #{KEPT_UNTIL}")),
                }
            }
            Effect::Failure(failure) => self.set_or_remove(FAILURE, failure.map(|failure| s(failure.as_str()))),
            Effect::Round(round) => self.set(ROUND, n(round)),
            Effect::FailedAttempts(failed) => {
                self.set(FAILED_ATTEMPTS, n(failed));
                self.set(WAKE_SHARD, s(table::waiting(endpoint, *failed > 0)));
            }
            Effect::Token(token) => self.set(TOKEN, s(token.to_string())),
            Effect::Lease(lease) => {
                self.set_or_remove(LEASE_ID, lease.map(|lease| s(lease.id.to_string())));
                self.set_or_remove(LEASE_UNTIL, lease.map(|lease| n(lease.until.millis())));
            }
            Effect::Claims(claims) => self.set(CLAIMS, n(claims)),
            Effect::Claimed => {
                let one = self.value(n(1));
                self.set.push(format!("#{CLAIMS} = #{CLAIMS} + {one}"));
            }
            Effect::Due(due) => self.set(DUE, n(due.millis())),
            Effect::WakeAt(at) => self.set_or_remove(WAKE_AT, at.map(|at| n(at.millis()))),
            Effect::Epoch(epoch) => self.set(EPOCH, n(epoch)),
            Effect::Attempt(attempt) => {
                let attempt = self.value(attempts_value(std::slice::from_ref(attempt))?);
                self.set.push(format!("#{ATTEMPTS} = list_append(#{ATTEMPTS}, {attempt})"));
            }
            Effect::Attempts(attempts) => self.set(ATTEMPTS, attempts_value(attempts)?),
            Effect::DroppedAttempts(dropped) => self.set(DROPPED_ATTEMPTS, n(dropped)),
            Effect::OwnerRounds(OwnerRounds { day, count }) => {
                self.set(OWNER_DAY, n(day));
                self.set(OWNER_ROUNDS, n(count));
            }
        }
        Ok(())
    }

    fn when(&mut self, condition: &str) {
        self.change = std::mem::take(&mut self.change).when(condition);
    }

    fn equals(&mut self, attribute: &str, value: AttributeValue) {
        let value = self.value(value);
        self.when(&format!("#{attribute} = {value}"));
    }

    fn set(&mut self, attribute: &str, value: AttributeValue) {
        let value = self.value(value);
        self.set.push(format!("#{attribute} = {value}"));
    }

    fn set_or_remove(&mut self, attribute: &str, value: Option<AttributeValue>) {
        match value {
            Some(value) => self.set(attribute, value),
            None => self.remove.push(format!("#{attribute}")),
        }
    }

    /// Returns a new placeholder for a value.
    fn value(&mut self, value: AttributeValue) -> String {
        let name = format!(":{}", self.values);
        self.values += 1;
        self.change = std::mem::take(&mut self.change).value(&name, value);
        name
    }
}

pub(super) fn to_row(delivery: &Delivery) -> Result<Row, StoreError> {
    let progress = &delivery.progress;
    let mut row = table::delivery(delivery.id);
    row.extend(
        [
            (ENDPOINT_ID, s(delivery.endpoint_id.to_string())),
            (ACCOUNT_ID, s(delivery.account_id.to_string())),
            (EVENT, s(delivery.event.as_str())),
            (CREATED_AT, n(delivery.created_at.millis())),
            (BODY, s(&delivery.body)),
            (STATUS, s(progress.status.as_str())),
            (ROUND, n(progress.round)),
            (FAILED_ATTEMPTS, n(progress.failed_attempts)),
            (TOKEN, s(progress.token.to_string())),
            (CLAIMS, n(progress.claims)),
            (DUE, n(progress.due.millis())),
            (ATTEMPTS, attempts_value(&progress.attempts)?),
            (WAKE_SHARD, s(table::waiting(delivery.endpoint_id, progress.failed_attempts > 0))),
            (KEPT_UNTIL, n(delivery.kept_until().seconds())),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    let optional = [
        (EVENT_ID, delivery.event_id.map(|id| s(id.to_string()))),
        (IS_TEST, delivery.is_test.then_some(AttributeValue::Bool(true))),
        (FAILURE, progress.failure.map(|failure| s(failure.as_str()))),
        (LEASE_ID, progress.lease.map(|lease| s(lease.id.to_string()))),
        (LEASE_UNTIL, progress.lease.map(|lease| n(lease.until.millis()))),
        (WAKE_AT, progress.wake_at.map(|at| n(at.millis()))),
        (EPOCH, progress.epoch.map(n)),
        (TTL, (progress.status != Status::Pending).then(|| n(delivery.kept_until().seconds()))),
        (LISTED, table::listed(delivery.endpoint_id, progress.status).map(s)),
        (DROPPED_ATTEMPTS, (progress.dropped_attempts > 0).then(|| n(progress.dropped_attempts))),
        (OWNER_DAY, progress.owner_rounds.map(|rounds| n(rounds.day))),
        (OWNER_ROUNDS, progress.owner_rounds.map(|rounds| n(rounds.count))),
    ];
    row.extend(optional.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    Ok(row)
}

/// Returns the attribute of these attempts.
pub(super) fn attempts_value(attempts: &[Attempt]) -> Result<AttributeValue, StoreError> {
    let attempts = attempts.iter().map(|attempt| Ok(s(serde_json::to_string(attempt)?)));
    Ok(AttributeValue::L(attempts.collect::<Result<_, StoreError>>()?))
}

pub(super) fn from_row(row: &Row) -> Result<Delivery, StoreError> {
    table::DELIVERY_FORMAT.of_row(row)?;
    let read = Attributes(row);
    let pk = read.text(PK).unwrap_or_default();
    Ok(Delivery {
        id: table::delivery_of(pk).ok_or_else(|| StoreError::corrupt(PK))?,
        endpoint_id: read.parsed(ENDPOINT_ID)?,
        account_id: read.parsed(ACCOUNT_ID)?,
        event: read.parsed(EVENT)?,
        event_id: row.contains_key(EVENT_ID).then(|| read.parsed(EVENT_ID)).transpose()?,
        is_test: row.contains_key(IS_TEST),
        created_at: Timestamp::from_millis(read.required_number(CREATED_AT)?),
        body: read.text(BODY).ok_or_else(|| StoreError::corrupt(BODY))?.to_owned(),
        progress: progress(row)?,
    })
}

fn progress(row: &Row) -> Result<Progress, StoreError> {
    let read = Attributes(row);
    let time = |name| read.number(name).map(Timestamp::from_millis);
    let lease = match time(LEASE_UNTIL) {
        Some(until) => Some(Lease { id: read.parsed(LEASE_ID)?, until }),
        None => None,
    };
    Ok(Progress {
        status: read.parsed(STATUS)?,
        failure: row.contains_key(FAILURE).then(|| read.parsed(FAILURE)).transpose()?,
        round: read.required_number(ROUND)?,
        failed_attempts: read.required_number(FAILED_ATTEMPTS)?,
        token: read.parsed(TOKEN)?,
        lease,
        claims: read.required_number(CLAIMS)?,
        due: time(DUE).ok_or_else(|| StoreError::corrupt(DUE))?,
        wake_at: time(WAKE_AT),
        epoch: read.optional_number(EPOCH)?,
        attempts: attempts(row)?,
        dropped_attempts: read.optional_number(DROPPED_ATTEMPTS)?.unwrap_or_default(),
        owner_rounds: read
            .number(OWNER_DAY)
            .zip(read.number(OWNER_ROUNDS))
            .map(|(day, count)| OwnerRounds { day, count }),
    })
}

fn attempts(row: &Row) -> Result<Vec<Attempt>, StoreError> {
    let unreadable = || StoreError::corrupt(ATTEMPTS);
    let attempts = row.get(ATTEMPTS).and_then(|value| value.as_l().ok()).ok_or_else(unreadable)?;
    let attempt = |value: &AttributeValue| {
        let text = value.as_s().map_err(|_| unreadable())?;
        serde_json::from_str(text).map_err(|_| unreadable())
    };
    attempts.iter().map(attempt).collect()
}
