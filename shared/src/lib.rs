//! What the functions have in common: the request pipeline, keys and budgets, the stores, the read model.
#![warn(missing_docs)]

pub mod accounts;
pub mod aws;
pub mod clock;
pub mod error;
pub mod feed;
pub mod http;
pub mod ids;
pub mod keys;
pub mod logging;
pub mod look;
pub mod market;
pub mod metrics;
pub mod model;
pub mod money;
mod packed;
pub mod replica;
pub mod resources;
pub mod routes;
pub mod scope;
pub mod service;
pub mod store;
pub mod timestamp;
pub mod transaction;
pub mod webhooks;
