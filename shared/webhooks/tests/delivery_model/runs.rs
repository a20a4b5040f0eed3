//! The runs: a few faults of each kind at a time, at the points of a delivery's life that differ. Then the same of
//! deliveries that only their first messages carry, and of those that wait for the drain of their account.

use webhooks::ATTEMPTS;

use crate::bounds::Start::{self, After, Carried};
use crate::bounds::{Bounds, Endpoint, Left};
use crate::{play, play_with_wrong_clocks};

/// A round fails after this many failures, and has one attempt left after one fewer.
const ALL: u8 = ATTEMPTS as u8;
const BEFORE_LAST: u32 = ATTEMPTS - 1;

#[test]
fn all_attempts_work_with_wrong_clocks() {
    play(Bounds::skewed(0, Left { failures: ALL, ..Left::default() }), &["delivered", "failed", "switched off"]);
}

#[test]
fn deliveries_survive_crashes() {
    play(Bounds::skewed(0, Left { failures: 2, crashes: 1, ..Left::default() }), &["delivered"]);
    play(Bounds::skewed(2, Left { failures: 1, crashes: 1, ..Left::default() }), &["delivered"]);
    play(
        Bounds::skewed(BEFORE_LAST, Left { failures: 1, crashes: 2, ..Left::default() }),
        &["delivered", "switched off"],
    );
    play(Bounds::after(0, Left { crashes: 3, ..Left::default() }), &["delivered", "no result"]);
}

#[test]
fn deliveries_survive_lost_answers() {
    let left = Left { failures: 1, crashes: 1, lost_answers: 1, late_writes: 1, duplicates: 1, ..Left::default() };
    play(Bounds::after(BEFORE_LAST, left), &["delivered", "switched off"]);
}

#[test]
fn deliveries_survive_late_writes() {
    let left = Left { failures: 1, crashes: 1, late_writes: 1, ..Left::default() };
    play(Bounds::after(BEFORE_LAST, left), &["delivered", "switched off"]);
    let left = Left { failures: 1, duplicates: 1, late_writes: 1, ..Left::default() };
    play(Bounds::after(1, left), &["delivered"]);
}

#[test]
fn deliveries_survive_repeated_late_and_lost_messages() {
    play(Bounds::skewed(1, Left { failures: 1, delays: 1, ..Left::default() }), &["delivered"]);
    play(Bounds::after(1, Left { failures: 1, crashes: 1, delays: 1, ..Left::default() }), &["delivered"]);
    let left = Left { failures: 1, crashes: 1, duplicates: 1, ..Left::default() };
    play(Bounds::after(BEFORE_LAST, left), &["delivered", "switched off"]);
    let left = Left { failures: 1, crashes: 1, losses: 1, delays: 1, overlaps: 1, ..Left::default() };
    play(Bounds::after(BEFORE_LAST, left), &["delivered", "switched off"]);
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
    play(
        Bounds::skewed(BEFORE_LAST, Left { failures: 1, resends: 1, ..Left::default() }),
        &["sent again", "delivered"],
    );
    play(
        Bounds::after(BEFORE_LAST, Left { failures: 1, late_writes: 1, resends: 1, ..Left::default() }),
        &["sent again", "delivered"],
    );
    play(Bounds::after(BEFORE_LAST, Left { failures: 1, resends: 2, ..Left::default() }), &["sent again", "delivered"]);
    play(Bounds::after(BEFORE_LAST, Left { crashes: 1, resends: 1, ..Left::default() }), &["sent again", "delivered"]);
    let left = Left { failures: 1, enables: 1, resends: 1, ..Left::default() };
    play(Bounds::after(BEFORE_LAST, left), &["sent again", "switched off", "delivered"]);
}

#[test]
fn an_endpoint_may_be_switched_off_and_on() {
    let left = Left { failures: 1, disables: 1, enables: 1, late_writes: 1, duplicates: 1, ..Left::default() };
    play(Bounds::after(BEFORE_LAST, left), &["held", "switched off", "delivered"]);
    let left = Left { failures: 1, disables: 1, enables: 1, resends: 1, ..Left::default() };
    play(Bounds::after(BEFORE_LAST, left), &["held", "sent again"]);
}

