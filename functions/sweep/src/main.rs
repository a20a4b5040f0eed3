//! Runs the `sweep` function under Lambda.

use std::process::ExitCode;

use webhooks::Schedule;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    runtime::run(|service| sweep::worker(service, Schedule::default())).await
}
