//! Lambda's Invoke on the local AWS side.

use account::CommandName;
use serde_json::{Value, json};
use tests::Stack;
use tests::webhooks_cli::OWNER;

use super::event;

/// Invokes a function as an SDK does, which may put the alias into the query. Returns the status, the error's type and the body.
async fn invoke(stack: &Stack, function: &str, payload: &str) -> (u16, Option<String>, Value) {
    let (function, query) = function.split_once('?').unwrap_or((function, ""));
    let url = format!("{}/2015-03-31/functions/{function}/invocations?{query}", stack.aws.endpoint_url);
    let scope = "Credential=local/20261120/us-east-1/lambda/aws4_request";
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = client.post(url).body(payload.to_owned());
    let request = request.header("authorization", format!("AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature=0"));
    let response = request.send().await.unwrap();
    let kind = response.headers().get("x-amzn-errortype").map(|kind| kind.to_str().unwrap().to_owned());
    let status = response.status().as_u16();
    (status, kind, serde_json::from_str(&response.text().await.unwrap()).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_local_aws_side_invokes_the_function_by_its_name_or_its_arn_with_or_without_its_alias() {
    let stack = Stack::new().await;
    let list = event(OWNER, CommandName::KeysList, &json!({})).to_string();
    let (status, kind, _) = invoke(&stack, "marketplace-account", &list).await;
    assert_eq!((status, kind.as_deref()), (400, Some("ResourceNotFoundException")));
    let _running = stack.instance().await;
    let arn = "arn%3Aaws%3Alambda%3Aus-east-1%3A000000000000%3Afunction%3Amarketplace-account";
    let alias = format!("{arn}%3Alive");
    for name in ["marketplace-account", "marketplace-account:live", "marketplace-account?Qualifier=live", arn, &alias] {
        let (status, kind, answer) = invoke(&stack, name, &list).await;
        assert_eq!((status, kind), (200, None), "{answer}");
        assert_eq!(answer, json!({"version": 1, "result": {"keys": [], "unreadable": []}}));
    }
    for (name, payload, refused) in [
        ("marketplace-none", &*list, "ResourceNotFoundException"),
        ("marketplace-account:other", &*list, "ResourceNotFoundException"),
        ("other-account", &*list, "ResourceNotFoundException"),
        ("marketplace-account", "{", "InvalidRequestContentException"),
    ] {
        assert_eq!(invoke(&stack, name, payload).await.1.as_deref(), Some(refused), "{name}");
    }
}