#[test]
fn an_endpoint_may_be_removed() {
    let left = Left { failures: 1, removals: 1, disables: 1, crashes: 1, duplicates: 1, ..Left::default() };
    play(Bounds::after(BEFORE_LAST, left), &["held", "removed", "switched off"]);
}

#[test]
fn two_deliveries_may_fail_at_once() {
    let left = Left { failures: 2, crashes: 1, enables: 1, ..Left::default() };
    let both = Bounds { starts: vec![Start::After(BEFORE_LAST); 2], ..Bounds::after(BEFORE_LAST, left) };
    play(both, &["held", "switched off"]);
}

#[test]
#[ignore = "takes minutes; CONTRIBUTING.md says when to run it"]
fn more_of_everything() {
    let left = Left { failures: ALL, crashes: 1, ..Left::default() };
    play_with_wrong_clocks(&Bounds::after(0, left), &["delivered", "switched off"]);
    let left = Left { failures: 2, crashes: 1, duplicates: 1, ..Left::default() };
    play_with_wrong_clocks(&Bounds::after(0, left), &["delivered"]);
    let left = Left { failures: 1, crashes: 1, late_writes: 1, duplicates: 1, ..Left::default() };
    play_with_wrong_clocks(&Bounds::after(BEFORE_LAST, left), &["delivered", "switched off"]);
    let left = Left { failures: 1, enables: 1, crashes: 1, resends: 1, ..Left::default() };
    play(Bounds::after(BEFORE_LAST, left), &["switched off", "sent again"]);
    let left = Left { failures: 1, disables: 1, enables: 1, crashes: 1, ..Left::default() };
    play(Bounds::after(BEFORE_LAST, left), &["held", "switched off"]);
    let left = Left { failures: 1, crashes: 1, duplicates: 1, resends: 1, ..Left::default() };
    play(Bounds::after(BEFORE_LAST, left), &["sent again", "delivered"]);
    let left = Left { failures: 2, crashes: 1, delays: 1, ..Left::default() };
    play_with_wrong_clocks(&Bounds::after(1, left), &["delivered"]);
    play(Bounds::after(0, Left { failures: 1, crashes: 4, ..Left::default() }), &["delivered", "no result"]);
    let left = Left { failures: 2, crashes: 1, duplicates: 1, enables: 1, ..Left::default() };
    let both = Bounds { starts: vec![Start::After(BEFORE_LAST); 2], workers: 3, ..Bounds::after(BEFORE_LAST, left) };
    play(both, &["held", "switched off"]);
}

#[test]
fn a_carried_delivery_has_as_many_attempts_as_any_other() {
    let bounds = Bounds::carried(Left { failures: ALL, ..Left::default() }).with_wrong_clocks();
    play(bounds, &["delivered", "failed", "switched off"]);
}

#[test]
fn carried_deliveries_survive_crashes_and_lost_answers() {
    let left = Left { failures: 1, crashes: 1, ..Left::default() };
    play(Bounds::carried(left).with_wrong_clocks(), &["delivered"]);
    let left = Left { crashes: 1, lost_answers: 1, late_writes: 1, ..Left::default() };
    play(Bounds::carried(left), &["delivered"]);
    play(Bounds::carried(Left { crashes: 3, ..Left::default() }), &["delivered", "no result"]);
}

#[test]
fn a_fan_out_may_be_repeated() {
    let left = Left { failures: 1, crashes: 1, duplicates: 1, ..Left::default() };
    play(Bounds::carried(left).with_wrong_clocks(), &["delivered"]);
    let left = Left { crashes: 1, lost_answers: 1, duplicates: 2, ..Left::default() };
    play(Bounds::carried(left), &["delivered"]);
    let left = Left { crashes: 1, late_writes: 1, duplicates: 1, delays: 1, ..Left::default() };
    play(Bounds::carried(left), &["delivered"]);
}

