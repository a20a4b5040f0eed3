//! The least that a function can do: it takes events from Lambda's runtime and answers them.

use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    run(service_fn(|_: LambdaEvent<Value>| async { Ok::<_, Error>(json!({ "statusCode": 200 })) })).await
}
