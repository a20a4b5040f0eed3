//! The `ingest` function under Lambda.

use shared::webhooks::Schedule;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), shared::service::Error> {
    shared::service::run_worker(|service| ingest::worker(service, Schedule::default())).await
}
