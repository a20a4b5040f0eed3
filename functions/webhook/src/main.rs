//! The `webhook` function under Lambda.

use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    shared::service::run_worker(webhook::deployed).await
}
