//! The HTTP side of the API: the one pipeline that every request takes, what endpoints declare to it, and what answers
//! look like.

pub mod auth;
pub mod error;
pub mod gateway;
pub mod line;
pub mod origin;
pub mod params;
pub mod pipeline;
pub mod reply;
pub mod routes;

pub use gateway::{Request, Response};
pub use params::{Input, PAGE, PAGE_SIZE, Params, paging};
pub use pipeline::{Anyone, Api, Caller, Endpoint, Handler, run};
pub use reply::{CacheControl, Reply, State, Stated};
