//! What every function needs: the way to AWS, access to tables, preflight checks, logs and metrics.

pub mod aws;
pub mod backoff;
pub mod batch_get;
pub mod change;
pub mod layout;
pub mod logging;
pub mod metrics;
pub mod preflight;
pub mod resources;
pub mod rows;
pub mod service;
pub mod store;
pub mod transaction;
