//! `cargo run --release`: starts the stack, prints how to use it, and runs until Ctrl-C.

use std::process::ExitCode;

use clap::Parser;

/// The embedded stores allocate a lot.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    local::stack::run(&local::stack::Options::parse())
}
