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

    /// Returns when the next secret becomes active, if there is one, and when the oldest valid one ends, if others follow.
    pub fn changes(&self, now: Timestamp) -> (Option<Timestamp>, Option<Timestamp>) {
        let next = self.0.get(self.active_index(now) + 1).map(|next| next.active_from);
        let successor = self.0.get(self.ended(now) + 1);
        (next, successor.map(|successor| successor.active_from.plus_millis(DAY_MILLIS)))
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: i64 = 60 * 60 * 1_000;

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_millis(1_795_262_400_000 + hours * HOUR)
    }

    /// Returns the secret that signs `X-Service-Signature` and those that sign `webhook-signature`.
    fn signing(secrets: &Secrets<u32>, now: Timestamp) -> (u32, Vec<u32>) {
        (*secrets.active(now), secrets.valid(now).copied().collect())
    }

    fn just_before(time: Timestamp) -> Timestamp {
        time.plus_millis(-1)
    }

    #[test]
    fn a_rotation_left_to_itself_takes_two_days() {
        let mut secrets = Secrets::first(1, at(0));
        secrets.add_next(2, at(100)).unwrap();
        for (now, expected) in [
            (at(-1), (1, vec![1, 2])),
            (at(100), (1, vec![1, 2])),
            (just_before(at(124)), (1, vec![1, 2])),
            (at(124), (2, vec![1, 2])),
            (just_before(at(148)), (2, vec![1, 2])),
            (at(148), (2, vec![2])),
            (at(9_999), (2, vec![2])),
        ] {
            assert_eq!(signing(&secrets, now), expected, "{now}");
        }
        assert_eq!(secrets.changes(at(100)), (Some(at(124)), Some(at(148))));
        assert_eq!(secrets.changes(at(124)), (None, Some(at(148))));
        assert_eq!(secrets.changes(at(148)), (None, None));
    }

    #[test]
    fn the_old_secret_can_be_ended_at_once_before_or_after_the_activation() {
        for is_activated in [false, true] {
            let mut secrets = Secrets::first(1, at(0));
            secrets.add_next(2, at(100)).unwrap();
            if is_activated {
                secrets.activate(at(101)).unwrap();
            }
            secrets.expire_old(at(102)).unwrap();
            assert_eq!(signing(&secrets, at(102)), (2, vec![2]), "{is_activated}");
            // The host that signs may have a clock that is behind.
            assert_eq!(signing(&secrets, at(99)), (2, vec![2]), "{is_activated}");
            assert_eq!(secrets.expire_old(at(102)), Err(RotationError::NoOld));
            secrets.add_next(3, at(102)).unwrap();
            assert_eq!(signing(&secrets, at(102)), (2, vec![2, 3]));
        }
    }

    #[test]
    fn without_an_old_secret_there_is_none_to_end() {
        let mut secrets = Secrets::first(1, at(0));
        assert_eq!(secrets.expire_old(at(1)), Err(RotationError::NoOld));
        secrets.add_next(2, at(100)).unwrap();
        // Both have become what they are by themselves: the second is active, and the first has ended.
        let before = secrets.clone();
        assert_eq!(secrets.expire_old(at(148)), Err(RotationError::NoOld));
        assert_eq!(secrets, before);
        secrets.expire_old(just_before(at(148))).unwrap();
        assert_eq!(signing(&secrets, at(148)), (2, vec![2]));
    }

    #[test]
    fn pruning_forgets_what_has_ended_alone() {
        let mut secrets = Secrets::first(1, at(0));
        secrets.add_next(2, at(0)).unwrap();
        secrets.prune(just_before(at(48)));
        assert_eq!(secrets.0.len(), 2);
        secrets.prune(at(48));
        assert_eq!(signing(&secrets, at(0)), (2, vec![2]));
    }

    #[test]
    fn the_stored_form_is_pinned_and_read_strictly() {
        let mut secrets = Secrets::first("a".to_owned(), at(0));
        secrets.add_next("b".to_owned(), at(0)).unwrap();
        let stored = concat!(
            r#"[{"secret":"a","active_from":"2026-11-21T12:00:00.000Z"},"#,
            r#"{"secret":"b","active_from":"2026-11-22T12:00:00.000Z"}]"#
        );
        assert_eq!(serde_json::to_string(&secrets).unwrap(), stored);
        assert_eq!(serde_json::from_str::<Secrets<String>>(stored).unwrap(), secrets);
        for bad in ["[]", &stored.replace("-21T", "-23T"), &stored.replace("secret", "text")] {
            assert!(serde_json::from_str::<Secrets<String>>(bad).is_err(), "{bad}");
        }
    }

    /// Generates an operator's commands: the hours since the one before, and whether a secret is added (or else activated).
    fn commands() -> impl Strategy<Value = Vec<(i64, bool)>> {
        prop::collection::vec((prop_oneof![0..4_i64, 20..28_i64, 40..60_i64], any::<bool>()), 0..12)
    }

    proptest! {
        /// Compares the secrets with a plain diary of when each one became active, from which nothing is pruned.
        #[test]
        fn whatever_an_operator_does_each_secret_signs_in_its_time(commands in commands()) {
            let mut secrets = Secrets::first(0, at(0));
            let mut diary = vec![at(0)];
            let mut owners = vec![0];
            let (mut hour, mut fresh) = (0, 0);
            for (pause, add) in commands {
                hour += pause;
                let now = at(hour);
                let waits = diary.len() > 1 && *diary.last().unwrap() > now;
                if add {
                    fresh += 1;
                    let active = diary.len() - 1 - usize::from(waits);
                    let over = active == 0 || diary[active].plus_millis(24 * HOUR) <= now;
                    prop_assert_eq!(secrets.add_next(fresh, now).is_ok(), over);
                    if over {
                        diary.truncate(active + 1);
                        owners.truncate(active + 1);
                        diary.push(at(hour + 24));
                        owners.push(fresh);
                    }
                } else {
                    prop_assert_eq!(secrets.activate(now).is_ok(), waits);
                    if waits {
                        *diary.last_mut().unwrap() = now;
                    }
                }
                for later in hour..hour + 60 {
                    let active = (0..diary.len()).rev().find(|i| diary[*i] <= at(later)).unwrap();
                    let valid = (0..diary.len()).filter(|i| diary.get(i + 1).is_none_or(|next| at(later - 24) < *next));
                    let expected = (owners[active], valid.map(|i| owners[i]).collect::<Vec<_>>());
                    let shown = signing(&secrets, at(later));
                    prop_assert!(shown.1.contains(&shown.0) && shown.1.len() <= 2);
                    prop_assert_eq!(shown, expected.clone());
                    let mut pruned = secrets.clone();
                    pruned.prune(at(later));
                    prop_assert_eq!(signing(&pruned, at(later)), expected);
                }
            }
        }
    }
}
