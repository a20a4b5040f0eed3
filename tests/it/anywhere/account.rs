//! The account's settings, by the calls that the marketplace's web application makes. Receivers have names that never
//! resolve (RFC 6761).

use std::time::Duration;

use account::CommandName;
use aws_sdk_lambda::Client;
use aws_sdk_lambda::primitives::Blob;
use common::aws::{Environment, Patience};
use common::resources::Resources;
use serde_json::{Value, json};
use tests::{SettingsIds, SettingsProgram, Target, stack_name};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

/// A delivery that has not got this far by then never will.
const WAIT_TIMEOUT: Duration = Duration::from_mins(2);

struct Scene {
    target: Target,
    lambda: Client,
    function: String,
}

impl Scene {
    async fn new() -> Self {
        let target = Target::new().await;
        let environment = Environment::read(&|name| target.variables.get(name)).unwrap();
        let lambda = Client::new(&environment.config(Patience::Bulk));
        let function = Resources::new(&stack_name()).alias("account");
        Self { target, lambda, function }
    }

    /// Invokes the function. Returns its answer.
    async fn answer(&self, user: Uuid, command: CommandName, parameters: &Value) -> Value {
        let request = json!({"version": 1, "user_id": user, "command": command, "parameters": parameters});
        let invoke = self.lambda.invoke().function_name(&self.function).payload(Blob::new(request.to_string()));
        let reply = invoke.send().await.unwrap();
        assert_eq!(reply.function_error(), None, "{command}");
        let answer: Value = serde_json::from_slice(reply.payload.unwrap().as_ref()).unwrap();
        assert_eq!(answer["version"], 1, "{command}: {answer}");
        answer
    }

    /// Does a command that must succeed. Returns its result.
    async fn done(&self, user: Uuid, command: CommandName, parameters: &Value) -> Value {
        let mut answer = self.answer(user, command, parameters).await;
        assert!(answer.get("error").is_none(), "{command}: {answer}");
        answer["result"].take()
    }

    async fn list(&self, user: Uuid, what: &str) -> Value {
        let command = format!("{what}.list").parse().unwrap();
        self.done(user, command, &json!({})).await[what].take()
    }

    async fn make(&self, user: Uuid) -> SettingsIds {
        let url = self.url();
        SettingsIds::make(&url, async |command, parameters| self.done(user, command, &parameters).await).await
    }

    fn url(&self) -> String {
        format!("https://{}.invalid/hook", self.target.word())
    }

    /// Waits until the only attempt of a test delivery has failed.
    async fn wait_until_failed(&self, user: Uuid, delivery: &Value) {
        let begun = Instant::now();
        loop {
            let shown = self.done(user, CommandName::DeliveriesShow, &json!({"delivery_id": delivery})).await;
            if shown["status"] == "failed" {
                return;
            }
            assert!(begun.elapsed() < WAIT_TIMEOUT, "{shown}");
            sleep(Duration::from_millis(200)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_is_done_for_its_user_and_for_no_other() {
    let scene = Scene::new().await;
    let [user, stranger] = [1, 2].map(|number| scene.target.uuid(number));
    let ids = scene.make(user).await;
    let (keys, endpoints) = (scene.list(user, "keys").await, scene.list(user, "endpoints").await);
    assert_eq!((&keys[0]["key_id"], &endpoints[0]["id"]), (&ids.key, &ids.endpoint));
    for (command, parameters) in ids.commands() {
        if command == CommandName::DeliveriesResend {
            scene.wait_until_failed(user, &ids.delivery).await;
        }
        let answer = scene.answer(stranger, command, &parameters).await;
        assert_eq!(answer["error"]["code"], "not_found", "{command}: {answer}");
        scene.done(user, command, &parameters).await;
    }
    let keys = scene.list(user, "keys").await;
    let mut states: Vec<_> = keys.as_array().unwrap().iter().map(|key| [&key["name"], &key["status"]]).collect();
    states.sort_by_key(|[_, status]| status.to_string());
    assert_eq!(json!(states), json!([["second", "active"], ["second", "revoked"]]));
    assert_eq!(scene.list(user, "endpoints").await, json!([]));
    for what in ["keys", "endpoints"] {
        assert_eq!(scene.list(stranger, what).await, json!([]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guides_programs_make_a_key_and_an_endpoint_and_print_no_secret() {
    let scene = Scene::new().await;
    for (number, program) in (1..).zip(SettingsProgram::ALL) {
        let user = scene.target.uuid(number);
        let ran = program.run(&scene.target.variables, &scene.function, &user.to_string(), &scene.url()).await;
        let (keys, endpoints) = (scene.list(user, "keys").await, scene.list(user, "endpoints").await);
        let [key, endpoint] = [&keys[0]["key_id"], &endpoints[0]["id"]].map(|id| id.as_str().unwrap_or_default());
        let printed = format!("key {key}, endpoint {endpoint}, deliveries: 0\n");
        assert_eq!((ran.code, ran.stdout.as_str()), (0, printed.as_str()), "{program:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains("sk_") && !ran.stderr.contains("whsec_"), "{program:?}");
    }
}
