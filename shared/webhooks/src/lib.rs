//! Webhooks: what is delivered to which endpoint, and why no delivery is lost.

pub mod delivery;
pub mod drain;
pub mod endpoint;
pub mod guard;
pub mod notice;
pub mod promptness;
pub mod secrets;
pub mod store;

mod fan_out;
mod queues;
mod schedule;

pub use drain::Drains;
pub use fan_out::{FIRST_ATTEMPTS_PER_SECOND, FanOut, body, test_body};
pub use notice::Notices;
pub use queues::{DrainMessage, QueueMessage, Queues, Unsent};
pub use schedule::{ATTEMPTS, DELAYS_SECONDS, Schedule, Wait, delivery_id};
