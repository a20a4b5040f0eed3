//! The runs: a few faults of each kind at a time, at the points of a delivery's life that differ.

use crate::bounds::{Bounds, Left, Start};
use crate::{play, play_with_wrong_clocks};

#[test]
fn seven_attempts_work_with_wrong_clocks() {
    play(Bounds::skewed(0, Left { failures: 7, ..Left::default() }), &["delivered", "failed", "switched off"]);
}

#[test]
fn deliveries_survive_crashes() {
    play(Bounds::skewed(0, Left { failures: 2, crashes: 1, ..Left::default() }), &["delivered"]);
    play(Bounds::skewed(2, Left { failures: 1, crashes: 1, ..Left::default() }), &["delivered"]);
    play(Bounds::skewed(6, Left { failures: 1, crashes: 2, ..Left::default() }), &["delivered", "switched off"]);
    play(Bounds::after(0, Left { crashes: 3, ..Left::default() }), &["delivered", "no result"]);
}

#[test]
fn deliveries_survive_lost_answers() {
    let left = Left { failures: 1, crashes: 1, lost_answers: 1, late_writes: 1, duplicates: 1, ..Left::default() };
    play(Bounds::after(6, left), &["delivered", "switched off"]);
}

#[test]
fn deliveries_survive_late_writes() {
    let left = Left { failures: 1, crashes: 1, late_writes: 1, ..Left::default() };
    play(Bounds::after(6, left), &["delivered", "switched off"]);
    let left = Left { failures: 1, duplicates: 1, late_writes: 1, ..Left::default() };
    play(Bounds::after(1, left), &["delivered"]);
}

#[test]
fn deliveries_survive_repeated_late_and_lost_messages() {
    play(Bounds::skewed(1, Left { failures: 1, delays: 1, ..Left::default() }), &["delivered"]);
    play(Bounds::after(1, Left { failures: 1, crashes: 1, delays: 1, ..Left::default() }), &["delivered"]);
    let left = Left { failures: 1, crashes: 1, duplicates: 1, ..Left::default() };
    play(Bounds::after(6, left), &["delivered", "switched off"]);
    let left = Left { failures: 1, crashes: 1, losses: 1, delays: 1, overlaps: 1, ..Left::default() };
    play(Bounds::after(6, left), &["delivered", "switched off"]);
}

#[test]
fn deliveries_survive_an_index_that_lags() {
    for failed in [1, 2] {
        let left = Left { failures: 1, crashes: 1, delays: 1, lags: 1, ..Left::default() };
        play(Bounds::after(failed, left), &["delivered"]);
    }
}

#[test]
fn resends_start_a_new_round() {
    play(Bounds::skewed(6, Left { failures: 1, resends: 1, ..Left::default() }), &["sent again", "delivered"]);
    play(
        Bounds::after(6, Left { failures: 1, late_writes: 1, resends: 1, ..Left::default() }),
        &["sent again", "delivered"],
    );
    play(Bounds::after(6, Left { failures: 1, resends: 2, ..Left::default() }), &["sent again", "delivered"]);
    play(Bounds::after(6, Left { crashes: 1, resends: 1, ..Left::default() }), &["sent again", "delivered"]);
    let left = Left { failures: 1, enables: 1, resends: 1, ..Left::default() };
    play(Bounds::after(6, left), &["sent again", "switched off", "delivered"]);
}

#[test]
fn an_endpoint_may_be_switched_off_and_on() {
    let left = Left { failures: 1, disables: 1, enables: 1, late_writes: 1, duplicates: 1, ..Left::default() };
    play(Bounds::after(6, left), &["held", "switched off", "delivered"]);
    let left = Left { failures: 1, disables: 1, enables: 1, resends: 1, ..Left::default() };
    play(Bounds::after(6, left), &["held", "sent again"]);
}

#[test]
fn an_endpoint_may_be_removed() {
    let left = Left { failures: 1, removals: 1, disables: 1, crashes: 1, duplicates: 1, ..Left::default() };
    play(Bounds::after(6, left), &["held", "removed", "switched off"]);
}

#[test]
fn two_deliveries_may_fail_at_once() {
    let left = Left { failures: 2, crashes: 1, enables: 1, ..Left::default() };
    let both = Bounds { starts: vec![Start::After(6); 2], ..Bounds::after(6, left) };
    play(both, &["held", "switched off"]);
}

#[test]
#[ignore = "takes minutes; CONTRIBUTING.md says when to run it"]
fn more_of_everything() {
    let left = Left { failures: 7, crashes: 1, ..Left::default() };
    play_with_wrong_clocks(&Bounds::after(0, left), &["delivered", "switched off"]);
    let left = Left { failures: 2, crashes: 1, duplicates: 1, ..Left::default() };
    play_with_wrong_clocks(&Bounds::after(0, left), &["delivered"]);
    let left = Left { failures: 1, crashes: 1, late_writes: 1, duplicates: 1, ..Left::default() };
    play_with_wrong_clocks(&Bounds::after(6, left), &["delivered", "switched off"]);
    let left = Left { failures: 1, enables: 1, crashes: 1, resends: 1, ..Left::default() };
    play(Bounds::after(6, left), &["switched off", "sent again"]);
    let left = Left { failures: 1, disables: 1, enables: 1, crashes: 1, ..Left::default() };
    play(Bounds::after(6, left), &["held", "switched off"]);
    let left = Left { failures: 1, crashes: 1, duplicates: 1, resends: 1, ..Left::default() };
    play(Bounds::after(6, left), &["sent again", "delivered"]);
    let left = Left { failures: 2, crashes: 1, delays: 1, ..Left::default() };
    play_with_wrong_clocks(&Bounds::after(1, left), &["delivered"]);
    play(Bounds::after(0, Left { failures: 1, crashes: 4, ..Left::default() }), &["delivered", "no result"]);
    let left = Left { failures: 2, crashes: 1, duplicates: 1, enables: 1, ..Left::default() };
    let both = Bounds { starts: vec![Start::After(6); 2], workers: 3, ..Bounds::after(6, left) };
    play(both, &["held", "switched off"]);
}
