//! The whole service on one machine: the AWS side over HTTP, and the same functions that are deployed.

pub mod aws;
pub mod demo;
pub mod environment;
pub mod gateway;
pub mod host;
pub mod inbox;
pub mod instance;
pub mod invocations;
mod malformed;
pub mod meter;
pub mod runtime_api;
pub mod seed;
pub mod server;
pub mod simulation;
pub mod stack;
pub mod workers;
