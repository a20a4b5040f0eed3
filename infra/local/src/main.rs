//! `cargo run --release`: starts the stack, prints how to use it, and runs until Ctrl-C.

use std::io;
use std::process::ExitCode;

use clap::Parser;
use local::stack::{Options, RunningStack};
use tokio::signal::unix::{SignalKind, signal};

/// The embedded stores allocate a lot.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    common::logging::to_stderr();
    let stack = match RunningStack::start(&options).await {
        Ok(stack) => stack,
        Err(error) => {
            eprintln!("local: {error}");
            return ExitCode::FAILURE;
        }
    };
    if options.json {
        println!("{}", stack.ready.json());
    } else {
        println!("{}", stack.ready.text());
    }
    match end(&stack).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("local: cannot wait for Ctrl-C: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Waits for Ctrl-C or SIGTERM, and then until the feed has been applied or a second signal arrives.
async fn end(stack: &RunningStack) -> io::Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut next = async || {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    next().await;
    tokio::select! {
        () = stack.drain() => {}
        () = next() => {}
    }
    Ok(())
}
