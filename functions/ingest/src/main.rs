//! The `ingest` function under Lambda.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), shared::service::Error> {
    shared::service::run_worker(ingest::worker).await
}
