//! The `catalog` function under Lambda.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), shared::service::Error> {
    shared::service::run(catalog::api).await
}
