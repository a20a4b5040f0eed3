//! A function that can be made to panic, for a test of what a panic costs.

use std::pin::Pin;
use std::process::ExitCode;

use api::{GatewayEvent, Handler, Response};
use common::aws::Missing;

/// Panics if the request's path contains `panic`, with the whole path in the panic's message.
struct Faulty;

impl Handler for Faulty {
    fn warm_up(&self) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>> {
        Box::pin(async { Ok(()) })
    }

    fn handle(&self, event: GatewayEvent) -> Pin<Box<dyn Future<Output = Response> + Send + '_>> {
        Box::pin(async move {
            let path = event.raw_path.unwrap_or_default();
            assert!(!path.contains("panic"), "{path}");
            Response::default()
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    api::run(|_| Ok::<_, Missing>(Faulty)).await
}
