//! Which of an endpoint's secrets sign at a given time.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::timestamp::Timestamp;

const DAY_MILLIS: i64 = 24 * 60 * 60 * 1_000;

/// An endpoint's secrets, oldest first, at least one; `S` is a secret as it is stored.
///
/// One is *active*: it signs `X-Service-Signature`. A rotation adds the *next*, which becomes active when
/// it is activated, or by itself after 24 h, so that no receiver meets a signature for a secret that it
/// does not have yet. The one before stays valid for 24 h from then on. `webhook-signature` carries a
/// signature for each valid secret, the next included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<DatedSecret<S>>")]
pub struct Secrets<S>(Vec<DatedSecret<S>>);

/// A secret with the one time from which all else follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatedSecret<S> {
    /// The secret.
    pub secret: S,
    /// When it becomes active; the secret before it ends 24 h later.
    pub active_from: Timestamp,
}

/// Why an endpoint's secrets stay as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RotationError {
    /// An earlier rotation has not ended: receivers may still verify with the secret before.
    #[error("the secret before the active one is valid until {0}; rotate again after that")]
    NotOver(Timestamp),
    /// No next secret waits to become active.
    #[error("there is no next secret to activate")]
    NoNext,
    /// A stored list is empty, or out of order.
    #[error("the stored secrets are none, or not in the order of their times")]
    Stored,
}

impl<S> Secrets<S> {
    /// A new endpoint's only secret, active at once.
    pub fn first(secret: S, now: Timestamp) -> Self {
        Self(vec![DatedSecret { secret, active_from: now }])
    }

    /// The same secrets in another form, or the first error.
    pub fn try_map<T, E>(&self, form: impl Fn(&S) -> Result<T, E>) -> Result<Secrets<T>, E> {
        let dated =
            |dated: &DatedSecret<S>| Ok(DatedSecret { secret: form(&dated.secret)?, active_from: dated.active_from });
        self.0.iter().map(dated).collect::<Result<_, _>>().map(Secrets)
    }

    /// The secret that signs `X-Service-Signature`.
    pub fn active(&self, now: Timestamp) -> &S {
        &self.0[self.active_index(now)].secret
    }

    /// The secrets that sign `webhook-signature`, oldest first.
    pub fn valid(&self, now: Timestamp) -> impl Iterator<Item = &S> {
        self.0[self.ended(now)..].iter().map(|dated| &dated.secret)
    }

    /// Adds the next secret, in place of one that still waits: whoever lost sight of that one, which is
    /// shown only once, must not be left with it. Refused while two secrets that have been active are valid.
    pub fn add_next(&mut self, secret: S, now: Timestamp) -> Result<(), RotationError> {
        let (ended, active) = (self.ended(now), self.active_index(now));
        if ended < active {
            return Err(RotationError::NotOver(self.0[active].active_from.plus_millis(DAY_MILLIS)));
        }
        self.0.truncate(active + 1);
        self.prune(now);
        self.0.push(DatedSecret { secret, active_from: now.plus_millis(DAY_MILLIS) });
        Ok(())
    }

    /// Makes the next secret the active one at once.
    pub fn activate(&mut self, now: Timestamp) -> Result<(), RotationError> {
        let active = self.active_index(now);
        let [active, next, ..] = &mut self.0[active..] else { return Err(RotationError::NoNext) };
        // The clock of the host that made the active one may be ahead.
        next.active_from = now.max(active.active_from);
        Ok(())
    }

    /// Forgets the secrets that have ended.
    pub fn prune(&mut self, now: Timestamp) {
        self.0.drain(..self.ended(now));
    }

    /// The first is active even before its time: another host's clock may be behind.
    fn active_index(&self, now: Timestamp) -> usize {
        self.0.iter().rposition(|dated| dated.active_from <= now).unwrap_or(0)
    }

    /// How many secrets have ended: those whose successor has been active for 24 h.
    fn ended(&self, now: Timestamp) -> usize {
        let outlived = |dated: &DatedSecret<S>| dated.active_from.plus_millis(DAY_MILLIS) <= now;
        self.0.iter().skip(1).take_while(|successor| outlived(successor)).count()
    }
}

impl<S> TryFrom<Vec<DatedSecret<S>>> for Secrets<S> {
    type Error = RotationError;

    fn try_from(stored: Vec<DatedSecret<S>>) -> Result<Self, RotationError> {
        if stored.is_empty() || !stored.is_sorted_by_key(|dated| dated.active_from) {
            return Err(RotationError::Stored);
        }
        Ok(Self(stored))
    }
}

#[cfg(test)]
#[path = "rotation_tests.rs"]
mod tests;
