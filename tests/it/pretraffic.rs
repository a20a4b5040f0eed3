//! The pre-traffic hook. It invokes the new versions of all functions, and the proxy plays the part of `CodeDeploy`.

use std::time::Duration;

use common::resources::Queue;
use common::runtime::{Error, Worker};
use pretraffic::{HookEvent, MAX_DELAYS, MAX_FAILURES, Pretraffic};
use serde_json::{Value, json};
use tests::{AwsCall, Fault, Proxy, RunningInstance, Stack, Template};

/// A deployment that waits for the report.
pub(crate) const WAITS: &str = r#"{"deploymentInfo": {"status": "InProgress", "creator": "CloudFormation"}}"#;
/// The operation that reports.
pub(crate) const REPORT: &str = "PutLifecycleEventHookExecutionStatus";

/// Returns how many functions get new versions.
pub(crate) fn version_count() -> usize {
    Template::read().functions_that(|function| !function.is_hook()).len()
}

/// A stack whose functions can be invoked, and the hook.
pub(crate) struct Scene {
    pub(crate) stack: Stack,
    hook: Pretraffic,
    proxy: Proxy,
    _running: RunningInstance,
}

/// A function with a defect.
struct Broken;

impl Worker for Broken {
    type Event = Value;
    type Response = Value;

    async fn work(&self, _: Value) -> Result<Value, Error> {
        Err("a defect".into())
    }
}

