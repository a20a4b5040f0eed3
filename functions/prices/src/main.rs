//! Runs the `prices` function under Lambda.

use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    api::run(prices::api).await
}
