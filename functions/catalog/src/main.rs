//! Runs the `catalog` function under Lambda.

use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    api::run(catalog::api).await
}
