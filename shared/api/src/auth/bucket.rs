//! The token bucket (specification 8.2): one conditional write takes a token, or returns why it cannot.
//!
//! A bucket holds `limit` tokens and is full again at the start of each UTC minute. Its counter for minute *m* is
//! an attribute that is named after budget and minute. So one call is enough in any state of the bucket: a new
//! minute has a counter of its own, and none has to be reset.
//!
//! Hosts' clocks differ, so a spent minute must not open again for a host whose clock is behind:
//!
//! - A write in minute *m* keeps the counter of *m-1*. A host that is up to a minute behind still finds it.
//! - A write in minute *m* requires that *m+2* has no counter. If it has one, the writing host is more than a minute
//!   behind, and its own counter may have been removed already.
//!
//! The end-to-end test `budget_model` plays random clocks, limits and lost answers against a plain count.

use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{ReturnValue, ReturnValuesOnConditionCheckFailure};
use common::ids::KeyId;
use common::scope::{Budget, Scope, Tier};
use common::store::{Attributes, Row, StoreError, b, n, s};
use common::timestamp::Timestamp;

use crate::auth::table::{
    EXPIRES_AT, KeyRecord, KeyStatus, LAST_REQUEST, LAST_USED_AT, LIMIT_OVERRIDE, PK, SCOPES, STATUS, TIER,
};
use crate::auth::usage;

/// The state of a budget, as the rate-limit headers show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Tokens per minute, or 0 if no key write was completed.
    pub limit: u32,
    /// Tokens left in this minute.
    pub remaining: u32,
    /// Seconds until the next minute, 1 to 60.
    pub reset: u32,
    /// Whether a key write has shown limit and tokens.
    pub known: bool,
}

impl Rate {
    /// Returns the state that is shown if no key write was completed.
    pub fn none(now: Timestamp) -> Self {
        Self { limit: 0, remaining: 0, reset: now.seconds_to_next_minute(), known: false }
    }
}

/// A request that took a token.
#[derive(Debug)]
pub struct Grant {
    /// The key as it stood after the write.
    pub key: KeyRecord,
    /// The budget after the write.
    pub rate: Rate,
    /// Counters to remove with `Gate::clean_up`. Usually there are none.
    pub stale: Vec<String>,
}

/// A request that did not get a token.
#[derive(Clone, Debug)]
pub struct Refused {
    pub reason: Refusal,
    /// The budget, if it is known, or else [`Rate::none`].
    pub rate: Rate,
    /// The key, if it is known.
    pub key_id: Option<KeyId>,
}

impl Refused {
    /// Returns a refusal that shows no budget.
    pub fn without_budget(reason: Refusal, now: Timestamp) -> Self {
        Self { reason, rate: Rate::none(now), key_id: None }
    }
}

/// Why a request took no token.
#[derive(Clone, Debug)]
pub enum Refusal {
    /// The key is unknown, revoked or expired. The response does not say which (specification 5.4.2).
    KeyInvalid,
    /// The key is valid, but lacks the scope.
    ScopeMissing(Scope),
    /// The tokens of this minute are spent.
    BudgetSpent {
        budget: Budget,
        limit: u32,
        /// Seconds until the next minute, 1 to 60.
        retry_after: u32,
    },
    /// The key write failed, or was not decided in time.
    Store(StoreError),
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// The ages, in minutes, of the counters that each write removes from its own budget. Those of this minute and the
/// last one stay.
const REMOVED_AGES_MINUTES: std::ops::RangeInclusive<i64> = 2..=16;
/// The lowest age, in minutes, of the counters that a clean-up removes. It keeps one minute more than a write does,
/// because it also removes counters of other budgets. Those may have no newer counter that would fence off a host
/// whose clock is half a minute behind.
const STALE_AFTER_MINUTES: i64 = 3;
/// Once a write leaves this many stale counters behind, of whatever budget, one extra call removes them.
const MIN_STALE_COUNTERS: usize = 16;

/// One request's attempt to take a token. If an answer is lost, repeating the attempt takes no second token, unless another
/// request has taken one from the same budget of the key in between: the row keeps only the last request of each budget.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenRequest {
    pub(super) budget: Budget,
    pub(super) now: Timestamp,
    /// Random. The row keeps it, so that a repeated attempt is recognised.
    pub(super) request: [u8; 16],
}

impl TokenRequest {
    pub(super) fn new(budget: Budget, now: Timestamp) -> Result<Self, Refused> {
        let mut request = [0; 16];
        getrandom::fill(&mut request)
            .map_err(|error| Refused::without_budget(StoreError::Defect(error.to_string()).into(), now))?;
        Ok(Self { budget, now, request })
    }

