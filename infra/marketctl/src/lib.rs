//! `marketctl`, the operator's command line. It is a library so that tests can repair tables through a store that fails.

mod audit;
mod check;
mod cli;
mod confirm;
mod dead_letters;
mod environment;
mod failure;
mod feed;
mod import;
mod input;
mod interrupt;
mod keys;
mod progress;
pub mod repair;
mod session;
mod webhooks;

use std::process::ExitCode;

use terminal::Output;

use cli::{Arguments, Command, FeedCommand, Target};
use confirm::Confirmation;
use failure::CommandFailure;
use session::Session;

/// Runs the program with the arguments of the process.
pub async fn run() -> ExitCode {
    let Arguments { target, json, quiet, yes, command } = match cli::parse(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(ended) => return ended,
    };
    if quiet {
        terminal::hide_progress();
    } else {
        common::logging::audit_to_stderr();
    }
    let output = Output::from_json_flag(json);
    match Box::pin(perform(command, &target, output, Confirmation::new(yes))).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.print(output),
    }
}

async fn perform(
    command: Command,
    target: &Target,
    output: Output,
    confirmation: Confirmation,
) -> Result<(), CommandFailure> {
    match &command {
        Command::Completions { shell } => {
            cli::complete(*shell);
            return Ok(());
        }
        Command::Man { directory } => return cli::write_manual(directory),
        Command::Import(options) if options.dry_run => return import::validate(options, output).await,
        _ => {}
    }
    // It says itself what is missing of a stack.
    let needs_stack = !matches!(command, Command::Check);
    let session = Session::open(target, needs_stack).await?;
    match command {
        Command::Keys(command) => keys::run(command, &session, output, confirmation).await,
        Command::Webhooks(command) => webhooks::run(command, &session, output, confirmation).await,
        Command::DeadLetters(command) => dead_letters::run(command, &session, output, confirmation).await,
        Command::Feed(FeedCommand::Send { file }) => feed::send(&file, &session, output).await,
        Command::Import(options) => import::run(&options, &session, output).await,
        Command::Check => check::run(&session, output).await,
        Command::Repair(options) => repair::command::run(options, &session, output).await,
        Command::Completions { .. } | Command::Man { .. } => Ok(()),
    }
}
