//! The binary of every function does its work under the Lambda Runtime API. `infra/arm64/run` runs these tests on the
//! binaries for the architecture that is deployed by default.

mod cases;

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;

use api::routes::{DEFAULT, DESCRIPTION, ROUTES};
use local::environment::Variables;
use serde_json::{Map, Value, json};
use tests::{Administrator, RuntimeApi, Stack, market, marketplace, metadata, quote, uuid};
use types::clock::{Clock, SystemClock};
use types::scope::Scope;

use crate::access::PATHS;

/// A test of one binary. Returns the binary, which still runs.
type Case = fn() -> Pin<Box<dyn Future<Output = RuntimeApi>>>;

/// The functions that have no route.
const WORKERS: [(&str, Case); 6] = [
    ("ingest", || Box::pin(cases::ingest_applies_a_message())),
    ("compact", || Box::pin(cases::compact_writes_a_base())),
    ("webhook", || Box::pin(cases::webhook_posts_to_a_receiver())),
    ("sweep", || Box::pin(cases::sweep_sends_an_overdue_delivery_again())),
    ("account", || Box::pin(cases::account_makes_a_key())),
    ("pretraffic", || Box::pin(cases::pretraffic_tries_every_version())),
];

/// For each function of the API, a text that its answer must contain.
const ANSWERS: [(&str, &str); 9] = [
    ("me", "\"api_key_id\""),
    ("catalog", "AK-47 | Redline"),
    ("item", "AK-47 | Redline"),
    ("prices", "\"5.00\""),
    ("marketplaces", "https://one.example"),
    ("listings", "AK-47 | Redline (Field-Tested)"),
    ("orders", "12.50"),
    ("balance", "\"3.00\""),
    (DEFAULT, "/v1/public/listings"),
];

#[test]
fn every_function_has_a_case() {
    let metadata = metadata();
    let built = metadata["metadata"]["lambda"]["build"]["packages"].as_array().unwrap();
    let cases = WORKERS.iter().map(|(name, _)| *name).chain(ANSWERS.iter().map(|(name, _)| *name));
    assert_eq!(
        cases.collect::<BTreeSet<_>>(),
        built.iter().map(|name| name.as_str().unwrap()).collect::<BTreeSet<_>>()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_of_the_api_answer_from_their_rows() {
    let stack = Stack::new().await;
    let user = uuid(5).into();
    stack.feed(&market(user)).await;
    let variables = Variables::new(&stack.aws.endpoint_url);
    feed_fresh_quote(&variables).await;
    let (key, _) = stack.key_of(user, &Scope::ALL).await;
    for (function, text) in ANSWERS {
        let mut running = RuntimeApi::run(function, &variables).await;
        let answer = running.invoke(request(function, &key)).await;
        assert_eq!(answer["statusCode"], 200, "{function}: {answer}");
        assert!(answer["body"].as_str().unwrap().contains(text), "{function}: {answer}");
        tell_memory(function, &running);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_behind_queues_and_schedules_do_their_work() {
    for (function, case) in WORKERS {
        let running = case().await;
        tell_memory(function, &running);
    }
}

/// Feeds a quote that counts by the clock of the binaries, which is the machine's.
async fn feed_fresh_quote(variables: &Variables) {
    let clock = Arc::new(SystemClock::new());
    let now = clock.now().to_string();
    let messages = [marketplace("two", true, 1), quote(uuid(7), "two", &["5.00"], &now)];
    Administrator::new(variables, clock).feed(&messages).await;
}

/// Returns the event of a request that the function answers with 200.
fn request(function: &str, key: &str) -> Value {
    let route = ROUTES.iter().find(|route| route.function == function).unwrap();
    let keyed = PATHS.iter().map(|(path, _)| *path);
    let path = keyed.chain([DESCRIPTION.path]).find(|path| route.matches(path).is_some()).unwrap();
    let mut event = RuntimeApi::event(route.path, path, "", &json!({"authorization": format!("Bearer {key}")}));
    let parameters = route.matches(path).unwrap().into_iter();
    event["pathParameters"] =
        parameters.map(|(name, value)| (name.to_owned(), json!(value))).collect::<Map<_, _>>().into();
    event
}

/// Prints the memory of a binary, which `infra/arm64/run` reads.
fn tell_memory(function: &str, running: &RuntimeApi) {
    println!("peak memory of {function}: {} kB", running.peak_memory_kb());
}
