//! The functions' binaries under the Lambda Runtime API. In their init phase they name what is wrong with their resources,
//! before the first event. A panic or an event that cannot be read costs its invocation alone.

use std::collections::BTreeSet;

use api::origin::{ORIGIN_HEADER, ORIGIN_VARIABLE};
use common::aws::{Environment, Patience};
use common::resources::{BASE_BUCKET_VARIABLE, KEYRING_VARIABLE, Queue, Resources, Table};
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use local::environment::Variables;
use local::runtime_api::http_event;
use serde_json::{Value, json};
use tests::{AwsCall, Fault, LogLine, Proxy, RuntimeApi, Stack, Template, binary, marketctl};

/// Returns every function with the resources that the template tells it of. Each is its kind and its name.
fn functions() -> impl Iterator<Item = (&'static str, BTreeSet<String>)> {
    let functions = Template::read().functions.iter().filter(|(_, function)| !function.is_hook());
    functions.map(|(name, function)| {
        let variables = function.properties["Environment"]["Variables"].as_object().into_iter().flatten();
        let resources = variables.filter_map(|(variable, value)| {
            let kind = match variable.as_str() {
                BASE_BUCKET_VARIABLE => "bucket",
                KEYRING_VARIABLE => "secret",
                table if table.ends_with("_TABLE") => "table",
                queue if queue.ends_with("_QUEUE_URL") => "queue",
                _ => return None,
            };
            Some(format!("{kind} {}", value.as_str()?.rsplit('/').next()?))
        });
        (name.as_str(), resources.collect())
    })
}

/// Starts a function that must fail. Returns the problems that it names.
async fn problems(function: &str, variables: &Variables) -> BTreeSet<String> {
    let line = RuntimeApi::run(function, variables).await.failed().await;
    assert_eq!((&line["level"], &line["message"]), (&json!("ERROR"), &json!("cannot start")), "{function}: {line}");
    line["error"].as_str().unwrap().split("; ").map(str::to_owned).collect()
}

/// Starts a function that must fail because of one resource. Returns the problem.
async fn problem(function: &str, variables: &Variables) -> String {
    let problems = problems(function, variables).await;
    assert_eq!(problems.len(), 1, "{function}: {problems:?}");
    problems.into_iter().next().unwrap()
}

