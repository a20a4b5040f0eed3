//! Which steps of a restore are left.

use super::error::Refusal;
use super::state::Found;
use super::step::Step;

/// Returns the steps that are left, or why the table cannot be restored.
pub(super) fn steps_left(found: &Found, start: bool) -> Result<Vec<Step>, Refusal> {
    let first = match found {
        Found { is_swapped: true, .. } => Step::Swap,
        Found { table: None, backup: None, .. } => return Err(Refusal::NoTable(found.name.clone())),
        Found { backup: Some(_), .. } => Step::Delete,
        Found { copy: Some(_), is_own_copy: false, .. } => return Err(Refusal::OtherCopy(found.copy_name.clone())),
        Found { copy: Some(_), .. } => Step::Copy,
        Found { copy: None, window, to, .. } => {
            let (from, until) = window.ok_or_else(|| Refusal::NoRecovery(found.name.clone()))?;
            if !(from..=until).contains(to) {
                let [from, until] = [from, until].map(|at| at.to_string());
                return Err(Refusal::OutsideWindow { table: found.name.clone(), from, until });
            }
            Step::Copy
        }
    };
    // Once the restored table is in its place, the writers may run.
    let stop = (!found.is_swapped).then_some(Step::Stop);
    let steps = Step::ALL.into_iter().skip_while(|step| *step != first);
    Ok(stop.into_iter().chain(steps).filter(|step| start || *step != Step::Start).collect())
}

#[cfg(test)]
mod tests {
    use super::super::state::Described;
    use super::*;
    use aws_sdk_dynamodb::types::TableStatus;
    use types::timestamp::Timestamp;

    fn table() -> Described {
        Described { status: TableStatus::Active, arn: String::new(), created: 0, is_protected: true, origin: None }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn found() -> Found {
        Found {
            name: "t".to_owned(),
            copy_name: "t-restored".to_owned(),
            to: at(5),
            table: Some(table()),
            copy: None,
            is_own_copy: false,
            backup: None,
            is_swapped: false,
            window: Some((at(1), at(9))),
        }
    }

    #[test]
    fn a_restore_goes_on_where_it_was() {
        let (copy, backup) = (|| Some(table()), || Some("arn".to_owned()));
        let left = |found: Found| steps_left(&found, true).unwrap();
        assert_eq!(left(found()), Step::ALL);
        assert_eq!(left(Found { copy: copy(), is_own_copy: true, window: None, ..found() }), Step::ALL);
        let backed_up = Found { copy: copy(), is_own_copy: true, backup: backup(), ..found() };
        assert_eq!(left(backed_up)[..2], [Step::Stop, Step::Delete]);
        let deleted = Found { table: None, copy: copy(), is_own_copy: true, backup: backup(), ..found() };
        assert_eq!(left(deleted)[..2], [Step::Stop, Step::Delete]);
        let swapped = Found { copy: copy(), is_own_copy: true, backup: backup(), is_swapped: true, ..found() };
        assert_eq!(left(swapped), [Step::Swap, Step::Settings, Step::Check, Step::Start]);
    }

    #[test]
    fn nothing_starts_that_shall_stay_stopped() {
        assert!(!steps_left(&found(), false).unwrap().contains(&Step::Start));
    }

    #[test]
    fn what_cannot_be_restored_is_refused() {
        let refused = |found: Found| steps_left(&found, true).unwrap_err();
        assert_eq!(refused(Found { table: None, ..found() }), Refusal::NoTable("t".to_owned()));
        assert_eq!(refused(Found { window: None, ..found() }), Refusal::NoRecovery("t".to_owned()));
        assert_eq!(refused(Found { copy: Some(table()), ..found() }), Refusal::OtherCopy("t-restored".to_owned()));
        for to in [0, 10] {
            let refused = refused(Found { to: at(to), ..found() });
            assert!(matches!(refused, Refusal::OutsideWindow { .. }), "{refused:?}");
        }
    }
}
