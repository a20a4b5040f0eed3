//! The runs in which attempts need places.

use crate::bounds::Endpoints::{Apart, Prompt, Unproven};
use crate::bounds::Start::{After, Carried, Turned};
use crate::bounds::{Bounds, Left};
use crate::play;

#[test]
fn attempts_to_an_endpoint_that_is_not_known_to_be_prompt_take_turns() {
    let left = Left { crashes: 1, ..Left::default() };
    play(Bounds::in_places(Unproven, &[Carried; 2], left), &["without a place", "prompt", "delivered"]);
    let bounds = Bounds::in_places(Unproven, &[Carried; 2], Left::default()).with_wrong_clocks();
    play(bounds, &["without a place", "prompt", "delivered"]);
    let left = Left { crashes: 1, duplicates: 1, ..Left::default() };
    play(Bounds::in_places(Unproven, &[Carried], left), &["without a place", "prompt", "delivered"]);
    let left = Left { removals: 1, ..Left::default() };
    play(Bounds::in_places(Unproven, &[Carried; 2], left), &["without a place", "never stored"]);
    play(Bounds::in_places(Unproven, &[Carried, After(1)], left), &["without a place", "removed"]);
}

#[test]
fn a_carried_delivery_that_leaves_while_somebody_seems_to_make_its_attempt_is_found_again() {
    let left = Left { lost_answers: 1, ..Left::default() };
    play(Bounds::in_places(Unproven, &[Carried], left), &["without a place", "delivered"]);
}

#[test]
fn a_slow_endpoint_is_switched_off_after_seven_attempts() {
    let left = Left { hangs: 7, ..Left::default() };
    play(Bounds::in_places(Unproven, &[Carried], left).with_wrong_clocks(), &["failed", "switched off"]);
    let left = Left { hangs: 1, ..Left::default() };
    play(Bounds::in_places(Unproven, &[After(6), Carried], left), &["kept for retries", "held", "switched off"]);
}

#[test]
fn a_place_that_its_holder_does_not_leave_is_free_after_a_while() {
    let left = Left { crashes: 1, ..Left::default() };
    play(
        Bounds::in_places(Unproven, &[After(1), Carried], left),
        &["kept for retries", "without a place", "delivered"],
    );
    let left = Left { late_writes: 1, ..Left::default() };
    play(Bounds::in_places(Unproven, &[Carried; 2], left), &["without a place", "delivered"]);
}

#[test]
fn an_account_has_at_most_as_many_attempts_under_way_as_places() {
    let left = Left { crashes: 1, ..Left::default() };
    play(Bounds::in_places(Apart, &[After(1), Carried], left), &["without a place", "kept for retries", "prompt"]);
}

#[test]
fn retries_come_before_first_attempts() {
    let bounds = Bounds::in_places(Unproven, &[After(1), Carried], Left::default()).with_wrong_clocks();
    play(bounds, &["without a place", "kept for retries", "delivered"]);
}

#[test]
fn an_endpoint_that_hangs_needs_places_from_then_on() {
    let left = Left { hangs: 2, ..Left::default() };
    play(Bounds::in_places(Prompt, &[After(1); 2], left), &["slow", "without a place", "delivered"]);
}

#[test]
fn an_attempt_that_has_left_often_waits_in_the_table() {
    play(Bounds::in_places(Unproven, &[After(1), Turned(9)], Left::default()), &["ten turns", "delivered"]);
}

#[test]
#[ignore = "takes minutes; CONTRIBUTING.md says when to run it"]
fn more_of_places() {
    let left = Left { crashes: 1, ..Left::default() };
    play(Bounds::in_places(Unproven, &[Carried; 2], left), &["without a place", "delivered"]);
    play(Bounds::in_places(Unproven, &[After(6), Carried], left), &["kept for retries", "delivered"]);
    let left = Left { hangs: 1, ..Left::default() };
    play(Bounds::in_places(Apart, &[After(1), Carried], left), &["without a place", "kept for retries", "prompt"]);
    let left = Left { hangs: 3, ..Left::default() };
    play(Bounds::in_places(Unproven, &[After(5), Carried], left), &["kept for retries", "switched off"]);
    let left = Left { crashes: 1, lost_answers: 1, ..Left::default() };
    play(Bounds::in_places(Unproven, &[Carried], left), &["without a place", "delivered"]);
    let left = Left { late_writes: 1, ..Left::default() };
    play(Bounds::in_places(Unproven, &[After(0); 2], left), &["without a place", "delivered"]);
    play(Bounds::in_places(Unproven, &[After(6); 2], left), &["without a place", "delivered"]);
    // The second and the third come back together, when the first one's place is free again although it was not left.
    play(Bounds::in_places(Unproven, &[After(0), Turned(6), Turned(6)], left), &["without a place", "delivered"]);
    let three = Bounds { workers: 3, ..Bounds::in_places(Apart, &[After(1), Carried, Carried], Left::default()) };
    play(three, &["without a place", "kept for retries", "delivered"]);
}
