//! The feed: messages from the marketplace's own systems. They are parsed strictly, and it is safe to apply one twice.

mod apply;
mod bad_fields;
mod event;
mod message;
mod newest;
mod object;
mod rejection;
mod samples;
mod version;

pub use apply::{Applier, ApplyOutcome, Stores, TaggedOutcome};
pub use message::{MAX_MESSAGE_BYTES, Message, parse};
pub use rejection::{BadField, Rejection};
