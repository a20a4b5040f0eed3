//! The harness of the end-to-end tests: stacks on free ports, an HTTP client, a proxy that makes the store fail, a
//! stack on simulated time, the Lambda Runtime API on loopback, and the project's binaries.
#![allow(clippy::missing_panics_doc, clippy::unwrap_used, reason = "a harness that cannot go on fails the test")]

mod administrator;
pub mod arn;
mod binaries;
mod cargo;
mod client;
mod compaction;
mod deployed;
mod fixtures;
mod function_binaries;
mod installed;
mod metrics;
mod model;
mod privileges;
mod proxy;
mod queue;
mod receiver;
mod runtime_api;
mod settings_commands;
mod settings_programs;
mod simulation;
mod stack;
mod state;
mod tables;
mod target;
mod template;
mod verifiers;
mod walkers;
mod webhooks;
pub mod webhooks_cli;

pub use administrator::Administrator;
pub use binaries::{Program, audited_marketctl, binary, local, marketctl};
pub use cargo::{metadata, packages_of};
pub use client::{Client, HttpReply};
pub use compaction::{assert_base_is_exact, base_bucket, compaction};
pub use deployed::stack_name;
pub use fixtures::{balance, item, listing, market, marketplace, order, quote, sold_listing, uuid};
pub use function_binaries::redirect_library;
pub use metrics::{Listener, LogLine, NAMESPACE};
pub use model::play_histories;
pub use privileges::{FunctionGrant, Ledger};
pub use proxy::{AwsCall, Fault, Proxy};
pub use queue::{DeadLetter, FeedQueue};
pub use receiver::{Answer, Received, Receiver};
pub use runtime_api::{RuntimeApi, minute_with};
pub use settings_commands::SettingsIds;
pub use settings_programs::SettingsProgram;
pub use simulation::{Simulation, get_from};
pub use stack::{NOON, RunningInstance, Stack};
pub use state::{answers, assert_orders_are_dense, assert_same, assert_the_log_tells_all, tables};
pub use tables::{
    dynamodb, key_item_size, remove_key_attribute, set_key_attribute, set_key_text, set_limit, set_limit_copy,
    set_row_number, set_text, stored_key_row, stored_row, table_without_indexes,
};
pub use target::Target;
pub use template::{Function, Template, edge, monitoring};
pub use verifiers::{SignatureValidity, Verifier};
pub use walkers::{Walk, Walker};
pub use webhooks::{TestQueue, again, hand, hand_to_die, message, sale, to_loopback};