#[test]
fn a_first_message_that_the_queue_gives_up_is_sent_again() {
    let left = Left { failures: 1, crashes: 2, duplicates: 1, ..Left::default() };
    play(Bounds { max_receives: Some(2), ..Bounds::carried(left) }, &["a message lost", "delivered"]);
    let left = Left { crashes: 1, duplicates: 1, losses: 1, delays: 1, overlaps: 1, ..Left::default() };
    play(Bounds::carried(left), &["a message lost", "delivered"]);
}

#[test]
fn the_endpoint_of_a_carried_delivery_may_be_switched_off_and_on() {
    let left = Left { disables: 1, enables: 1, crashes: 1, duplicates: 1, ..Left::default() };
    play(Bounds::carried(left), &["held", "delivered"]);
    let left = Left { disables: 1, enables: 1, late_writes: 1, resends: 1, ..Left::default() };
    play(Bounds::carried(left), &["held", "sent again", "delivered"]);
}

#[test]
fn the_endpoint_of_a_carried_delivery_may_be_removed() {
    let left = Left { removals: 1, disables: 1, crashes: 1, ..Left::default() };
    play(Bounds::carried(left), &["held", "removed", "never stored", "delivered"]);
    let left = Left { removals: 1, duplicates: 1, ..Left::default() };
    play(Bounds::carried(left), &["never stored", "delivered"]);
}

#[test]
#[ignore = "takes minutes; CONTRIBUTING.md says when to run it"]
fn more_of_carried_deliveries() {
    let left = Left { failures: 1, crashes: 2, ..Left::default() };
    play(Bounds::carried(left).with_wrong_clocks(), &["delivered"]);
    let left = Left { failures: 1, removals: 1, disables: 1, crashes: 1, duplicates: 1, ..Left::default() };
    play(Bounds::carried(left), &["held", "removed", "never stored", "delivered"]);
    let left = Left { failures: 1, crashes: 1, lost_answers: 1, late_writes: 1, ..Left::default() };
    play(Bounds::carried(left), &["delivered"]);
    let left = Left { failures: 1, crashes: 3, duplicates: 1, ..Left::default() };
    play(Bounds { max_receives: Some(3), ..Bounds::carried(left) }, &["a message lost", "delivered"]);
    let left = Left { disables: 1, enables: 1, crashes: 1, duplicates: 1, resends: 1, ..Left::default() };
    play(Bounds::carried(left), &["held", "sent again"]);
    let left = Left { removals: 1, crashes: 1, late_writes: 1, ..Left::default() };
    play(Bounds::carried(left), &["removed", "never stored", "delivered"]);
    let left = Left { removals: 1, disables: 1, enables: 1, crashes: 1, lost_answers: 1, ..Left::default() };
    play(Bounds::carried(left), &["held", "removed", "never stored"]);
}

#[test]
fn a_delivery_that_waits_has_as_many_attempts_as_any_other() {
    let left = Left { failures: ALL, ..Left::default() };
    play(Bounds::drained(&[Carried], left).with_wrong_clocks(), &["drained", "failed", "switched off", "over"]);
}

#[test]
fn a_drain_survives_crashes() {
    let left = Left { failures: 1, crashes: 1, ..Left::default() };
    play(Bounds::drained(&[Carried], left), &["drained", "delivered", "over"]);
    play_with_wrong_clocks(&Bounds::drained(&[After(3)], left), &["drained", "delivered", "over"]);
    play(Bounds::drained(&[After(3), Carried], left), &["drained", "delivered", "over"]);
}

#[test]
fn messages_of_a_drain_may_be_repeated_late_or_lost() {
    let left = Left { crashes: 1, duplicates: 1, ..Left::default() };
    play(Bounds::drained(&[Carried], left), &["drained", "delivered"]);
    let left = Left { losses: 1, delays: 1, overlaps: 1, ..Left::default() };
    play(Bounds::drained(&[Carried], left).with_wrong_clocks(), &["drained", "delivered"]);
    let left = Left { failures: 1, crashes: 1, losses: 1, ..Left::default() };
    play(Bounds::drained(&[After(3)], left), &["drained", "delivered"]);
}

