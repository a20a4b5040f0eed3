//! End to end: HTTP to the real handlers, SDK clients to a real DynamoDB.

mod access;
mod balance;
mod base;
mod budget;
mod budget_model;
mod catalog;
mod description;
mod failures;
mod feed;
mod freshness;
mod item;
mod lambda;
mod listings;
mod local_program;
mod manners;
mod marketctl;
mod marketplaces;
mod me;
mod orders;
mod orders_model;
mod prices;
mod prices_model;
mod replica_model;
mod round_trips;
mod validation;
