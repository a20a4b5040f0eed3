//! What needs nothing but a base URL and an AWS endpoint: these tests run here like all others, and against the
//! deployed stack, which they share, from `infra/deployed/run`.

mod access;
mod balance;
mod budget;
mod catalog;
mod description;
mod feed;
mod item;
mod keys;
mod listings;
mod manners;
mod marketctl;
mod marketplaces;
mod me;
mod orders;
mod prices;
mod validation;
mod webhooks;
mod webhooks_cli;

pub(crate) use description::assert_described;
