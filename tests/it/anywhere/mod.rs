//! Tests that need only a base URL and an AWS endpoint. They run here like all others. `infra/deployed/run` runs them
//! against a deployed stack, which they share.

mod access;
mod account;
mod accounts;
mod catalog;
mod description;
mod feed;
mod keys;
mod listings;
mod manners;
mod prices;
mod validation;
mod webhooks;

pub(crate) use description::assert_described;
