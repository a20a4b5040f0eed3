//! The runs of deliveries that are not stored at first: only their first messages carry them.

use crate::bounds::{Bounds, Left};
use crate::play;

#[test]
fn a_carried_delivery_has_seven_attempts_as_any_other() {
    let bounds = Bounds::carried(Left { failures: 7, ..Left::default() }).with_wrong_clocks();
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
