//! The `sweep` function under Lambda.

use shared::webhooks::Schedule;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), shared::service::Error> {
    shared::service::run_worker(|service| sweep::worker(service, Schedule::default())).await
}
