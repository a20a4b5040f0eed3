//! The runs of deliveries that wait for the drain of their account.

use crate::bounds::Start::{After, Carried};
use crate::bounds::{Bounds, Endpoint, Left};
use crate::{play, play_with_wrong_clocks};

#[test]
fn a_delivery_that_waits_has_seven_attempts_as_any_other() {
    let left = Left { failures: 7, ..Left::default() };
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
    play(Bounds::drained(&[After(6)], left), &["held", "sent again", "delivered"]);
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
