//! HTTP manners: the one pipeline every request takes, and what endpoints declare to it.

pub mod endpoint;
pub mod line;
pub mod paging;
pub mod params;
pub mod pipeline;
pub mod reply;

pub use endpoint::{Anyone, Caller, Endpoint};
pub use paging::{Paged, Paging};
pub use params::{Input, Params};
pub use pipeline::{Api, Handler};
pub use reply::{CacheControl, Event, Reply, Response};