    /// Completes the update that takes a token if key, scope and bucket allow it.
    pub(super) fn take(&self, update: UpdateItemFluentBuilder) -> UpdateItemFluentBuilder {
        let minute = self.now.minute();
        let scope = self.budget.scope();
        let counters = REMOVED_AGES_MINUTES.map(|age| counter(self.budget, minute - age));
        let counts = scope.into_iter().flat_map(|scope| usage::removed(scope, self.now));
        let swept: Vec<(String, String)> =
            counters.chain(counts).enumerate().map(|(at, name)| (format!("#swept{at}"), name)).collect();
        let mut update = update
            .expression_attribute_names("#used", counter(self.budget, minute))
            .expression_attribute_names("#ahead", counter(self.budget, minute + 2))
            .expression_attribute_values(":zero", n(0))
            .expression_attribute_values(":one", n(1))
            .expression_attribute_values(":now", n(self.now.millis()))
            .expression_attribute_values(":request", b(self.request))
            .expression_attribute_values(":active", s(KeyStatus::Active.as_str()));
        for (placeholder, name) in &swept {
            update = update.expression_attribute_names(placeholder, name);
        }
        let mut set =
            "SET #used = if_not_exists(#used, :zero) + :one, #request = :request, #last_used = :now".to_owned();
        let mut condition = "attribute_exists(#pk) AND #status = :active \
             AND (attribute_not_exists(#expires) OR #expires > :now) \
             AND attribute_not_exists(#ahead) \
             AND (attribute_not_exists(#request) OR #request <> :request) AND "
            .to_owned();
        condition.push_str(&has_token());
        for tier in Tier::ALL {
            let (name, limit) = placeholders(tier);
            update = update
                .expression_attribute_values(name, s(tier.as_str()))
                .expression_attribute_values(limit, n(tier.limit()));
        }
        for (name, attribute) in [
            ("#pk", PK),
            ("#status", STATUS),
            ("#expires", EXPIRES_AT),
            ("#override", LIMIT_OVERRIDE),
            ("#tier", TIER),
            ("#last_used", LAST_USED_AT),
        ] {
            update = update.expression_attribute_names(name, attribute);
        }
        update = update.expression_attribute_names("#request", last_request(self.budget));
        if let Some(scope) = scope {
            condition.push_str(" AND contains(#scopes, :scope)");
            set.push_str(", #day = if_not_exists(#day, :zero) + :one");
            update = update
                .expression_attribute_names("#day", usage::count(scope, self.now))
                .expression_attribute_names("#scopes", SCOPES)
                .expression_attribute_values(":scope", s(scope.as_str()));
        }
        let swept: Vec<String> = swept.into_iter().map(|(placeholder, _)| placeholder).collect();
        update
            .update_expression(format!("{set} REMOVE {}", swept.join(", ")))
            .condition_expression(condition)
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
    }

    /// Returns the grant for a token that was taken. `row` is the row after the write.
    pub(super) fn granted(&self, row: &Row) -> Result<Grant, StoreError> {
        let key = KeyRecord::from_row(row)?;
        let rate = self.rate(&key, row);
        Ok(Grant { key, rate, stale: self.stale(row) })
    }

    /// Returns why the condition failed. `row` is the row as it stood, or `None` if there was none. If the token was
    /// already taken by this attempt, and only the answer was lost, the request is granted.
    pub(super) fn refused(&self, row: Option<&Row>) -> Result<Grant, Refused> {
        // A revoked key is refused as such even if the rest of its row cannot be read.
        let in_use = |row: &&Row| row.contains_key(STATUS) && !KeyRecord::is_revoked(row);
        let Some(row) = row.filter(in_use) else {
            return Err(Refused::without_budget(Refusal::KeyInvalid, self.now));
        };
        let key = KeyRecord::from_row(row).map_err(|error| Refused::without_budget(error.into(), self.now))?;
        if !key.is_live(self.now) {
            return Err(Refused::without_budget(Refusal::KeyInvalid, self.now));
        }
        let rate = self.rate(&key, row);
        if let Some(scope) = self.budget.scope().filter(|scope| !key.scopes.contains(scope)) {
            return Err(Refused { reason: Refusal::ScopeMissing(scope), rate, key_id: Some(key.key_id) });
        }
        let read = Attributes(row);
        if read.bytes(&last_request(self.budget)) == Some(&self.request) {
            return Ok(Grant { key, rate, stale: Vec::new() });
        }
        let reason = if read.number::<u32>(&counter(self.budget, self.now.minute() + 2)).is_some() {
            StoreError::Unavailable("this host's clock is more than a minute behind".to_owned()).into()
        } else if rate.remaining == 0 {
            Refusal::BudgetSpent { budget: self.budget, limit: key.limit, retry_after: rate.reset }
        } else {
            StoreError::Unavailable("the key write was refused for no visible reason".to_owned()).into()
        };
        Err(Refused { reason, rate, key_id: Some(key.key_id) })
    }

