//! `bench`: measures what the service costs, on one machine and against the embedded AWS side.

#![allow(clippy::cast_precision_loss, reason = "figures are rounded for people anyway")]

mod cli;
mod cold_start;
mod feed;
mod figures;
mod plot;
mod process;
mod replicas;
mod stack;
mod webhooks;

use std::process::ExitCode;

use clap::Parser;

use cli::{Arguments, Command};
use figures::text;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    common::logging::to_stderr();
    let done = runtime(&arguments.command).and_then(|runtime| {
        runtime.block_on(async {
            match arguments.command {
                Command::ColdStart(options) => cold_start::run(&options).await,
                Command::Replicas(options) => replicas::run(&options).await,
                Command::Feed(options) => feed::run(&options).await,
                Command::Webhooks(options) => webhooks::run(&options).await,
                Command::Receiver => webhooks::receiver::run().await,
                Command::AwsSide => stack::run().await,
                Command::Instance { stream } => replicas::run_instance(stream).await,
            }
        })
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the runtime for a command. What is measured runs on one thread, as under Lambda, unless it starts a runtime of
/// its own. The AWS side may use all cores.
fn runtime(command: &Command) -> Result<tokio::runtime::Runtime, String> {
    let mut builder = match command {
        Command::AwsSide => tokio::runtime::Builder::new_multi_thread(),
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    builder.enable_all().build().map_err(text)
}
