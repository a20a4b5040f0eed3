//! A model checker for the life of a delivery. Within bounds it plays every interleaving of workers, runs of the drain,
//! sweeps and an operator that crash, answers that get lost, messages that are repeated, late or lost, and an index that
//! lags.
//!
//! The steps and the schedule are the ones of the code (`webhooks::delivery`). The order of the steps, and what the
//! store checks beside them, copies `functions/webhook`, `functions/sweep`, `admin::webhooks` and `webhooks::store`. The
//! first and the retry lane are one queue, because a message may be in either.

mod actions;
mod attempt;
mod bounds;
mod drain;
mod invariants;
mod operator;
mod queue;
mod run;
mod runs;
mod time;
mod worker;
mod world;

use stateright::{Checker, HasDiscoveries, Model};

use bounds::Bounds;
use invariants::INVARIANTS;

/// Visits every state within the bounds, and asserts that the invariants hold and that the given outcomes are
/// reached. With `--nocapture` it prints how many states there were.
fn play(bounds: Bounds, must_be_seen: &[&'static str]) {
    let text = format!("{bounds:?}");
    let checker = bounds.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    println!(
        "{} states, {} steps, {} deep: {text}",
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth()
    );
    checker.assert_no_discovery(INVARIANTS);
    for seen in must_be_seen {
        checker.assert_any_discovery(seen);
    }
}

/// Plays the bounds with clocks that are wrong in each way that concerns all workers, all runs or all sweeps.
fn play_with_wrong_clocks(bounds: &Bounds, must_be_seen: &[&'static str]) {
    bounds.with_each_wrong_clock().for_each(|bounds| play(bounds, must_be_seen));
}
