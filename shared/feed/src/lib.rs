//! The feed: messages from the marketplace's own systems. They are parsed strictly, and it is safe to apply one twice.

mod apply;
mod event;
mod message;
mod rejection;
mod web_link;

pub use apply::{Applier, ApplyOutcome, Stores, TaggedOutcome};
pub use message::{MAX_MESSAGE_BYTES, Message, parse};
pub use rejection::{BadField, Rejection};
