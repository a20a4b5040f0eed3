//! The feed: messages of the marketplace's own systems, parsed strictly and applied so that repeating is safe.

mod apply;
mod event;
mod message;
mod object;
mod rejection;

pub use apply::{Applied, Applier, Outcome, Stores};
pub use message::{MAX_MESSAGE_BYTES, Message, parse};
pub use rejection::Rejection;
