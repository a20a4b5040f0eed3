//! Tests that need only a base URL and an AWS endpoint. They run here like all others. `infra/deployed/run` runs them
//! against a deployed stack, which they share.

mod access;
mod account;
mod balance;
mod budget;
mod catalog;
mod description;
mod feed;
mod item;
mod key_limits;
mod keys;
mod listings;
mod manners;
mod marketctl;
mod marketplaces;
mod me;
mod orders;
mod prices;
mod signals;
mod validation;
mod webhooks;
mod webhooks_cli;

pub(crate) use description::assert_described;
