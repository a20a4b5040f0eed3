//! The whole service on one machine: the AWS side over HTTP, and the same functions that are deployed.

pub mod aws;
pub mod cli;
pub mod demo;
pub mod environment;
pub mod gateway;
pub mod host;
pub mod inbox;
mod init;
pub mod instance;
pub mod invocations;
pub mod keyring;
pub mod meter;
pub mod ready;
pub mod seed;
pub mod server;
pub mod signals;
pub mod simulation;
pub mod stack;
pub mod switches;
pub mod workers;
