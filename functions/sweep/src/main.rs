//! Runs the `sweep` function under Lambda.

use std::process::ExitCode;

use webhooks::Schedule;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    common::runtime::run(|service| sweep::worker(service, Schedule::default())).await
}
