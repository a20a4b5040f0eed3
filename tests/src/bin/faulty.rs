//! A function that can be made to panic, for a test of what a panic costs.

use std::pin::Pin;
use std::process::ExitCode;

use api::{Handler, Request, Response};
use common::aws::Missing;

/// Panics if the request's path contains `panic`, with the whole path in the panic's message.
struct Faulty;

impl Handler for Faulty {
    fn warm_up(&self) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>> {
        Box::pin(async { Ok(()) })
    }

    fn handle(&self, request: Request) -> Pin<Box<dyn Future<Output = Response> + Send + '_>> {
        Box::pin(async move {
            let path = request.uri().path();
            assert!(!path.contains("panic"), "{path}");
            Response::default()
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    api::run(|_| Ok::<_, Missing>(Faulty)).await
}
