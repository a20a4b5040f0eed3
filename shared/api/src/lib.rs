//! The HTTP side of the API: the one pipeline that every request takes, what endpoints declare to it, and what answers
//! look like.

pub mod auth;
mod endpoint;
pub mod error;
pub mod line;
pub mod origin;
mod paging;
pub mod params;
pub mod pipeline;
pub mod refusals;
pub mod reply;
pub mod routes;
mod serve;
pub mod state;

pub use endpoint::{Anyone, Caller, Endpoint};
pub use paging::{PAGE, PAGE_SIZE, paging};
pub use params::{Input, Params};
pub use pipeline::{Api, Handler};
pub use reply::{CacheControl, GatewayEvent, Reply, Response};
pub use serve::run;
pub use state::{State, Stated};
