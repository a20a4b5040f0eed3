//! The account's settings: the function `account`, command by command.

mod audit;
mod commands;
mod deliveries;
mod refused;
mod schema;

use account::{Account, CommandName};
use runtime::Worker;
use serde_json::{Value, json};
use tests::webhooks_cli::{OWNER, URL, text};
use tests::{Proxy, SettingsIds, Stack};

/// A stack with the account's settings of one user.
pub(crate) struct Settings {
    pub(crate) stack: Stack,
    account: Account,
}

/// A command that was done, and its answer.
pub(crate) struct Done {
    command: CommandName,
    event: Value,
    answer: Value,
}

/// Returns the event of a command.
fn event(user: &str, command: CommandName, parameters: &Value) -> Value {
    json!({"version": 1, "user_id": user, "command": command, "parameters": parameters, "actor": "settings page"})
}

impl Settings {
    pub(crate) async fn new() -> Self {
        let stack = Stack::new().await;
        let account = stack.account_at(&stack.aws.endpoint_url).await;
        Self { stack, account }
    }

    /// Makes settings whose calls to AWS go through a proxy.
    async fn behind_proxy() -> (Self, Proxy) {
        let stack = Stack::new().await;
        let proxy = Proxy::start(&stack.aws.endpoint_url).await;
        let account = stack.account_at(&proxy.url).await;
        (Self { stack, account }, proxy)
    }

    /// Hands an event to the function. Returns its answer.
    async fn answer(&self, event: Value) -> Value {
        self.account.work(event).await.unwrap()
    }

    /// Runs a command of the owner that must succeed. Returns its result.
    async fn done(&self, command: CommandName, parameters: Value) -> Value {
        let answer = self.answer(event(OWNER, command, &parameters)).await;
        assert!(answer["result"].is_object(), "{command}: {answer}");
        answer["result"].clone()
    }

    /// Adds an endpoint of the owner. Returns its id.
    async fn endpoint(&self) -> String {
        text(&self.done(CommandName::EndpointsAdd, json!({"url": URL, "events": ["listing.sold"]})).await["id"])
    }

    /// Makes a key, an endpoint and a delivery of the owner.
    async fn ids(&self) -> SettingsIds {
        SettingsIds::make(URL, async |command, parameters| self.done(command, parameters).await).await
    }

    /// Makes a key, an endpoint and a delivery of the owner. Returns the parameters that name each.
    async fn belongings(&self) -> [Value; 3] {
        let SettingsIds { key, endpoint, delivery } = self.ids().await;
        [json!({"key_id": key}), json!({"endpoint_id": endpoint}), json!({"delivery_id": delivery})]
    }

    /// Does everything that an owner can do. Returns the commands and their answers.
    pub(crate) async fn walk(&self) -> Vec<Done> {
        let mut walked = Vec::new();
        let mut step = async |command: CommandName, parameters: Value| {
            let event = event(OWNER, command, &parameters);
            let answer = self.answer(event.clone()).await;
            assert!(answer["result"].is_object(), "{event}: {answer}");
            let result = answer["result"].clone();
            walked.push(Done { command, event, answer });
            result
        };
        let ids = SettingsIds::make(URL, &mut step).await;
        for command in [CommandName::KeysList, CommandName::EndpointsList] {
            step(command, json!({})).await;
        }
        for (command, parameters) in ids.commands() {
            step(command, parameters).await;
        }
        walked
    }
}

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
