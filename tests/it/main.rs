//! Temporary.

mod access;
mod account;
mod anywhere;
mod repair;
mod webhooks;
mod webhooks_cli;
