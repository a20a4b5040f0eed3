//! The functions' binaries in their init phase: they name what is wrong with their resources before the first event.

use std::collections::BTreeSet;

use local::environment::Variables;
use platform::aws::{Environment, Patience};
use platform::preflight::ResourceKind;
use platform::resources::{BASE_BUCKET_VARIABLE, KEYRING_VARIABLE, Queue, Resources, Table};
use serde_json::json;
use tests::{AwsCall, Fault, LogLine, Proxy, RuntimeApi, Stack, marketctl};

/// A function with its tables, its queues, and whether it needs the bucket or the keyring.
type Needs = (&'static str, &'static [Table], &'static [Queue], &'static [ResourceKind]);

/// Every function that checks resources at its start.
const FUNCTIONS: [Needs; 13] = [
    ("me", &[Table::Keys], &[], &[]),
    ("catalog", &[Table::Keys, Table::Market], &[], &[ResourceKind::Bucket]),
    ("item", &[Table::Keys, Table::Market], &[], &[]),
    ("prices", &[Table::Keys, Table::Market], &[], &[]),
    ("marketplaces", &[Table::Keys, Table::Market], &[], &[]),
    ("listings", &[Table::Keys, Table::Market], &[], &[ResourceKind::Bucket]),
    ("orders", &[Table::Keys, Table::Accounts], &[], &[]),
    ("balance", &[Table::Keys, Table::Accounts], &[], &[]),
    (
        "ingest",
        &[Table::Market, Table::Accounts, Table::Webhooks],
        &[Queue::Feed, Queue::FeedDead, Queue::WebhooksFirst, Queue::WebhooksRetry],
        &[],
    ),
    ("compact", &[Table::Market], &[], &[ResourceKind::Bucket]),
    (
        "webhook",
        &[Table::Webhooks],
        &[Queue::WebhooksRetry, Queue::WebhooksSlow, Queue::WebhooksDead, Queue::Notices],
        &[ResourceKind::Secret],
    ),
    ("sweep", &[Table::Webhooks], &[Queue::WebhooksSlow, Queue::Notices], &[]),
    ("account", &[Table::Keys, Table::Webhooks], &[Queue::WebhooksSlow], &[ResourceKind::Secret]),
];

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
async fn checked(variables: &Variables) -> Vec<String> {
    let report = marketctl(variables, &["--json", "check"], "").await.json();
    let checks = report["checks"].as_array().unwrap().clone();
    checks.iter().filter_map(|check| check["error"].as_str().map(str::to_owned)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_function_names_all_that_it_lacks_in_one_line_as_check_does() {
    let stack = Stack::new().await;
    let variables = Variables::new(&stack.aws.endpoint_url);
    let environment = Environment::read(&|name| variables.get(name)).unwrap();
    let resources = Resources::new(Resources::DEFAULT_STACK);
    let (dynamodb, sqs) = (environment.dynamodb(Patience::Bulk), queues::client(&environment, Patience::Bulk));
    for table in Table::ALL {
        dynamodb.delete_table().table_name(resources.table(table)).send().await.unwrap();
    }
    for queue in Queue::ALL {
        sqs.delete_queue().set_queue_url(variables.get(queue.variable())).send().await.unwrap();
    }
    let secrets = secrets::client(&environment, Patience::Bulk);
    let delete = secrets.delete_secret().secret_id(resources.keyring()).force_delete_without_recovery(true);
    delete.send().await.unwrap();
    let bucket = variables.get(BASE_BUCKET_VARIABLE).unwrap();
    objects::client(&environment, Patience::Bulk).delete_bucket().bucket(&bucket).send().await.unwrap();

    let checked = checked(&variables).await;
    assert_eq!(checked.len(), 4 + 7 + 1 + 1);
    for (function, tables, queues, others) in FUNCTIONS {
        let tables = tables.iter().map(|table| format!("table {} does not exist", resources.table(*table)));
        let queues = queues.iter().map(|queue| format!("queue {} does not exist", resources.queue(*queue)));
        let others = others.iter().map(|kind| {
            let name = if *kind == ResourceKind::Bucket { bucket.clone() } else { resources.keyring() };
            format!("{} {name} does not exist", kind.as_str())
        });
        let expected: BTreeSet<String> = tables.chain(queues).chain(others).collect();
        assert_eq!(problems(function, &variables).await, expected, "{function}");
        for problem in expected {
            assert!(checked.iter().any(|sentence| sentence.starts_with(&problem)), "{problem}: {checked:?}");
        }
    }
    // `openapi` uses no resources.
    RuntimeApi::run("openapi", &variables).await.ready().await;
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

    let secrets = secrets::client(&Environment::read(&|name| variables.get(name)).unwrap(), Patience::Bulk);
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
    all.set_fault(Fault::Error(code));
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
    assert!(checked.iter().any(|sentence| sentence.starts_with(&expected)), "{checked:?}");
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
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let variables = Variables::new(&proxy.url);
    for code in ["AccessDeniedException", "UnrecognizedClientException"] {
        for (function, operation) in [
            ("me", "UpdateItem"),
            ("orders", "GetItem"),
            ("ingest", "BatchGetItem"),
            ("compact", "GetObject"),
            ("webhook", "GetSecretValue"),
            ("sweep", "Query"),
        ] {
            let mut denied = 0;
            proxy.plan(move |called| {
                let is_denied = called == operation && denied < 2;
                denied += usize::from(is_denied);
                if is_denied { Fault::Error(code) } else { Fault::None }
            });
            RuntimeApi::run(function, &variables).await.ready().await;
            let asked = proxy.take_operations().iter().filter(|called| *called == operation).count();
            assert!(asked >= 3, "{function} asked {asked} times");
        }
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
    for (function, absent) in [("ingest", ["table no-table", first]), ("account", ["table no-table", slow])] {
        let mut running = RuntimeApi::run(function, &without_table).await;
        running.ready().await;
        let [LogLine { json: line }] = &running.lines()[..] else { panic!("{function}: {}", running.log()) };
        let told = absent.map(|resource| format!("{resource} does not exist")).join("; ");
        assert_eq!((&line["message"], &line["problems"]), (&json!("not ready yet"), &json!(told)), "{function}");
    }
    for function in ["webhook", "sweep"] {
        let told = problems(function, &variables).await;
        assert_eq!(told, BTreeSet::from([slow, notices].map(|queue| format!("{queue} does not exist"))), "{function}");
        let slow_lane = Variables::new(&stack.aws.endpoint_url).get(Queue::WebhooksSlow.variable()).unwrap();
        let variables = variables.clone().with(Queue::WebhooksSlow.variable(), &slow_lane);
        let mut running = RuntimeApi::run(function, &variables).await;
        running.ready().await;
        let [LogLine { json: line }] = &running.lines()[..] else { panic!("{function}: {}", running.log()) };
        assert_eq!(line["problems"], json!(format!("{notices} does not exist")), "{function}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_temporary_problem_does_not_keep_a_function_from_starting() {
    let stack = Stack::new().await;
    let key = stack.full_key().await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let variables = Variables::new(&proxy.url);
    let faults = [
        Fault::Refuse,
        Fault::Hang,
        Fault::Garbage,
        Fault::Error("ThrottlingException"),
        Fault::Error("ProvisionedThroughputExceededException"),
        Fault::Error("InternalServerError"),
    ];
    for fault in faults {
        for function in ["me", "catalog", "ingest", "webhook", "compact", "sweep", "account"] {
            proxy.set_fault(fault.clone());
            let mut running = RuntimeApi::run(function, &variables).await;
            running.ready().await;
            let mut lines = running.lines();
            // A load that takes long says why.
            lines.retain(|line| line.json["message"] != "the load goes on after a pause");
            let [LogLine { json: line }] = lines.as_slice() else { panic!("{function}: {}", running.log()) };
            assert_eq!((&line["level"], &line["message"]), (&json!("WARN"), &json!("not ready yet")), "{function}");
            assert!(line["problems"].as_str().unwrap().contains(" cannot be reached ("), "{function}: {line}");

            proxy.set_fault(Fault::None);
            if ["me", "catalog"].contains(&function) {
                let headers = json!({"authorization": format!("Bearer {key}")});
                let answer = running.invoke(RuntimeApi::event("/x", "/x", "", &headers)).await;
                assert_eq!(answer["statusCode"], 200, "{function} after {fault:?}: {answer}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_check_at_start_takes_one_round_trip_and_opens_the_connections_of_the_first_request() {
    let stack = Stack::new().await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let variables = Variables::new(&proxy.url);
    // Long enough for calls that are sent together to overlap on a busy machine, and well below the time-out of an
    // attempt.
    proxy.set_fault(Fault::Slow(std::time::Duration::from_millis(500)));
    for (function, tables, queues, others) in FUNCTIONS {
        let connections = proxy.connections();
        RuntimeApi::run(function, &variables).await.ready().await;
        let calls = proxy.take_calls();
        let checks = tables.len() + queues.len() + others.len();
        assert!(calls.len() >= checks, "{function}: {calls:?}");
        // `catalog` and `listings` also load their replica, in several round trips.
        if !["catalog", "listings"].contains(&function) {
            assert_eq!(AwsCall::round_trips(&calls), 1, "{function}: {calls:?}");
            assert_eq!(proxy.connections() - connections, calls.len(), "{function}");
        }
    }
}
