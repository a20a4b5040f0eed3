//! How many keys a user may have. Each key has budgets of its own, so without a bound one user could have any number of
//! them.
//!
//! The user's list of keys is what is counted. A row of the user's orders those who add to it: its turn is read before
//! the list, and the transaction that makes a key requires that it is still the same. So two that list at the same
//! time cannot both take the last place. The row also names the newest key, because the list may not show yet what the
//! transaction that made it has added: until it does, no other key is made.

use api::auth::table::{self, DAY, MADE, NEWEST, PK, TURN};
use aws_sdk_dynamodb::types::{TransactWriteItem, Update};
use common::ids::{KeyId, UserId};
use common::resources::TTL;
use common::store::{Attributes, Row, StoreError, n, s};
use common::timestamp::{DAY_MILLIS, Timestamp};

/// How long the rows of a key stay after it was revoked or replaced, or has expired: two days longer than
/// point-in-time recovery reaches back, because a restore reads from them what was revoked since.
pub(super) const ENDED_KEPT_FOR_MILLIS: i64 = 37 * DAY_MILLIS;

/// How many keys of a user an administration lets there be.
#[derive(Clone, Copy, Debug)]
pub struct KeyBounds {
    /// The most live keys beside which another one is made, plus one.
    pub(super) live: u32,
    /// The same for the replacement of a key, because the old one may be accepted for a while.
    pub(super) live_while_replacing: u32,
    /// The most keys that are made on a UTC day, replacements included. What was revoked stays in the user's list for
    /// weeks, and a new key has full budgets.
    pub(super) a_day: u32,
}

impl KeyBounds {
    /// The bounds of a user's own commands, of whom at most `most` keys are live.
    pub const fn of_owner(most: u32) -> Self {
        let twice = most.saturating_mul(2);
        Self { live: most, live_while_replacing: twice, a_day: twice }
    }

    /// The bounds of an operator: only new keys are bounded.
    pub const fn of_operator(most: u32) -> Self {
        Self { live: most, live_while_replacing: u32::MAX, a_day: u32::MAX }
    }
}

/// Why a key is made.
#[derive(Clone, Copy)]
pub(super) enum Reason {
    New,
    /// It replaces a key that is accepted for a while.
    Overlap,
    /// It replaces a key that is revoked.
    Replacement,
}

/// The row that orders those who make keys for one user.
#[derive(Clone, Copy, Default)]
pub(super) struct Turn {
    number: u64,
    /// The UTC day of the last key, in days since the Unix epoch.
    pub(super) day: i64,
    /// How many keys were made on that day.
    pub(super) made: u32,
    /// The last key.
    pub(super) newest: Option<KeyId>,
}

impl Turn {
    pub(super) fn from_row(row: &Row) -> Result<Self, StoreError> {
        let read = Attributes(row);
        Ok(Self {
            number: read.required_number(TURN)?,
            day: read.required_number(DAY)?,
            made: read.required_number(MADE)?,
            newest: read.parsed(NEWEST).ok(),
        })
    }

    /// Returns the turn of whoever makes the next key, which gets this id. What an operator makes does not count.
    pub(super) fn next(self, key_id: KeyId, now: Timestamp, counts: bool) -> Self {
        let day = now.millis().div_euclid(DAY_MILLIS);
        // A host whose clock is ahead may have begun the next day already.
        let (day, made) = if day > self.day { (day, 0) } else { (self.day, self.made) };
        Self { number: self.number + 1, day, made: made + u32::from(counts), newest: Some(key_id) }
    }

    /// Returns the write that takes this turn after the one that was seen.
    pub(super) fn write(
        self,
        table: &str,
        user: UserId,
        seen: Option<Self>,
        now: Timestamp,
    ) -> Result<TransactWriteItem, StoreError> {
        let mut update = Update::builder()
            .table_name(table)
            .set_key(Some(table::turn_row(user)))
            .update_expression("SET #turn = :turn, #day = :day, #made = :made, #newest = :newest, #ttl = :ttl")
            .expression_attribute_values(":turn", n(self.number))
            .expression_attribute_values(":day", n(self.day))
            .expression_attribute_values(":made", n(self.made))
            .expression_attribute_values(":newest", s(self.newest.map(|id| id.to_string()).unwrap_or_default()))
            // It counts a day, so it is of no use the day after the next.
            .expression_attribute_values(":ttl", n(now.plus_millis(2 * DAY_MILLIS).seconds()));
        for (name, attribute) in [("#turn", TURN), ("#day", DAY), ("#made", MADE), ("#newest", NEWEST), ("#ttl", TTL)] {
            update = update.expression_attribute_names(name, attribute);
        }
        update = match seen {
            Some(seen) => {
                update.condition_expression("#turn = :seen").expression_attribute_values(":seen", n(seen.number))
            }
            None => update.condition_expression("attribute_not_exists(#pk)").expression_attribute_names("#pk", PK),
        };
        Ok(TransactWriteItem::builder().update(update.build()?).build())
    }
}
