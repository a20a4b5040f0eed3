//! Webhooks: what is delivered to which endpoint, and why no delivery is lost.

pub mod delivery;
pub mod drain;
pub mod endpoint;
pub mod notice;
pub mod promptness;
pub mod store;

mod body;
mod drains;
mod fan_out;
mod notices;
mod pace;
mod queues;
mod schedule;

pub use body::body;
pub use drains::Drains;
pub use fan_out::FanOut;
pub use notices::Notices;
pub use pace::FIRST_ATTEMPTS_PER_SECOND;
pub use queues::{Call, DrainCall, QueueMessage, Queues, Unsent};
pub(crate) use schedule::WARNING_ATTEMPT;
pub use schedule::{ATTEMPTS, Schedule, Wait, delivery_id};
