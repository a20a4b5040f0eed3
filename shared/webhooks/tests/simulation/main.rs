//! A discrete-event simulation of deliveries on AWS, in simulated time.
//!
//! It answers what no test against a local stack can: how long deliveries wait over hours and days, beside receivers
//! that hang, and what that costs. The tests in `scenarios` assert the figures that the design promises. The table in
//! `scenarios` shows them for receivers of every kind:
//!
//! ```sh
//! cargo test --config 'profile.dev.package.webhooks.opt-level=3' -p webhooks --test simulation \
//!     -- --ignored --nocapture
//! ```
//!
//! Schedule, promptness, bounds and times are the code's. The order of the steps copies `functions/webhook` and
//! `functions/sweep`. No call fails and no function crashes here: `delivery_model` covers that.

#![expect(clippy::cast_precision_loss, reason = "all times and counts are far below 2^52")]

mod delivery;
mod direct;
mod drain;
mod endpoint;
mod figures;
mod scenarios;
mod world;

use endpoint::Plan;
use figures::{Millis, Settings};
use world::World;

/// Simulates endpoints until a time, and asserts that no delivery was lost.
fn simulate(settings: Settings, plans: &[Plan], until: Millis) -> World {
    let mut world = World::new(1, settings, plans);
    world.run_until(until);
    world.assert_nothing_lost();
    world
}
