use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    marketctl::run().await
}
