//! `marketctl`, the operator's command line. It is a library so that tests can repair tables through a store that fails.

mod audit;
mod check;
mod cli;
mod failure;
mod feed;
mod import;
mod input;
mod keys;
pub mod repair;
mod restore;
mod session;
mod webhooks;

use std::process::ExitCode;

use clap::Parser;
use terminal::Output;

use cli::{Arguments, Command, FeedCommand};

/// Runs the program with the arguments of the process.
pub async fn run() -> ExitCode {
    let Arguments { stack, json, command } = Arguments::parse();
    common::logging::audit_to_stderr();
    let output = Output::from_json_flag(json);
    let result = match command {
        Command::Keys(command) => keys::run(command, &stack, output).await,
        Command::Webhooks(command) => webhooks::run(command, &stack, output).await,
        Command::Feed(FeedCommand::Send { file }) => feed::send(file, &stack, output).await,
        Command::Import { file } => import::run(file, &stack, output).await,
        Command::Check => check::run(&stack, output).await,
        Command::Repair(options) => repair::command::run(options, &stack, output).await,
        Command::Restore(options) => Box::pin(restore::run(options, &stack, output)).await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.print(output),
    }
}