/// Returns the problems that `marketctl check` names for the same stack.
/// Returns what `marketctl check` says is wrong. Credentials that AWS refuses it names once, before all checks.
async fn checked(variables: &Variables) -> Vec<String> {
    let run = marketctl(variables, &["--json", "check"], "").await;
    let Ok(report) = serde_json::from_str::<Value>(&run.stdout) else { return vec![run.stderr] };
    let checks = report["checks"].as_array().unwrap().clone();
    checks.iter().filter_map(|check| check["error"].as_str().map(str::to_owned)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_function_names_all_that_it_lacks_in_one_line_as_check_does() {
    let stack = Stack::new().await;
    let variables = Variables::new(&stack.aws.endpoint_url);
    let environment = Environment::read(&|name| variables.get(name)).unwrap();
    let resources = Resources::new(Resources::DEFAULT_STACK);
    let (dynamodb, sqs) = (environment.dynamodb(Patience::Bulk), common::queues::client(&environment, Patience::Bulk));
    for table in Table::ALL {
        dynamodb.delete_table().table_name(resources.table(table)).send().await.unwrap();
    }
    for queue in Queue::ALL {
        sqs.delete_queue().set_queue_url(variables.get(queue.variable())).send().await.unwrap();
    }
    let secrets = webhooks::secrets::client(&environment, Patience::Bulk);
    let delete = secrets.delete_secret().secret_id(resources.keyring()).force_delete_without_recovery(true);
    delete.send().await.unwrap();
    let bucket = variables.get(BASE_BUCKET_VARIABLE).unwrap();
    replica::objects::client(&environment, Patience::Bulk).delete_bucket().bucket(&bucket).send().await.unwrap();

    let checked = checked(&variables).await;
    assert_eq!(checked.len(), 4 + 7 + 1 + 1);
    for (function, resources) in functions() {
        let expected: BTreeSet<String> = resources.iter().map(|name| format!("{name} does not exist")).collect();
        if expected.is_empty() {
            RuntimeApi::run(function, &variables).await.ready().await;
            continue;
        }
        assert_eq!(problems(function, &variables).await, expected, "{function}");
        for problem in expected {
            assert!(checked.iter().any(|sentence| sentence.starts_with(&problem)), "{problem}: {checked:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_of_another_form_or_name_is_named() {
    let stack = Stack::new().await;
    let variables = Variables::new(&stack.aws.endpoint_url);
    let with = |name: &str, value: &str| variables.clone().with(name, value);
    let misnamed = with(Table::Keys.variable(), "marketplace-kyes");
    assert_eq!(problem("me", &misnamed).await, "table marketplace-kyes does not exist");
    let missing = with(Queue::FeedDead.variable(), "http://127.0.0.1:1/000000000000/no-queue");
    assert_eq!(problem("ingest", &missing).await, "queue no-queue does not exist");
    let no_secret = with(KEYRING_VARIABLE, "no-keyring");
    assert_eq!(problem("webhook", &no_secret).await, "secret no-keyring does not exist");

    tests::table_without_indexes(&stack, "bare-webhooks").await;
    let bare = problem("sweep", &with(Table::Webhooks.variable(), "bare-webhooks")).await;
    assert!(bare.starts_with("table bare-webhooks cannot be used (ValidationException"), "{bare}");

    let secrets = webhooks::secrets::client(&Environment::read(&|name| variables.get(name)).unwrap(), Patience::Bulk);
    let put = secrets.put_secret_value().secret_id("marketplace-keyring");
    put.secret_string(r#"{"current":"a","keys":[{"id":"a","key":"c2VjcmV0"}]}"#).send().await.unwrap();
    let spoiled = problem("webhook", &variables).await;
    assert_eq!(spoiled, "secret marketplace-keyring holds no keyring (a key must be the base64 of 32 bytes)");
    assert!(checked(&variables).await[0].starts_with(&spoiled));
    secrets.delete_secret().secret_id("marketplace-keyring").send().await.unwrap();
    let deleted = problem("webhook", &variables).await;
    assert_eq!(deleted, "secret marketplace-keyring is scheduled for deletion");
    assert!(checked(&variables).await[0].starts_with(&deleted));
}

/// Asserts that functions which meet this error name it, in the words of `marketctl check`.
async fn a_refusal_is_named(stack: &Stack, code: &'static str, what: &str) {
    let (keys, all) = tokio::join!(Proxy::start(&stack.aws.endpoint_url), Proxy::start(&stack.aws.endpoint_url));
    keys.plan(move |operation| if operation == "UpdateItem" { Fault::Error(code) } else { Fault::None });
    // Without the names of the tables, nothing is checked.
    let tells_tables =
        move |operation: &str| code == "AccessDeniedException" && operation == "GetFunctionConfiguration";
    all.plan(move |operation| if tells_tables(operation) { Fault::None } else { Fault::Error(code) });
    let (keys, all) = (Variables::new(&keys.url), Variables::new(&all.url));
    let (me, catalog, ingest, webhook, checked) = tokio::join!(
        problem("me", &keys),
        problem("catalog", &keys),
        problems("ingest", &all),
        problems("webhook", &all),
        checked(&all),
    );
    let expected = format!("table marketplace-keys {what} ({code}: injected)");
    assert_eq!((&me, &catalog), (&expected, &expected));
    let refused = format!("AWS refuses the credentials: {code}");
    let is_named = |sentence: &String| sentence.starts_with(&expected) || sentence.contains(&refused);
    assert!(checked.iter().any(is_named), "{checked:?}");
    assert_eq!((ingest.len(), webhook.len()), (3 + 4, 1 + 4 + 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_permission_and_refused_credentials_are_named() {
    let stack = Stack::new().await;
    let denied = "may not be used with these credentials";
    tokio::join!(
        a_refusal_is_named(&stack, "AccessDeniedException", denied),
        a_refusal_is_named(&stack, "UnrecognizedClientException", denied),
        a_refusal_is_named(&stack, "InvalidSignatureException", "cannot be used"),
    );
}

/// IAM is eventually consistent, so a role may be refused for some seconds after it was made or changed.
#[tokio::test(flavor = "multi_thread")]
async fn a_permission_that_comes_during_init_is_waited_for() {
    let stack = Stack::new().await;
    let calls = [
        ("me", "UpdateItem"),
        ("orders", "GetItem"),
        ("ingest", "BatchGetItem"),
        ("compact", "GetObject"),
        ("webhook", "GetSecretValue"),
        ("sweep", "Query"),
    ];
    for code in ["AccessDeniedException", "UnrecognizedClientException"] {
        let starts = calls.map(async |(function, operation)| {
            let (proxy, mut denied) = (Proxy::start(&stack.aws.endpoint_url).await, 0);
            proxy.plan(move |called| {
                let is_denied = called == operation && denied < 2;
                denied += usize::from(is_denied);
                if is_denied { Fault::Error(code) } else { Fault::None }
            });
            RuntimeApi::run(function, &Variables::new(&proxy.url)).await.ready().await;
            let asked = proxy.take_operations().iter().filter(|called| *called == operation).count();
            assert!(asked >= 3, "{function} asked {asked} times");
        });
        join_all(starts).await;
    }
}

/// A function depends on what its trigger needs and no more.
#[tokio::test(flavor = "multi_thread")]
async fn a_function_starts_without_what_only_a_part_of_its_work_needs() {
    let stack = Stack::new().await;
    let mut variables = Variables::new(&stack.aws.endpoint_url);
    for queue in [Queue::WebhooksFirst, Queue::WebhooksSlow, Queue::Notices] {
        let nowhere = format!("http://127.0.0.1:1/000000000000/no-{}", queue.variable());
        variables = variables.with(queue.variable(), &nowhere);
    }
    let without_table = variables.clone().with(Table::Webhooks.variable(), "no-table");
    let [first, slow] = ["queue no-WEBHOOKS_FIRST_QUEUE_URL", "queue no-WEBHOOKS_SLOW_QUEUE_URL"];
    let notices = "queue no-NOTICES_QUEUE_URL";
    let absent = [("ingest", ["table no-table", first]), ("account", ["table no-table", slow])].map(
        async |(function, absent)| {
            let told = absent.map(|resource| format!("{resource} does not exist")).join("; ");
            assert_eq!(told_at_start(function, &without_table).await, told, "{function}");
        },
    );
    let optional = ["webhook", "sweep"].map(async |function| {
        let told = problems(function, &variables).await;
        assert_eq!(told, BTreeSet::from([slow, notices].map(|queue| format!("{queue} does not exist"))), "{function}");
        let slow_lane = Variables::new(&stack.aws.endpoint_url).get(Queue::WebhooksSlow.variable()).unwrap();
        let variables = variables.clone().with(Queue::WebhooksSlow.variable(), &slow_lane);
        assert_eq!(told_at_start(function, &variables).await, format!("{notices} does not exist"), "{function}");
    });
    tokio::join!(join_all(absent), join_all(optional));
}

/// Starts a function that starts although it lacks something. Returns the problems of which it tells.
async fn told_at_start(function: &str, variables: &Variables) -> String {
    let mut running = RuntimeApi::run(function, variables).await;
    running.ready().await;
    let [LogLine { json: line }] = &running.lines()[..] else { panic!("{function}: {}", running.log()) };
    assert_eq!((&line["level"], &line["message"]), (&json!("WARN"), &json!("not ready yet")), "{function}");
    line["problems"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_temporary_problem_does_not_keep_a_function_from_starting() {
    let stack = Stack::new().await;
    let headers = json!({"authorization": format!("Bearer {}", stack.full_key().await)});
    let faults = [
        Fault::Refuse,
        Fault::Hang,
        Fault::Garbage,
        Fault::Error("ThrottlingException"),
        Fault::Error("ProvisionedThroughputExceededException"),
        Fault::Error("InternalServerError"),
    ];
    let meet = async |fault: Fault| {
        let proxy = Proxy::start(&stack.aws.endpoint_url).await;
        proxy.set_fault(fault.clone());
        let variables = Variables::new(&proxy.url);
        let functions = ["me", "catalog", "ingest", "webhook", "compact", "sweep", "account"];
        let started = join_all(functions.map(|function| start_in_trouble(function, &variables))).await;
        proxy.set_fault(Fault::None);
        for (mut running, function) in started.into_iter().zip(["me", "catalog"]) {
            let answer = running.invoke(http_event("/x", "/x", "", &headers)).await;
            assert_eq!(answer["statusCode"], 200, "{function} after {fault:?}: {answer}");
        }
    };
    stream::iter(faults).for_each_concurrent(3, meet).await;
}

/// Starts a function while AWS cannot be reached.
async fn start_in_trouble(function: &str, variables: &Variables) -> RuntimeApi {
    let mut running = RuntimeApi::run(function, variables).await;
    running.ready().await;
    let mut lines = running.lines();
    // A load that takes long says why.
    lines.retain(|line| line.json["message"] != "the load goes on after a pause");
    let [LogLine { json: line }] = lines.as_slice() else { panic!("{function}: {}", running.log()) };
    assert_eq!((&line["level"], &line["message"]), (&json!("WARN"), &json!("not ready yet")), "{function}");
    assert!(line["problems"].as_str().unwrap().contains(" cannot be reached ("), "{function}: {line}");
    running
}

#[tokio::test(flavor = "multi_thread")]
async fn the_check_at_start_takes_one_round_trip_and_opens_the_connections_of_the_first_request() {
    let stack = Stack::new().await;
    let check = async |(function, resources): (&str, BTreeSet<String>)| {
        let proxy = Proxy::start(&stack.aws.endpoint_url).await;
        // Long enough for calls that are sent together to overlap on a busy machine, and well below the time-out of an
        // attempt.
        proxy.set_fault(Fault::Slow(std::time::Duration::from_millis(500)));
        RuntimeApi::run(function, &Variables::new(&proxy.url)).await.ready().await;
        let calls = proxy.take_calls();
        assert!(calls.len() >= resources.len(), "{function}: {calls:?}");
        // A replica is loaded in several round trips.
        if !resources.is_empty() && !Template::read().functions[function].has_replica() {
            assert_eq!(AwsCall::round_trips(&calls), 1, "{function}: {calls:?}");
            assert_eq!(proxy.connections(), calls.len(), "{function}");
        }
    };
    stream::iter(functions()).for_each_concurrent(2, check).await;
}

fn event(route: &str, path: &str, query: &str, key: &str) -> Value {
    http_event(route, path, query, &json!({"authorization": format!("Bearer {key}"), "accept": "*/*"}))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_variable_ends_the_function_with_a_line_that_names_it() {
    let variables = [("AWS_REGION", "us-east-1"), ("AWS_ACCESS_KEY_ID", "x"), ("AWS_SECRET_ACCESS_KEY", "x")];
    let mut catalog = tokio::process::Command::new(binary("catalog"));
    let output = catalog.env_clear().envs(variables).output().await.unwrap();
    assert!(!output.status.success() && output.stderr.is_empty(), "{output:?}");
    let line: Value = serde_json::from_slice(&output.stdout).unwrap();
    let told = (&line["level"], &line["error"]);
    assert_eq!(told, (&json!("ERROR"), &json!("environment variables not set: MARKET_TABLE")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_costs_its_invocation_and_leaves_one_line_without_what_it_was_about() {
    let stack = Stack::new().await;
    let mut faulty = RuntimeApi::run("faulty", &Variables::new(&stack.aws.endpoint_url)).await;
    let request = |path| event(path, path, "", "");
    let answer = faulty.invoke(request("/panic/hush")).await;
    assert!(answer["errorType"].is_string(), "{answer}");
    let answer = faulty.invoke(request("/fine")).await;
    assert!(answer["statusCode"].is_number(), "{answer}");
    let log = faulty.log();
    let line: Value = serde_json::from_str(&log).unwrap_or_else(|error| panic!("not one line ({error}): {log}"));
    assert_eq!((&line["level"], &line["message"]), (&json!("ERROR"), &json!("panicked")));
    assert_eq!(line["lambda_request_id"], "invocation-1");
    assert!(line["place"].as_str().unwrap().starts_with("tests/src/bin/faulty.rs:"), "{line}");
    assert!(!log.contains("hush"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_cannot_be_read_costs_its_invocation_and_shows_nothing_of_itself() {
    let stack = Stack::new().await;
    let (key, variables) = (stack.full_key().await, Variables::new(&stack.aws.endpoint_url));
    let path = "/v1/public/me";
    let mut me = RuntimeApi::run("me", &variables).await;
    let mut broken = event(path, path, "", &key);
    broken["rawPath"] = json!([key]);
    let refused = me.invoke(broken).await;
    let error = refused["errorMessage"].as_str().unwrap();
    assert!(error.starts_with("the event cannot be read: line 1, column "), "{refused}");
    let lines = me.lines();
    let [line] = &lines[..] else { panic!("not one line: {}", me.log()) };
    assert_eq!((&line.json["level"], &line.json["message"]), (&json!("ERROR"), &json!("the event cannot be read")));
    assert_eq!(me.invoke(event(path, path, "", &key)).await["statusCode"], 200);
    assert!(!me.log().contains(&key[3..]) && !refused.to_string().contains(&key[3..]), "{}", me.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_shows_in_a_log() {
    let stack = Stack::new().await;
    let variables = Variables::new(&stack.aws.endpoint_url).with(ORIGIN_VARIABLE, "hush-1 hush-2");
    for (function, path) in [("me", "/v1/public/me"), ("openapi", "/docs")] {
        let mut running = RuntimeApi::run(function, &variables).await;
        for (sent, is_accepted) in [("hush-3", false), ("hush-1", true), ("hush-2", true)] {
            let answer = running.invoke(http_event(path, path, "", &json!({ORIGIN_HEADER: sent}))).await;
            assert_eq!(answer["statusCode"] != 403, is_accepted, "{function} {sent}");
        }
        let log = running.log();
        assert!(log.contains("\"status\":403") && !log.contains("hush"), "{log}");
    }
}
