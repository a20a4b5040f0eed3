//! Runs the `compact` function under Lambda.

use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    runtime::run(compact::worker).await
}
