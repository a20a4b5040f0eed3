//! The webhook inbox of `local`.

use std::time::{Duration, Instant};

use common::resources::Queue;
use serde_json::{Value, json};
use tests::{Client, NOON, RunningInstance, Stack, sale, uuid};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn list(client: &Client) -> Vec<Value> {
    let reply = client.send("GET", "/dev/inbox.json", &[]).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, "application/json"));
    reply.json().as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_inbox_keeps_the_newest_deliveries_first_and_drops_old_ones() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    assert_eq!(list(&running.client).await, Vec::<Value>::new());
    let headers = [("x-service-event", "listing.sold"), ("x-service-delivery-id", "d")];
    for path in ["/dev/inbox", "/dev/inbox/shop?a=b"] {
        let reply = running.client.post(path, &headers, "{}").await;
        assert_eq!((reply.status, reply.bytes.len()), (200, 0));
        running.wait(2);
    }
    let kept = list(&running.client).await;
    let shown = |name: &str| kept.iter().map(|delivery| delivery[name].clone()).collect::<Vec<_>>();
    assert_eq!(shown("path"), ["/dev/inbox/shop?a=b", "/dev/inbox"]);
    assert_eq!(shown("received_at"), ["2026-11-20T12:00:02.000Z", NOON]);
    assert_eq!((shown("event")[0].clone(), shown("delivery_id")[0].clone()), (json!("listing.sold"), json!("d")));
    assert_eq!(shown("seen"), [2, 1]);
    assert_eq!(shown("service_signature"), ["unknown", "unknown"]);
    assert_eq!(shown("body"), ["{}", "{}"]);

    for number in 0..200 {
        running.client.post(&format!("/dev/inbox/{number}"), &[], "").await;
    }
    let kept = list(&running.client).await;
    assert_eq!((kept.len(), &kept[0]["path"]), (200, &json!("/dev/inbox/199")));
    assert_eq!((&kept[199]["path"], &kept[0]["seen"]), (&json!("/dev/inbox/0"), &json!(1)), "no id is seen twice");
    let full = "x".repeat(256 * 1024);
    for _ in 0..20 {
        running.client.post("/dev/inbox/full", &[], full.clone()).await;
    }
    assert_eq!(list(&running.client).await.len(), 15, "four megabytes at most, with the headers");
    let other = running.client.send("GET", "/v1/public/me", &[]).await;
    assert_eq!(other.status, 401, "the functions still serve their routes");
    assert_eq!(running.client.send("DELETE", "/dev/inbox", &[]).await.status, 204);
    assert_eq!(list(&running.client).await, Vec::<Value>::new());
}

/// Waits until a delivery shows whose path is this one, and returns it.
async fn shown(client: &Client, path: &str) -> Value {
    loop {
        if let Some(found) = list(client).await.into_iter().find(|delivery| delivery["path"] == path) {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_of_the_stack_itself_is_verified() {
    let (stack, user) = (Stack::new().await, uuid(5).into());
    let (running, _workers) = (stack.instance().await, stack.workers().await);
    let (endpoint, _) = stack.endpoint(user, &format!("{}/dev/inbox/own", running.instance.base_url)).await;
    stack.queue(Queue::Feed).send(&[sale(1, user).to_string()]).await;
    let delivery = shown(&running.client, "/dev/inbox/own").await;
    assert_eq!(delivery["delivery_id"], json!(webhooks::delivery_id(uuid(1).into(), endpoint.id)));
    let verdicts = ["service_signature", "standard_signature", "standard_problem"].map(|name| &delivery[name]);
    assert_eq!(json!(verdicts), json!(["verified", "verified", null]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_inbox_misbehaves_when_asked_to() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let client = &running.client;
    for status in [200, 204, 302, 410, 503, 599] {
        let reply = client.post(&format!("/dev/inbox/status/{status}"), &[], "{}").await;
        assert_eq!((reply.status, reply.bytes.len()), (status, 0));
    }
    for senseless in ["status/199", "status/600", "status/ok", "status/500/", "slow/61", "slow/-1"] {
        assert_eq!(client.post(&format!("/dev/inbox/{senseless}"), &[], "{}").await.status, 400, "{senseless}");
    }
    for good in ["", "/", "/status", "/slow", "/statuses/500", "/x/status/500"] {
        assert_eq!(client.post(&format!("/dev/inbox{good}"), &[], "{}").await.status, 200, "{good}");
    }
    assert_eq!(list(client).await.len(), 18, "all are shown");
    let began = Instant::now();
    assert_eq!(client.post("/dev/inbox/slow/1", &[], "{}").await.status, 200);
    assert!(began.elapsed() >= Duration::from_secs(1));

    let slow = async { client.post("/dev/inbox/slow/60", &[], "{}").await.status };
    tokio::select! {
        status = slow => panic!("answered {status} at once"),
        _ = shown(client, "/dev/inbox/slow/60") => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_deliveries_do_no_harm() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let client = &running.client;
    let script = "</script><script>alert(1)</script>\0\u{1b}\r\n\n\u{202e}";
    let event = ("x-service-event", "<img src=x onerror=alert(1)>");
    let hostile = [script.as_bytes(), b"\xff\xfe"].concat();
    client.post("/dev/inbox/%3Cscript%3E\"'<", &[event], hostile).await;
    let shown = list(client).await.remove(0);
    assert_eq!(shown["body"], format!("{script}\u{fffd}\u{fffd}"));
    assert_eq!(shown["event"], event.1);

    let page = client.send("GET", "/dev/inbox", &[]).await;
    let text = String::from_utf8(page.bytes.clone()).unwrap();
    assert!(!text.contains("alert(1)"), "the page contains nothing that arrived");
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"), "{policy}");
    let nonce = policy.split('\'').find_map(|part| part.strip_prefix("nonce-")).unwrap();
    assert_eq!(text.matches(&format!("nonce=\"{nonce}\"")).count(), 2);
    let json = client.send("GET", "/dev/inbox.json", &[]).await;
    assert_eq!(json.header("x-content-type-options"), "nosniff");

    let kept = client.post("/dev/inbox", &[], vec![0xff; 256 * 1024]).await;
    assert_eq!((kept.status, list(client).await.len()), (200, 2));
    for length in [256 * 1024 + 1, 300 * 1024] {
        assert_eq!(client.post("/dev/inbox", &[], vec![b'x'; length]).await.status, 413, "{length}");
    }
    assert!(answer_to_patient(&running, 8 * 1024 * 1024).await.starts_with("HTTP/1.1 413 "));
    assert_eq!(list(client).await.len(), 2);
}

/// Returns the answer to a sender that writes its whole body before it reads.
async fn answer_to_patient(running: &RunningInstance, length: usize) -> String {
    let address = running.instance.base_url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head =
        format!("POST /dev/inbox HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![b'x'; length]).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}
