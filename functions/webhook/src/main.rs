//! Runs the `webhook` function under Lambda.

use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    common::runtime::run(webhook::deployed).await
}
