//! Runs the `pretraffic` function under Lambda.

use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    runtime::run(pretraffic::worker).await
}
