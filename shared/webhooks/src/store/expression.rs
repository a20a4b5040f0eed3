//! Renders a transition as a DynamoDB expression.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

use super::delivery_row::attempts_value;
use super::table::{
    self, ATTEMPTS, CLAIMS, DROPPED_ATTEMPTS, DUE, EPOCH, FAILED_ATTEMPTS, FAILURE, KEPT_UNTIL, LEASE_ID, LEASE_UNTIL,
    LISTED, ROUND, STATUS, TOKEN, TTL, WAKE_AT, WAKE_SHARD,
};
use crate::delivery::{Condition, Effect, Status, Transition};
use platform::store::{StoreError, n, s};
use types::ids::EndpointId;

/// The expressions of a conditional update.
#[derive(Default)]
pub(super) struct Expression {
    pub(super) names: HashMap<String, String>,
    pub(super) values: HashMap<String, AttributeValue>,
    conditions: Vec<String>,
    set: Vec<String>,
    remove: Vec<String>,
}

impl Expression {
    /// Renders a transition of a delivery to this endpoint. The write is refused if the row is missing, because each
    /// transition requires at least one attribute to have a certain value.
    pub(super) fn new(transition: &Transition, endpoint: EndpointId) -> Result<Self, StoreError> {
        let mut expression = Self::default();
        for condition in &transition.when {
            expression.require(*condition);
        }
        for effect in &transition.then {
            expression.make(effect, endpoint)?;
        }
        Ok(expression)
    }

    pub(super) fn condition(&self) -> String {
        self.conditions.join(" AND ")
    }

    pub(super) fn update(&self) -> String {
        let part = |clause: &str, parts: &[String]| {
            if parts.is_empty() { String::new() } else { format!("{clause} {} ", parts.join(", ")) }
        };
        part("SET", &self.set) + &part("REMOVE", &self.remove)
    }

    fn require(&mut self, condition: Condition) {
        match condition {
            Condition::Status(status) => self.equals(STATUS, s(status.as_str())),
            Condition::Round(round) => self.equals(ROUND, n(round)),
            Condition::FailedAttempts(failed) => self.equals(FAILED_ATTEMPTS, n(failed)),
            Condition::Token(token) => self.equals(TOKEN, s(token.to_string())),
            Condition::LeaseOf(id) => self.equals(LEASE_ID, s(id.to_string())),
            Condition::WakeAt(at) => self.equals(WAKE_AT, n(at.millis())),
            Condition::NoWakeUp => {
                let name = self.name(WAKE_AT);
                self.conditions.push(format!("attribute_not_exists({name})"));
            }
            Condition::NoLease(now) => {
                let (name, value) = (self.name(LEASE_UNTIL), self.value(n(now.millis())));
                self.conditions.push(format!("(attribute_not_exists({name}) OR {name} < {value})"));
            }
        }
    }

    fn make(&mut self, effect: &Effect, endpoint: EndpointId) -> Result<(), StoreError> {
        match effect {
            Effect::Status(status) => {
                self.set(STATUS, s(status.as_str()));
                self.set_or_remove(LISTED, table::listed(endpoint, *status).map(s));
                self.expire(*status != Status::Pending);
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
                let (name, one) = (self.name(CLAIMS), self.value(n(1)));
                self.set.push(format!("{name} = {name} + {one}"));
            }
            Effect::Due(due) => self.set(DUE, n(due.millis())),
            Effect::WakeAt(at) => self.set_or_remove(WAKE_AT, at.map(|at| n(at.millis()))),
            Effect::Epoch(epoch) => self.set(EPOCH, n(epoch)),
            Effect::Attempt(attempt) => {
                let attempt = attempts_value(std::slice::from_ref(attempt))?;
                let (name, value) = (self.name(ATTEMPTS), self.value(attempt));
                self.set.push(format!("{name} = list_append({name}, {value})"));
            }
            Effect::Attempts(attempts) => self.set(ATTEMPTS, attempts_value(attempts)?),
            Effect::DroppedAttempts(dropped) => self.set(DROPPED_ATTEMPTS, n(dropped)),
        }
        Ok(())
    }

    /// Lets DynamoDB remove the row once it is no longer kept, or keeps it from that.
    fn expire(&mut self, is_settled: bool) {
        let ttl = self.name(TTL);
        if is_settled {
            let kept_until = self.name(KEPT_UNTIL);
            self.set.push(format!("{ttl} = {kept_until}"));
        } else {
            self.remove.push(ttl);
        }
    }

    fn equals(&mut self, attribute: &str, value: AttributeValue) {
        let (name, value) = (self.name(attribute), self.value(value));
        self.conditions.push(format!("{name} = {value}"));
    }

    fn set(&mut self, attribute: &str, value: AttributeValue) {
        let (name, value) = (self.name(attribute), self.value(value));
        self.set.push(format!("{name} = {value}"));
    }

    fn set_or_remove(&mut self, attribute: &str, value: Option<AttributeValue>) {
        if let Some(value) = value {
            self.set(attribute, value);
        } else {
            let name = self.name(attribute);
            self.remove.push(name);
        }
    }

    fn name(&mut self, attribute: &str) -> String {
        let name = format!("#{attribute}");
        self.names.insert(name.clone(), attribute.to_owned());
        name
    }

    fn value(&mut self, value: AttributeValue) -> String {
        let name = format!(":{}", self.values.len());
        self.values.insert(name.clone(), value);
        name
    }
}