/// A function that gives the same answer to everybody.
struct Answering(u16, &'static str);

impl Worker for Answering {
    type Event = Value;
    type Response = Value;

    async fn work(&self, _: Value) -> Result<Value, Error> {
        Ok(json!({"statusCode": self.0, "body": json!({"error": {"code": self.1}}).to_string()}))
    }
}

impl Scene {
    pub(crate) async fn new() -> Self {
        let (stack, proxy) = Stack::with_proxy().await;
        let running = stack.instance().await;
        let (invocations, url) = (stack.aws.invocations(), &stack.aws.endpoint_url);
        invocations.offer("ingest", stack.ingest_at(url));
        invocations.offer("webhook", stack.sender());
        invocations.offer("sweep", stack.sweep_at(url));
        invocations.offer("compact", stack.compact());
        let hook = stack.pretraffic_at(&proxy.url).with_pause(Duration::ZERO);
        Self { stack, hook, proxy, _running: running }
    }

    /// Runs the hook for a deployment. `answer` decides about each invocation, the first of which has the number 1.
    async fn run(&self, deployment: &'static str, mut answer: impl FnMut(usize) -> Fault + Send + 'static) {
        let mut invocations = 0;
        self.proxy.plan(move |operation| match operation {
            "GetDeployment" => Fault::Answer(deployment),
            REPORT => Fault::Answer("{}"),
            "Invoke" => {
                invocations += 1;
                answer(invocations)
            }
            _ => Fault::None,
        });
        let event =
            HookEvent { deployment_id: "d-1".to_owned(), lifecycle_event_hook_execution_id: "hook-1".to_owned() };
        self.hook.work(event).await.unwrap();
    }

    /// Runs the hook. Returns what it reports, and how many invocations it took.
    pub(crate) async fn reported(&self, answer: impl FnMut(usize) -> Fault + Send + 'static) -> (String, usize) {
        self.run(WAITS, answer).await;
        let calls = self.proxy.take_calls();
        (report(&calls), AwsCall::count(&calls, "Invoke"))
    }

    /// Lets the hook do all that it can do.
    pub(crate) async fn walk(&self) {
        assert_eq!(self.reported(|_| Fault::None).await.0, "Succeeded");
        self.run(WAITS, crowded).await;
    }
}

/// Returns the one report that was made.
fn report(calls: &[AwsCall]) -> String {
    assert_eq!(AwsCall::count(calls, REPORT), 1);
    let report = calls.iter().find(|call| call.operation == REPORT).unwrap();
    let report: Value = serde_json::from_slice(&report.body).unwrap();
    assert_eq!((&report["deploymentId"], &report["lifecycleEventHookExecutionId"]), (&json!("d-1"), &json!("hook-1")));
    report["status"].as_str().unwrap().to_owned()
}

/// Leaves no concurrency to try a version. The invocation after that is the one of the hook itself.
fn crowded(invocation: usize) -> Fault {
    if invocation <= MAX_DELAYS as usize { Fault::Error("TooManyRequestsException") } else { Fault::Answer("") }
}

#[tokio::test(flavor = "multi_thread")]
async fn new_versions_that_all_answer_get_traffic() {
    let scene = Scene::new().await;
    assert_eq!(scene.reported(|_| Fault::None).await, ("Succeeded".to_owned(), version_count()));
    // It may be invoked again for the same deployment.
    assert_eq!(scene.reported(|_| Fault::None).await, ("Succeeded".to_owned(), version_count()));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_version_that_fails_or_answers_wrongly_stops_the_deployment() {
    let scene = Scene::new().await;
    let tries = version_count() - 1 + MAX_FAILURES as usize;
    scene.stack.aws.invocations().offer("webhook", Broken);
    assert_eq!(scene.reported(|_| Fault::None).await, ("Failed".to_owned(), tries));
    scene.stack.aws.invocations().offer("webhook", scene.stack.sender());
    for answer in [Answering(200, ""), Answering(503, "service.unavailable"), Answering(403, "api_keys.missing")] {
        scene.stack.aws.invocations().offer("me", answer);
        assert_eq!(scene.reported(|_| Fault::None).await, ("Failed".to_owned(), tries));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_that_is_missing_stops_the_deployment() {
    let scene = Scene::new().await;
    scene.stack.remove_queue(Queue::Notices).await;
    assert_eq!(scene.reported(|_| Fault::None).await.0, "Failed");
}

/// The hook does not know the secret of the deployment's edge.
#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_refuses_all_but_the_edge_gets_traffic() {
    let scene = Scene::new().await;
    for function in ["me", "openapi"] {
        scene.stack.aws.invocations().offer(function, Answering(403, "hosts.not_allowed"));
    }
    assert_eq!(scene.reported(|_| Fault::None).await, ("Succeeded".to_owned(), version_count()));
}

/// `CodeDeploy` waits an hour for a report that does not come.
#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_never_answers_stops_the_deployment_before_the_hook_runs_out_of_time() {
    let mut scene = Scene::new().await;
    scene.hook = scene.stack.pretraffic_at(&scene.proxy.url).with_limit(Duration::from_secs(1));
    assert_eq!(scene.reported(|_| Fault::Hang).await.0, "Failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_is_pending_is_tried_again() {
    let scene = Scene::new().await;
    let pending = |number| if number <= 2 { Fault::Error("ResourceConflictException") } else { Fault::None };
    assert_eq!(scene.reported(pending).await, ("Succeeded".to_owned(), version_count() + 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_concurrency_the_hook_gives_up_its_own_and_is_invoked_later() {
    let scene = Scene::new().await;
    scene.run(WAITS, crowded).await;
    let calls = scene.proxy.take_calls();
    assert_eq!((AwsCall::count(&calls, REPORT), AwsCall::count(&calls, "Invoke")), (0, MAX_DELAYS as usize + 1));
    let event: Value = serde_json::from_slice(&calls.last().unwrap().body).unwrap();
    assert_eq!(event, json!({"DeploymentId": "d-1", "LifecycleEventHookExecutionId": "hook-1"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_way_back_is_never_refused() {
    let scene = Scene::new().await;
    scene.stack.remove_queue(Queue::Notices).await;
    for deployment in [
        r#"{"deploymentInfo": {"status": "InProgress", "creator": "CloudFormationRollback"}}"#,
        r#"{"deploymentInfo": {"status": "InProgress", "creator": "codeDeployRollback"}}"#,
    ] {
        scene.run(deployment, |_| Fault::Refuse).await;
        let calls = scene.proxy.take_calls();
        assert_eq!((report(&calls).as_str(), calls.len()), ("Succeeded", 2));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_reported_about_a_deployment_that_is_over() {
    let scene = Scene::new().await;
    scene.run(r#"{"deploymentInfo": {"status": "Failed", "creator": "CloudFormation"}}"#, |_| Fault::Refuse).await;
    assert_eq!(scene.proxy.take_operations(), ["GetDeployment"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scheduled_function_that_is_tried_does_nothing() {
    let (stack, proxy) = Stack::with_proxy().await;
    let event = json!({"resources": []});
    stack.sweep_at(&proxy.url).work(event).await.unwrap();
    assert_eq!(proxy.take_operations(), [""; 0]);
}
