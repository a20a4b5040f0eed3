//! The `item` function under Lambda.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), shared::service::Error> {
    shared::service::run(item::api).await
}