#[test]
fn an_index_may_lag() {
    let left = Left { failures: 1, lags: 1, hand_ons: 1, ..Left::default() };
    play(Bounds::drained(&[After(3)], left), &["drained", "handed on", "delivered", "over"]);
    let left = Left { failures: 1, lags: 1, ..Left::default() };
    play_with_wrong_clocks(&Bounds::drained(&[After(3)], left), &["drained", "delivered", "over"]);
    let left = Left { failures: 1, lags: 1, crashes: 1, ..Left::default() };
    play(Bounds::drained(&[After(3)], left), &["drained", "delivered"]);
}

#[test]
fn an_attempt_may_overlap_with_a_run() {
    let left = Left { failures: 2, delays: 1, ..Left::default() };
    let bounds = Bounds { endpoint: Endpoint::Either, ..Bounds::after(1, left) };
    play(bounds, &["drained", "delivered"]);
    let left = Left { failures: 1, duplicates: 1, ..Left::default() };
    play(Bounds { endpoint: Endpoint::Either, ..Bounds::carried(left) }, &["drained", "delivered"]);
    let left = Left { crashes: 1, late_writes: 1, ..Left::default() };
    play(Bounds { endpoint: Endpoint::Either, ..Bounds::carried(left) }, &["drained", "delivered"]);
}

#[test]
fn the_endpoint_may_be_removed_or_switched_while_deliveries_wait() {
    let left = Left { removals: 1, crashes: 1, ..Left::default() };
    play(Bounds::drained(&[Carried], left), &["removed", "never stored"]);
    play(Bounds::drained(&[After(3)], left), &["removed"]);
    play_with_wrong_clocks(&Bounds::drained(&[Carried], Left { removals: 1, ..Left::default() }), &["removed"]);
    let left = Left { removals: 1, disables: 1, lags: 1, ..Left::default() };
    play(Bounds::drained(&[Carried], left), &["held", "removed"]);
    let left = Left { failures: 1, removals: 1, ..Left::default() };
    play(Bounds::drained(&[After(3), Carried], left), &["removed"]);
    let left = Left { failures: 1, disables: 1, enables: 1, resends: 1, ..Left::default() };
    play(Bounds::drained(&[After(BEFORE_LAST)], left), &["held", "sent again", "delivered"]);
}

#[test]
fn failures_before_another_url_switch_nothing_off() {
    let left = Left { failures: 2, moves: 1, ..Left::default() };
    play(Bounds::drained(&[After(5)], left), &["failed", "switched off"]);
    let left = Left { failures: 2, disables: 1, enables: 1, resends: 1, ..Left::default() };
    play(Bounds::drained(&[After(5)], left), &["failed", "switched off"]);
}

#[test]
#[ignore = "takes minutes; CONTRIBUTING.md says when to run it"]
fn more_of_drains() {
    let left = Left { failures: 1, crashes: 2, ..Left::default() };
    play(Bounds::drained(&[Carried], left), &["drained", "delivered"]);
    play(Bounds::drained(&[After(3)], Left { crashes: 1, ..left }).with_wrong_clocks(), &["drained", "delivered"]);
    let left = Left { failures: 1, crashes: 1, duplicates: 1, ..Left::default() };
    play(Bounds::drained(&[Carried], left), &["drained", "delivered"]);
    play(Bounds { endpoint: Endpoint::Either, ..Bounds::carried(left) }, &["drained", "delivered"]);
    let left = Left { failures: 1, lags: 1, hand_ons: 1, ..Left::default() };
    play_with_wrong_clocks(&Bounds::drained(&[After(3)], left), &["drained", "handed on"]);
    let left = Left { failures: 1, lags: 1, crashes: 1, ..Left::default() };
    play_with_wrong_clocks(&Bounds::drained(&[After(3)], left), &["drained", "delivered"]);
    let left = Left { failures: 1, lags: 1, ..Left::default() };
    let both = Bounds { endpoint: Endpoint::Either, ..Bounds::drained(&[After(2), Carried], left) };
    play_with_wrong_clocks(&both, &["drained", "delivered"]);
    let left = Left { removals: 1, lags: 1, disables: 1, ..Left::default() };
    play_with_wrong_clocks(&Bounds::drained(&[Carried], left), &["held", "removed"]);
}
