//! The harness of the end-to-end tests: stacks on free ports, an HTTP client, a proxy that makes the store fail, a
//! stack on simulated time, the Lambda Runtime API on loopback, and the project's binaries.
#![allow(clippy::missing_panics_doc, clippy::unwrap_used, reason = "a harness that cannot go on fails the test")]

pub mod arn;
mod binaries;
mod client;
mod fixtures;
mod guides;
mod metrics;
mod privileges;
mod proxy;
mod queue;
mod receiver;
mod runtime_api;
mod secrets;
mod settings_commands;
mod simulation;
mod stack;
mod state;
mod tables;
mod target;
mod template;
mod webhooks;
pub mod webhooks_cli;

pub use binaries::{Program, audited_marketctl, binary, features, local, marketctl, metadata, packages_of};
pub use client::{Client, HttpReply};
pub use fixtures::{
    PATHS, balance, item, item_with_variants, large_item, listing, market, marketplace, order, quote, sold_listing,
    uuid,
};
pub use guides::{SettingsProgram, SignatureValidity, Verifier, Walk, Walker};
pub use metrics::{Listener, LogLine, NAMESPACE};
pub use privileges::{FunctionGrant, Ledger};
pub use proxy::{AwsCall, Fault, Proxy};
pub use queue::{DeadLetter, TestQueue};
pub use receiver::{Answer, Received, Receiver};
pub use runtime_api::{RuntimeApi, minute_with, redirect_library};
pub use secrets::secret_in;
pub use settings_commands::SettingsIds;
pub use simulation::{Adversaries, Simulation, answer_from, get_from, shown};
pub use stack::{Administrator, NOON, RunningInstance, Stack, new_key};
pub use state::{
    answers, assert_base_is_exact, assert_orders_are_dense, assert_same, assert_the_log_tells_all, base_bucket,
    compaction, histories, play_histories, tables,
};
pub use tables::{
    dynamodb, key_item_size, put, remove_key_attribute, restore_table, scan, set_key_attribute, set_key_text,
    set_limit, set_row_number, set_text, stored_key_row, stored_row, table_without_indexes,
};
pub use target::{Target, stack_name};
pub use template::{Function, Template, edge_resource, monitoring, table_parameter};
pub use webhooks::{again, delivery, hand, hand_to_die, message, patient, sale, to_loopback, until};
