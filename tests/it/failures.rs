//! A store that is stopped, hangs, throttles, answers garbage or loses answers. The service never fails open.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tests::{Fault, HttpReply, PATHS, RunningInstance, Stack, item};
use types::scope::Tier;

/// A 503 must arrive within this time.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// The budget of the keys that these tests use, in requests per minute.
const LIMIT: u32 = Tier::Free.limit();

async fn get(running: &RunningInstance, key: &str, path: &str) -> HttpReply {
    tokio::time::timeout(ANSWER_TIMEOUT, running.client.get(key, path)).await.expect("an answer within three seconds")
}

fn assert_unavailable(reply: &HttpReply, what: &str) {
    assert_eq!(reply.status, 503, "{what}");
    assert_eq!(reply.header("retry-after"), "1", "{what}");
    assert_eq!(reply.header("cache-control"), "no-store");
    assert_eq!(reply.json(), json!({"error": {"code": "service.unavailable", "params": {}}}), "{what}");
}

fn faults() -> Vec<Fault> {
    vec![
        Fault::Refuse,
        Fault::Hang,
        Fault::Error("ProvisionedThroughputExceededException"),
        Fault::Error("ThrottlingException"),
        Fault::Error("InternalServerError"),
        Fault::Error("ResourceNotFoundException"),
        Fault::Error("TransactionConflictException"),
        Fault::Garbage,
        Fault::LoseAnswer,
    ]
}

async fn market() -> Stack {
    let stack = Stack::new().await;
    stack.feed(&[item("ak-47-redline", "skin", Some("AK-47 | Redline"), 1)]).await;
    stack
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_key_write_is_503_everywhere_and_recovery_is_immediate() {
    let stack = market().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    let key = stack.full_key().await;
    for fault in faults() {
        proxy.plan({
            let fault = fault.clone();
            move |operation| if operation == "UpdateItem" { fault.clone() } else { Fault::None }
        });
        let requests = PATHS.iter().map(|(path, _)| get(&running, &key, path));
        for (reply, (path, _)) in join_all(requests).await.iter().zip(PATHS.iter()) {
            assert_unavailable(reply, &format!("{fault:?} on {path}"));
            assert_eq!((reply.rate().0, reply.rate().1), (0, 0));
        }
        proxy.set_fault(Fault::None);
        assert_eq!(get(&running, &key, "/v1/public/me").await.status, 200, "after {fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_read_is_503_with_the_budget_that_the_key_write_showed() {
    let stack = market().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    for fault in [Fault::Refuse, Fault::Hang, Fault::Error("ThrottlingException"), Fault::Garbage] {
        let key = stack.full_key().await;
        running.wait(5);
        proxy.plan({
            let fault = fault.clone();
            move |operation| if operation == "UpdateItem" { Fault::None } else { fault.clone() }
        });
        let reading = || PATHS.iter().map(|(path, _)| path).filter(|path| *path != "/v1/public/me");
        let replies = join_all(reading().map(|path| get(&running, &key, path))).await;
        for (reply, path) in replies.iter().zip(reading()) {
            assert_unavailable(reply, &format!("{fault:?} on {path}"));
            assert_eq!(reply.rate().0, LIMIT);
        }
        assert_eq!(get(&running, &key, "/v1/public/me").await.status, 200, "`/me` reads nothing, so it does not fail");
        proxy.set_fault(Fault::None);
        for path in reading() {
            assert_ne!(get(&running, &key, path).await.status, 503, "{path} after {fault:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_store_gone_the_process_lives_and_answers_503() {
    let stack = Stack::new().await;
    let variables = local::environment::Variables::new(&stack.aws.endpoint_url);
    let key = &stack.full_key().await;
    let clock = Arc::new(types::clock::SystemClock::new());
    let host = local::host::Host::new(&variables, clock).unwrap();
    let instance = local::instance::Instance::start("127.0.0.1:0".parse().unwrap(), &host).await.unwrap();
    let client = tests::Client::new(&instance.base_url);
    assert_eq!(client.get(key, "/v1/public/me").await.status, 200);
    drop(stack);
    for (path, _) in PATHS.iter() {
        let reply = tokio::time::timeout(ANSWER_TIMEOUT, client.get(key, path)).await.unwrap();
        assert_unavailable(&reply, path);
    }
    assert_eq!(client.get(key, "/v1/openapi.json").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_faults_never_admits_one_too_many() {
    let stack = market().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    let key = stack.full_key().await;
    let seed = Arc::new(AtomicU64::new(7));
    proxy.plan(move |operation| {
        // The sequence of faults is fixed. Which call meets which fault depends on the scheduler.
        let drawn = seed.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60;
        match drawn {
            0..=3 if operation == "UpdateItem" => Fault::LoseAnswer,
            4 => Fault::Refuse,
            5 => Fault::Error("ThrottlingException"),
            6 => Fault::Garbage,
            _ => Fault::None,
        }
    });
    let mut admitted = 0;
    for _ in 0..6 {
        let requests = (0..25).map(|_| get(&running, &key, "/v1/public/marketplaces"));
        let replies = join_all(requests).await;
        assert!(replies.iter().all(|reply| [200, 429, 503].contains(&reply.status)));
        admitted += replies.iter().filter(|reply| reply.status == 200).count();
    }
    proxy.set_fault(Fault::None);
    let mut remaining = Vec::new();
    loop {
        let reply = get(&running, &key, "/v1/public/marketplaces").await;
        if reply.status == 429 {
            break;
        }
        remaining.push(reply.rate().1);
    }
    let limit = usize::try_from(LIMIT).unwrap();
    assert!(admitted + remaining.len() <= limit, "{admitted} in the storm, {} after it", remaining.len());
    assert!(remaining.is_sorted_by(|a, b| a > b));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_cannot_be_read_is_500_and_shows_nothing_of_it() {
    let stack = market().await;
    let running = stack.instance().await;
    let store = tests::dynamodb(&stack);
    let scan = store.scan().table_name("marketplace-market").send().await.unwrap();
    let broken = scan.items().iter().find(|item| item["pk"].as_s().unwrap().starts_with("entity#catalog")).unwrap();
    let mut broken = broken.clone();
    broken.insert("data".to_owned(), aws_sdk_dynamodb::types::AttributeValue::S("{\"secret\":".to_owned()));
    store.put_item().table_name("marketplace-market").set_item(Some(broken)).send().await.unwrap();
    let reply = get(&running, &stack.full_key().await, "/v1/public/items/ak-47-redline").await;
    assert_eq!(reply.status, 500);
    assert_eq!(reply.json(), json!({"error": {"code": "service.internal", "params": {}}}));
    assert_eq!((reply.rate(), reply.header("cache-control")), ((LIMIT, LIMIT - 1, 60), "no-store"));
}
