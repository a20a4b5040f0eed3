//! Which of an endpoint's secrets sign at a given time (specification 6.13.4 and 6.13.5).

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::timestamp::{DAY_MILLIS, Timestamp};

/// An endpoint's secrets, oldest first, at least one. `S` is a secret, sealed or open.
///
/// One secret is *active*: it signs `X-Service-Signature`. A rotation adds the *next* secret. It becomes active
/// when it is activated, or by itself after 24 h, so that the receiver can have it before `X-Service-Signature`
/// depends on it. The secret before it stays valid for another 24 h. `webhook-signature` has a signature for each
/// valid secret, the next one included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<DatedSecret<S>>")]
pub struct Secrets<S>(Vec<DatedSecret<S>>);

/// A secret with the time from which it is active. All other times follow from these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatedSecret<S> {
    pub secret: S,
    /// The secret before this one ends 24 h after this time.
    pub active_from: Timestamp,
}

/// Why an endpoint's secrets were not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RotationError {
    /// An earlier rotation has not ended. Receivers may still verify with the previous secret, which is valid until
    /// then.
    #[error("the previous secret is valid until {0}; rotate again after that")]
    NotOver(Timestamp),
    #[error("there is no next secret to activate")]
    NoNext,
    #[error("there is no old secret that is still valid")]
    NoOld,
    #[error("the stored list of secrets is empty, or not in the order of their times")]
    Stored,
}

impl<S> Secrets<S> {
    /// Returns the only secret of a new endpoint, active at once.
    pub fn first(secret: S, now: Timestamp) -> Self {
        Self(vec![DatedSecret { secret, active_from: now }])
    }

    /// Converts each secret and keeps the times. Returns the first error, if there is one.
    pub fn try_map<T, E>(&self, form: impl Fn(&S) -> Result<T, E>) -> Result<Secrets<T>, E> {
        let dated =
            |dated: &DatedSecret<S>| Ok(DatedSecret { secret: form(&dated.secret)?, active_from: dated.active_from });
        self.0.iter().map(dated).collect::<Result<_, _>>().map(Secrets)
    }

    /// Returns the secret that signs `X-Service-Signature`.
    pub fn active(&self, now: Timestamp) -> &S {
        &self.0[self.active_index(now)].secret
    }

    /// Returns the secrets that sign `webhook-signature`, oldest first.
    pub fn valid(&self, now: Timestamp) -> impl Iterator<Item = &S> {
        self.0[self.ended(now)..].iter().map(|dated| &dated.secret)
    }

    /// Adds the next secret. If one waits already, it is replaced: a secret is shown only once, so an owner who has
    /// lost it needs another one. Refused as long as the active secret and the one before it are both valid.
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
        // Keeps the order of the list even if the clock of the host that activated the active one is ahead.
        next.active_from = now.max(active.active_from);
        Ok(())
    }

    /// Ends the old secret at once, and so a rotation. The next secret becomes the active one, if it is not yet.
    pub fn expire_old(&mut self, now: Timestamp) -> Result<(), RotationError> {
        let active = self.active_index(now);
        let newest = match self.activate(now) {
            Ok(()) => active + 1,
            Err(_) => active,
        };
        if self.ended(now) >= newest {
            return Err(RotationError::NoOld);
        }
        self.0.drain(..newest);
        Ok(())
    }

    /// Removes the secrets that have ended.
    fn prune(&mut self, now: Timestamp) {
        self.0.drain(..self.ended(now));
    }

    /// Returns the index of the active secret. The first one counts as active even before its time, because this
    /// host's clock may be behind that of the host that added it.
    fn active_index(&self, now: Timestamp) -> usize {
        self.0.iter().rposition(|dated| dated.active_from <= now).unwrap_or(0)
    }

    /// Returns how many secrets have ended. A secret ends when its successor has been active for 24 h.
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
