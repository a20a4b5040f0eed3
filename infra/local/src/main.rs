//! `cargo run --release`: starts the stack, says how to use it, and runs until Ctrl-C.

use std::process::ExitCode;

use clap::Parser;
use local::cli::Options;
use local::stack::Stack;

/// The embedded stores allocate a lot.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    shared::logging::to_stderr();
    let stack = match Stack::start(&options).await {
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
    match tokio::signal::ctrl_c().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("local: cannot wait for Ctrl-C: {error}");
            ExitCode::FAILURE
        }
    }
}
