//! The `webhook` function under Lambda.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), shared::service::Error> {
    shared::service::run_worker(webhook::deployed).await
}
