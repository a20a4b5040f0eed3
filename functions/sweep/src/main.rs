//! The `sweep` function under Lambda.

use std::process::ExitCode;

use shared::webhooks::Schedule;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    shared::service::run_worker(|service| sweep::worker(service, Schedule::default())).await
}
