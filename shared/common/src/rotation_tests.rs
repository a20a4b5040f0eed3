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
}

#[test]
fn an_activated_secret_signs_at_once_and_the_old_one_ends_a_day_later() {
    let mut secrets = Secrets::first(1, at(0));
    assert_eq!(secrets.activate(at(1)), Err(RotationError::NoNext));
    secrets.add_next(2, at(100)).unwrap();
    secrets.activate(at(103)).unwrap();
    assert_eq!(signing(&secrets, just_before(at(103))), (1, vec![1, 2]));
    assert_eq!(signing(&secrets, at(103)), (2, vec![1, 2]));
    assert_eq!(signing(&secrets, just_before(at(127))), (2, vec![1, 2]));
    assert_eq!(signing(&secrets, at(127)), (2, vec![2]));
    assert_eq!(secrets.activate(at(104)), Err(RotationError::NoNext), "it must not start its day anew");
}

#[test]
fn a_next_secret_that_waits_is_replaced_and_waits_anew() {
    let mut secrets = Secrets::first(1, at(0));
    secrets.add_next(2, at(100)).unwrap();
    secrets.add_next(3, at(110)).unwrap();
    assert_eq!(signing(&secrets, at(110)), (1, vec![1, 3]));
    assert_eq!(signing(&secrets, just_before(at(134))), (1, vec![1, 3]));
    assert_eq!(signing(&secrets, at(134)), (3, vec![1, 3]));
}

#[test]
fn a_third_is_refused_until_the_first_has_ended() {
    let mut secrets = Secrets::first(1, at(0));
    secrets.add_next(2, at(100)).unwrap();
    secrets.activate(at(100)).unwrap();
    let before = secrets.clone();
    assert_eq!(secrets.add_next(3, just_before(at(124))), Err(RotationError::NotOver(at(124))));
    assert_eq!(secrets, before);
    secrets.add_next(3, at(124)).unwrap();
    assert_eq!(signing(&secrets, at(124)), (2, vec![2, 3]));
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
