//! Commands of `marketctl` whose tests need a stack of their own.
//!
//! Deliveries, managed with `marketctl`.
//!
//! The program `local`, as scripts use it, and the comparison of webhook servers that `bench` makes.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use aws_sdk_dynamodb::types::AttributeValue;
use bytes::Bytes;
use common::aws::{Environment, Patience};
use common::clock::{Clock, SystemClock};
use common::event::EventKind;
use common::resources::Queue;
use common::timestamp::Timestamp;
use feed::MAX_MESSAGE_BYTES;
use futures_util::future::join_all;
use local::environment::Variables;
use serde_json::{Value, json};
use tests::webhooks_cli::{OWNER, WebhooksCli, text};
use tests::{
    Answer, Client, Fault, Proxy, Receiver, Stack, TestQueue, base_bucket, binary, listing, local, marketctl,
    to_loopback, until, uuid,
};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use webhooks::delivery::{Delivery, Lane, Progress, Status};

fn variables(stack: &Stack) -> Variables {
    Variables::new(&stack.aws.endpoint_url)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_waits_for_a_store_that_is_away_and_then_goes_on() {
    let stack = Stack::new().await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    // From the first write on, until the tables were looked at in vain by every way in which an import does so.
    let (mut has_begun, mut looks) = (false, 0);
    proxy.plan(move |operation| {
        has_begun |= operation == "TransactWriteItems";
        looks += usize::from(has_begun && operation == "DescribeTable");
        if has_begun && looks < 12 { Fault::Refuse } else { Fault::None }
    });
    let lines: Vec<_> =
        (1..=30).map(|n| listing(n, "1.00", "2026-11-20T10:00:00Z", 1).to_string()).chain(["{}".to_owned()]).collect();
    let run = marketctl(&Variables::new(&proxy.url), &["--json", "import", "-"], &lines.join("\n")).await;
    let report = run.json();
    assert_eq!((&report["applied"], &report["unchanged"]), (&json!(30), &json!(0)), "{run:?}");
    assert_eq!((report["refused"].as_array().unwrap().len(), report.get("not_stored")), (1, None), "{run:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn feed_send_takes_everything_that_the_feed_reads_and_names_the_rest_by_line() {
    let stack = Stack::new().await;
    let queue = stack.queue(Queue::Feed);
    let good = listing(1, "1.00", "2026-11-20T10:00:00Z", 1).to_string();
    let bad = ["nonsense".to_owned(), "{}".to_owned(), "x".repeat(MAX_MESSAGE_BYTES)];
    let long = "z".repeat(MAX_MESSAGE_BYTES + 1);
    let lines = [&[good.clone(), String::new(), " ".to_owned()], &bad[..], &[long, good.clone()]].concat();
    let run = marketctl(&variables(&stack), &["--json", "feed", "send", "-"], &lines.join("\n")).await;
    assert_eq!(run.code, 1, "{run:?}");
    let refused = json!([{"line": 7, "reason": format!("must have at most {MAX_MESSAGE_BYTES} bytes")}]);
    assert_eq!(run.json(), json!({"sent": 5, "refused": refused}));
    assert_eq!(queue.count().await, 5);

    let _workers = stack.workers().await;
    queue.wait_until_empty().await;
    let mut bodies: Vec<_> =
        stack.queue(Queue::FeedDead).take_all_letters().await.into_iter().map(|letter| letter.body).collect();
    bodies.sort();
    let mut expected = bad.to_vec();
    expected.sort();
    assert!(bodies == expected, "{} dead letters", bodies.len());
    let running = stack.instance().await;
    assert_eq!(running.client.get(&stack.full_key().await, "/v1/public/listings").await.json()["total"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn feed_send_says_when_there_is_no_queue_and_sends_long_files() {
    let stack = Stack::new().await;
    let lines = vec!["{}"; 10_000].join("\n");
    let run = marketctl(&variables(&stack), &["feed", "send", "-"], &lines).await;
    assert_eq!((run.code, run.stdout.trim()), (0, "10000 sent."), "{run:?}");
    assert_eq!(stack.queue(Queue::Feed).count().await, 10_000);
    tests::table_without_indexes(&stack, "bare-keys").await;
    let run = marketctl(&variables(&stack), &["--stack", "bare", "feed", "send", "-"], &lines).await;
    assert_eq!((run.code, run.stdout.trim()), (1, "Nothing was sent."), "{run:?}");
    assert!(run.stderr.contains("nothing was sent: queue bare-feed does not exist"), "{run:?}");
    let run = marketctl(&variables(&stack), &["feed", "send"], "").await;
    assert_eq!(run.code, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn check_counts_what_waits_warns_of_dead_letters_and_knows_what_no_deployment_brings_back() {
    let stack = Stack::new().await;
    stack.queue(Queue::FeedDead).send(&["{}".to_owned(), "{}".to_owned()]).await;
    let run = marketctl(&variables(&stack), &["--json", "check"], "").await;
    assert_eq!(run.code, 0, "{run:?}");
    let report = run.json();
    let check = |name: &str| report["checks"].as_array().unwrap().iter().find(|check| check["name"] == name).unwrap();
    let dead = check("marketplace-feed-dead");
    assert_eq!((&dead["ok"], &dead["messages"]), (&json!(true), &json!(2)));
    let warning = dead["warning"].as_str().unwrap();
    assert!(warning.starts_with("marketplace-feed-dead holds 2 dead letters"), "{warning}");
    let live = check("marketplace-feed");
    assert_eq!((&live["messages"], &live["warning"]), (&json!(0), &Value::Null));
    assert!(marketctl(&variables(&stack), &["check"], "").await.stdout.contains(warning));

    let other = marketctl(&variables(&stack), &["--stack", "other", "check"], "").await;
    let keyring = other.stderr.lines().find(|line| line.contains("other-keyring")).unwrap();
    assert!(other.code == 1 && keyring.contains("aws secretsmanager restore-secret"), "{other:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_for_a_delivery_learns_how_its_attempt_ended() {
    let stack = Stack::new().await;
    let (cli, _workers) = (WebhooksCli::new(&stack), stack.workers_in_real_time(to_loopback(1)).await);
    let receiver = Receiver::start(|number, _| Answer::Status(if number == 1 { 500 } else { 204 })).await;
    let (endpoint, _) = stack.endpoint(OWNER.parse().unwrap(), &receiver.url).await;
    let failed = cli.run(&format!("test {} --wait --json", endpoint.id)).await;
    assert_eq!((failed.code, &failed.json()["status"]), (1, &json!("failed")), "{failed:?}");
    assert!(failed.stderr.contains("was not acknowledged"), "{failed:?}");
    let resent = cli.done(&format!("resend {} --wait", text(&failed.json()["id"]))).await;
    assert_eq!((&resent["status"], &resent["round"]), (&json!("delivered"), &json!(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_delivery_is_listed_shown_and_sent_again() {
    let stack = Stack::new().await;
    let cli = WebhooksCli::new(&stack);
    let (id, secret) = cli.add(OWNER).await;
    let first = text(&cli.done(&format!("test {id}")).await["delivery_id"]);
    let second = text(&cli.done(&format!("test {id} --event wallet.deposit")).await["delivery_id"]);
    assert_eq!((waiting(&stack, Lane::First).await, waiting(&stack, Lane::Slow).await), (0, 1));

    let deliveries = cli.done(&format!("deliveries {id}")).await;
    let row = |delivery: &str, event: &str, at: &Value| {
        json!({"user_id": OWNER, "delivery_id": delivery, "id": delivery, "endpoint_id": id, "event": event,
            "status": "pending", "attempts": 0,
            "created_at": at, "next_attempt_at": at, "waits_for": "turn", "test": true})
    };
    let at = [0, 1].map(|number| deliveries[number]["created_at"].clone());
    assert!(text(&at[0]) > text(&at[1]));
    assert_eq!(deliveries, json!([row(&second, "wallet.deposit", &at[0]), row(&first, "listing.sold", &at[1])]));
    assert_eq!(cli.done(&format!("deliveries {id} --limit 1")).await, json!([deliveries[0]]));
    assert_eq!(cli.done(&format!("deliveries {id} --status pending")).await, deliveries);
    assert_eq!(cli.done(&format!("deliveries {id} --status failed")).await, json!([]));
    assert_eq!(cli.done(&format!("deliveries {id} --event wallet.deposit")).await, json!([deliveries[0]]));
    assert_eq!(cli.done(&format!("deliveries {id} --since {}", text(&at[0]))).await, json!([deliveries[0]]));
    assert_eq!(cli.done(&format!("deliveries {id} --until {}", text(&at[0]))).await, json!([deliveries[1]]));
    let shown = cli.done(&format!("show-endpoint {id}")).await;
    assert_eq!((&shown["health"]["waiting"], &shown["health"]["oldest_waiting_at"]), (&json!(2), &at[1]));

    let show = format!("show {first}");
    let shown = cli.done(&show).await;
    let body: Value = serde_json::from_str(shown["body"].as_str().unwrap()).unwrap();
    assert_eq!((&body["id"], &body["event"]), (&json!(first), &json!("listing.sold")));
    let expected = json!({"user_id": OWNER, "delivery_id": first, "id": first, "endpoint_id": id,
        "event": "listing.sold", "status": "pending",
        "failure": null, "attempts": [], "attempts_dropped": 0, "next_attempt_at": at[1], "waits_for": "turn",
        "created_at": at[1], "round": 1, "test": true, "body": shown["body"]});
    assert_eq!(shown, expected);

    assert_eq!(cli.done(&format!("resend {first}")).await, json!({"delivery_id": first}));
    assert_eq!((waiting(&stack, Lane::First).await, waiting(&stack, Lane::Slow).await), (0, 1));
    assert_eq!(cli.done(&show).await["round"], 2);

    cli.done(&format!("disable {id}")).await;
    let off = format!("endpoint {id} is disabled");
    assert_eq!(cli.refused(&format!("resend {first}")).await, off);
    for line in [format!("list --user {OWNER}"), show.clone(), format!("deliveries {id}")] {
        let (people, programs) = (cli.run(&line).await, cli.run(&format!("{line} --json")).await);
        let printed = format!("{people:?}{programs:?}");
        assert!(!printed.contains("whsec_") && !printed.contains(&secret[6..]), "{printed}");
    }

    assert_eq!(cli.done(&format!("remove {id}")).await, json!({"id": id, "ended_deliveries": 2, "unfinished": false}));
    let ended = cli.done(&show).await;
    assert_eq!(
        (&ended["status"], &ended["failure"], &ended["next_attempt_at"]),
        (&json!("failed"), &json!("endpoint_removed"), &Value::Null)
    );
    assert_eq!(cli.done(&format!("deliveries {id} --status failed")).await.as_array().unwrap().len(), 2);
    assert_eq!(cli.refused(&format!("resend {first}")).await, format!("endpoint {id} was removed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_deliveries_of_an_outage_are_counted_and_then_sent_again_with_one_command() {
    let stack = Stack::new().await;
    let cli = WebhooksCli::new(&stack);
    let (id, _) = cli.add(OWNER).await;
    cli.done(&format!("disable {id}")).await;
    let statuses = [Status::Held, Status::Held, Status::Failed, Status::Failed, Status::Delivered];
    let at = store(&stack, &id, &statuses).await;
    let listed = cli.done(&format!("list --user {OWNER}")).await[0]["health"].take();
    assert_eq!((&listed["held"], &listed["failed"]), (&json!(2), &json!(2)));
    let document = |found: [u64; 2], span: [usize; 2], dry_run: bool| {
        let total = found.iter().sum::<u64>();
        let (sent, left) = if dry_run { (0, total) } else { (total, 0) };
        json!({"endpoint_id": id, "dry_run": dry_run, "held": found[0], "failed": found[1], "pending": 0, "oldest": at[span[0]],
            "newest": at[span[1]], "sent": sent, "skipped": {"changed": 0, "too_many_rounds": 0, "too_many_rounds_today": 0, "expired": 0},
            "left": left})
    };
    let resend = format!("resend --endpoint {id}");
    assert_eq!(cli.done(&format!("{resend} --dry-run")).await, document([2, 2], [0, 3], true));
    let held = format!("{resend} --status held --since {} --dry-run", at[1]);
    assert_eq!(cli.done(&held).await, document([1, 0], [1, 1], true));
    assert_eq!(cli.refused(&resend).await, format!("endpoint {id} is disabled"));
    assert_eq!(waiting(&stack, Lane::Slow).await, 0);

    cli.done(&format!("enable {id}")).await;
    assert_eq!(cli.done(&format!("{resend} --status held")).await, document([2, 0], [0, 1], false));
    let before_last = cli.done(&format!("{resend} --until {}", at[3])).await;
    assert_eq!(before_last, document([0, 1], [2, 2], false));
    let people = cli.run(&resend).await;
    assert_eq!((people.code, people.stderr.as_str()), (0, ""), "{people:?}");
    assert!(people.stdout.contains("had 0 held, 1 failed and 0 pending deliveries"), "{people:?}");
    assert!(people.stdout.contains("Queued: 1."), "{people:?}");
    assert_eq!(waiting(&stack, Lane::Slow).await, 1);

    let nothing = cli.run(&resend).await;
    assert_eq!((nothing.code, nothing.stdout.contains("has no such deliveries")), (0, true), "{nothing:?}");
    let empty = format!("{resend} --since {} --until {}", at[1], at[1]);
    let run = cli.run(&empty).await;
    assert!(run.code == 2 && run.stderr.contains("invalid value for '--since': must be before until"), "{run:?}");
    for wrong in ["--status delivered", "--since yesterday"] {
        let run = cli.run(&format!("{resend} {wrong}")).await;
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{wrong}: {run:?}");
    }
}

/// Stores deliveries to an endpoint with these statuses, each created a second after the one before. Returns the times.
async fn store(stack: &Stack, endpoint: &str, statuses: &[Status]) -> Vec<Timestamp> {
    let (admin, mut at) = (stack.webhooks(), SystemClock::new().now().plus_millis(-60_000));
    let mut times = Vec::new();
    for (number, status) in (1..).zip(statuses) {
        at = at.plus_millis(1_000);
        let id = uuid(number).into();
        let delivery = Delivery {
            id,
            endpoint_id: endpoint.parse().unwrap(),
            account_id: OWNER.parse().unwrap(),
            event: EventKind::ListingSold,
            event_id: None,
            is_test: false,
            created_at: at,
            body: "{}".to_owned(),
            progress: Progress::new(id, *status, at, at),
        };
        admin.store.put_delivery(&delivery).await.unwrap();
        times.push(at);
    }
    times
}

/// How many messages are in a delivery queue.
async fn waiting(stack: &Stack, lane: Lane) -> u64 {
    let queue = Queue::LANES[Lane::ALL.iter().position(|one| *one == lane).unwrap()];
    stack.queue(queue).visible_count().await
}

const OWN_AWS: [&str; 2] = ["--aws-listen", "127.0.0.1:0"];

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_market_is_kept_in_a_folder_and_made_only_once() {
    let folder = tempfile::tempdir().unwrap();
    let data = ["--data", folder.path().to_str().unwrap()];
    let mut keys = Vec::new();
    for _ in 0..2 {
        let (mut child, ready) = local(&[&OWN_AWS[..], &data].concat()).await;
        let names: Vec<&str> = ready.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, ["api_key", "aws_endpoint_url", "base_url", "env", "user_id", "version"]);
        let client = Client::new(ready["base_url"].as_str().unwrap());
        let key = ready["api_key"].as_str().unwrap().to_owned();
        let get = async |path: &str| client.get(&key, path).await.json();
        assert_eq!(get("/v1/public/me").await["user_id"], ready["user_id"]);
        // On a busy machine these may be 503 at first.
        until(async || get("/v1/public/catalog").await["total"].as_u64(), |total| *total >= Some(2_000)).await;
        until(async || get("/v1/public/listings").await["total"].clone(), |total| *total == 20_000).await;
        assert_eq!(get("/v1/public/orders").await["total"], 300);
        assert_eq!(get("/v1/public/marketplaces").await.as_array().unwrap().len(), 5);
        assert_ne!(get("/v1/public/wallet/balance").await["available_usd"], "0.00");
        keys.push(key);
        child.kill().await.unwrap();
    }
    assert_eq!(keys[0], keys[1], "a start uses the keys of the one before");
    let mode = std::fs::metadata(folder.path().join("demo-keys")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_aws_side_alone_serves_a_second_process() {
    let (_aws, ready) = local(&[&OWN_AWS[..], &["--aws-only", "--empty"]].concat()).await;
    assert_eq!((&ready["base_url"], &ready["api_key"], &ready["user_id"]), (&Value::Null, &Value::Null, &Value::Null));
    let endpoint = ready["aws_endpoint_url"].as_str().unwrap();
    assert_eq!(ready["env"]["AWS_ENDPOINT_URL"], endpoint);
    for name in
        ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "KEYS_TABLE", "MARKET_TABLE", "FEED_QUEUE_URL"]
    {
        assert!(ready["env"][name].is_string(), "{name}");
    }
    let (_functions, second) =
        local(&["--aws-endpoint", endpoint, "--clock-offset-s", "-30", "--store-latency-ms", "1"]).await;
    assert_eq!((&second["api_key"], &second["user_id"]), (&Value::Null, &Value::Null));
    let client = Client::new(second["base_url"].as_str().unwrap());
    let reply = client.send("GET", "/v1/public/me", &[]).await;
    assert_eq!((reply.status, reply.json()["error"]["code"].clone()), (401, json!("api_keys.missing")));
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_in_the_feed_are_applied_before_the_process_ends_and_its_folder_keeps_all() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [&OWN_AWS[..], &["--data", folder.path().to_str().unwrap(), "--empty"]].concat();
    let (mut child, ready) = local(&arguments).await;
    let variables = Variables::new(ready["aws_endpoint_url"].as_str().unwrap());
    let messages: Vec<_> = (1..=500).map(|n| listing(n, "1.00", "2026-11-20T10:00:00Z", 1).to_string()).collect();
    let queue = TestQueue::new(&variables, Queue::Feed);
    queue.send(&messages).await;
    assert!(queue.count().await > 0, "there is something to drain");
    let object = Bytes::from_static(b"kept");
    base_bucket(ready["aws_endpoint_url"].as_str().unwrap()).put("listings/a b/1", object.clone()).await.unwrap();
    let pid = child.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().await.unwrap().success());
    assert_eq!(child.wait().await.unwrap().code(), Some(0));

    let (_child, ready) = local(&arguments).await;
    let bucket = base_bucket(ready["aws_endpoint_url"].as_str().unwrap());
    assert_eq!(bucket.get("listings/a b/1").await.unwrap(), Some(object));
    let create = ["--json", "keys", "create", "--user", &tests::uuid(1).to_string(), "--scope", "listings:read"];
    let variables = Variables::new(ready["aws_endpoint_url"].as_str().unwrap());
    let key = tests::marketctl(&variables, &create, "").await.json();
    let client = Client::new(ready["base_url"].as_str().unwrap());
    let listings = client.get(key["api_key"].as_str().unwrap(), "/v1/public/listings").await.json();
    assert_eq!(listings["total"], 500);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_limits_of_aws_it_prints_what_dynamodb_refuses() {
    let mut program = Command::new(binary("local"));
    program.args(OWN_AWS).args(["--aws-only", "--empty", "--json", "--aws-limits"]);
    let mut child = program.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let ready = BufReader::new(child.stdout.take().unwrap()).lines().next_line().await.unwrap().unwrap();
    let ready: Value = serde_json::from_str(&ready).unwrap();
    let variables = Variables::new(ready["aws_endpoint_url"].as_str().unwrap());
    let client = Environment::read(&|name| variables.get(name)).unwrap().dynamodb(Patience::Request);
    // Each costs about 300 of the 1,000 units that the partition has per second. Together they leave it in debt.
    let put = |sk: usize| {
        let s = AttributeValue::S;
        let row = [("pk", s("big#1".to_owned())), ("sk", s(sk.to_string())), ("text", s("x".repeat(300_000)))];
        let row: HashMap<String, AttributeValue> = row.map(|(name, value)| (name.to_owned(), value)).into();
        client.put_item().table_name("marketplace-market").set_item(Some(row)).send()
    };
    join_all((0..12).map(put)).await;
    let _ = put(12).await;
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let expected = "PutItem in marketplace-market big: over the write units of the partition";
    while !lines.next_line().await.unwrap().expect("a line about the refusal").contains(expected) {}
}

/// The example of an adapter, in the place of the other webhook server.
const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../infra/bench/peer/sender.py");

#[tokio::test(flavor = "multi_thread")]
async fn the_functions_and_another_server_take_turns_under_the_same_load() {
    let mut bench = Command::new(binary("bench"));
    bench.args(["webhooks", "--json", "--events", "90", "--endpoints", "4", "--stores", "2", "--pairs", "2"]);
    bench.args(["--peer", &format!("exec python3 '{EXAMPLE}'")]);
    let output = bench.kill_on_drop(true).output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["stores"], 2);
    assert_eq!(report["endpoints"], 4);
    let pairs = report["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 2);
    for pair in pairs {
        assert_eq!(pair["functions"]["events"], 90);
        assert_eq!(pair["peer"]["events"], 90);
        assert_eq!(pair["peer"]["arrived"], 90);
        assert!(pair["functions"]["bill"]["calls"]["SendMessageBatch"].as_u64() > Some(0), "{pair}");
    }
}