    fn rate(&self, key: &KeyRecord, row: &Row) -> Rate {
        let used = Attributes(row).number::<u32>(&counter(self.budget, self.now.minute())).unwrap_or(0);
        let reset = self.now.seconds_to_next_minute();
        Rate { limit: key.limit, remaining: key.limit.saturating_sub(used), reset, known: true }
    }

    /// Returns the counters, of every budget and of minutes and days, that are old enough for a clean-up. Returns none
    /// if there are too few to be worth a call.
    fn stale(&self, row: &Row) -> Vec<String> {
        let newest_stale = self.now.minute() - STALE_AFTER_MINUTES;
        let is_stale = |name: &&String| {
            minute_of(name).is_some_and(|minute| minute <= newest_stale) || usage::is_stale(name, self.now)
        };
        let stale: Vec<String> = row.keys().filter(is_stale).cloned().collect();
        if stale.len() >= MIN_STALE_COUNTERS { stale } else { Vec::new() }
    }
}

/// Completes the update that removes stale counters. Its condition keeps it from creating a row for a key that was
/// deleted.
pub(super) fn clean_up(update: UpdateItemFluentBuilder, stale: &[String]) -> UpdateItemFluentBuilder {
    let names: Vec<String> = (0..stale.len()).map(|at| format!("#s{at}")).collect();
    let update = names
        .iter()
        .zip(stale)
        .fold(update, |update, (name, counter)| update.expression_attribute_names(name, counter));
    update
        .expression_attribute_names("#pk", PK)
        .update_expression(format!("REMOVE {}", names.join(", ")))
        .condition_expression("attribute_exists(#pk)")
}

/// Returns the condition that a token is left: below the key's own limit or, if it has none, below its tier's. The write
/// does not know the tier beforehand, so the condition asks for each.
fn has_token() -> String {
    let tiers = Tier::ALL.map(|tier| {
        let (name, limit) = placeholders(tier);
        format!("(#tier = {name} AND (attribute_not_exists(#used) OR #used < {limit}))")
    });
    format!(
        "((attribute_not_exists(#used) AND #override > :zero) OR #used < #override \
         OR (attribute_not_exists(#override) AND ({})))",
        tiers.join(" OR ")
    )
}

/// Returns the placeholders of a tier's name and of its limit.
fn placeholders(tier: Tier) -> (String, String) {
    (format!(":{tier}"), format!(":{tier}_limit"))
}

/// Returns the name of the attribute that counts a budget's requests in one minute.
fn counter(budget: Budget, minute: i64) -> String {
    format!("u{}{minute}", letter(budget))
}

/// Returns the name of the attribute with the last request that took a token from a budget.
fn last_request(budget: Budget) -> String {
    format!("{LAST_REQUEST}{}", letter(budget))
}

fn letter(budget: Budget) -> char {
    match budget {
        Budget::Scope(scope) => usage::letter(scope),
        Budget::Me => 'm',
    }
}

fn minute_of(attribute: &str) -> Option<i64> {
    let rest = attribute.strip_prefix('u')?;
    rest.strip_prefix(['c', 'l', 'o', 'w', 'm'])?.parse().ok()
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::config::BehaviorVersion;
    use aws_sdk_dynamodb::{Client, Config};

    use super::*;

    #[test]
    fn a_count_of_a_day_is_not_taken_for_a_counter_of_a_minute() {
        let now = Timestamp::from_millis(1_795_176_000_000);
        for scope in Scope::ALL {
            assert_eq!(minute_of(&counter(Budget::Scope(scope), now.minute())), Some(29_919_600));
            assert_eq!(minute_of(&usage::count(scope, now)), None);
        }
    }

    #[test]
    fn the_expressions_are_far_below_the_limit_of_dynamodb() {
        const MAX_EXPRESSION_BYTES: usize = 4_096;
        let client = Client::from_conf(Config::builder().behavior_version(BehaviorVersion::latest()).build());
        for budget in Scope::ALL.map(Budget::Scope).into_iter().chain([Budget::Me]) {
            let attempt = TokenRequest { budget, now: Timestamp::from_millis(1_795_176_000_000), request: [0; 16] };
            let update = attempt.take(client.update_item());
            for expression in [update.get_update_expression(), update.get_condition_expression()] {
                let bytes = expression.as_ref().unwrap().len();
                assert!(bytes < MAX_EXPRESSION_BYTES / 4, "{bytes} bytes for {budget:?}");
            }
        }
    }
}
