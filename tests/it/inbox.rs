//! The webhook inbox of `local`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use http::request::Parts;
use local::inbox::{Inbox, SecretSource};
use local::server::Server;
use secrets::{EndpointSecret, service_signature, standard_signature};
use serde_json::{Value, json};
use tests::{Client, NOON, RunningInstance, Stack};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use types::clock::{Clock, SystemClock};

/// Reads Server-Sent Events as they come.
struct Follower {
    response: reqwest::Response,
    read: Vec<u8>,
}

impl Follower {
    async fn connect(client: &Client, last: Option<&str>) -> Self {
        let headers: Vec<_> = last.into_iter().map(|id| ("last-event-id", id)).collect();
        let response = client.open("GET", "/dev/inbox/events", &headers, "").await;
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, read: Vec::new() }
    }

    /// Returns the id, the name and the data of the next event.
    async fn next(&mut self) -> [String; 3] {
        loop {
            if let Some(end) = self.read.windows(2).position(|pair| pair == b"\n\n") {
                let event = String::from_utf8(self.read.drain(..end + 2).collect()).unwrap();
                return ["id", "event", "data"].map(|name| {
                    let line = event.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
                    line.unwrap_or_else(|| panic!("no {name} in {event}")).to_owned()
                });
            }
            let chunk = tokio::time::timeout(Duration::from_secs(10), self.response.chunk()).await.unwrap();
            self.read.extend(chunk.unwrap().unwrap());
        }
    }

    async fn assert_emptied(&mut self) {
        assert_eq!(self.next().await[1], "emptied");
    }

    async fn delivery(&mut self) -> Value {
        let [_, name, data] = self.next().await;
        assert_eq!(name, "delivery");
        serde_json::from_str(&data).unwrap()
    }
}

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
    let shown = |delivery: &Value| {
        let names = ["path", "received_at", "event", "delivery_id", "seen", "service_signature", "body"];
        json!(names.map(|name| delivery[name].clone()))
    };
    let kept: Vec<_> = list(&running.client).await.iter().map(shown).collect();
    let later = "2026-11-20T12:00:02.000Z";
    assert_eq!(kept[0], json!(["/dev/inbox/shop?a=b", later, "listing.sold", "d", 2, "unknown", "{}"]));
    assert_eq!(kept[1], json!(["/dev/inbox", NOON, "listing.sold", "d", 1, "unknown", "{}"]));

    for number in 0..200 {
        running.client.post(&format!("/dev/inbox/{number}"), &[], "").await;
    }
    let kept = list(&running.client).await;
    assert_eq!((kept.len(), &kept[0]["path"]), (200, &json!("/dev/inbox/199")));
    assert_eq!(kept[199]["path"], "/dev/inbox/0");
    let other = running.client.send("GET", "/v1/public/me", &[]).await;
    assert_eq!(other.status, 401, "the functions still serve their routes");
    assert_eq!(running.client.send("DELETE", "/dev/inbox", &[]).await.status, 204);
    assert_eq!(list(&running.client).await, Vec::<Value>::new());
}

/// Knows one secret, which belongs to one path.
struct OneSecret(EndpointSecret);

impl SecretSource for OneSecret {
    fn secrets_for<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Vec<EndpointSecret>> {
        let known = (head.uri.path() == "/dev/inbox/known").then(|| self.0.clone());
        ready(known.into_iter().collect()).boxed()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn signatures_are_verified_where_a_secret_is_known() {
    let secret = EndpointSecret::from_bits([7; 32]);
    let clock = Arc::new(SystemClock::new());
    let inbox = Arc::new(Inbox::new(Arc::new(OneSecret(secret.clone())), clock.clone()));
    let listener = Server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let server = Server::start(listener, move |request| {
        let inbox = Arc::clone(&inbox);
        async move { inbox.answer(request).await }
    });
    let (server, body) = (server.unwrap(), r#"{"name": "Ünï"}"#);
    let client = Client::new(&server.url());
    let statuses = async |path: &str, secret: &EndpointSecret, age_seconds: i64| {
        let sent_at = clock.now().plus_millis(-1_000 * age_seconds);
        let headers = [
            ("x-service-signature", &*service_signature(secret, body.as_bytes())),
            ("webhook-id", "id"),
            ("webhook-timestamp", &sent_at.seconds().to_string()),
            ("webhook-signature", &standard_signature([secret], "id", sent_at, body.as_bytes())),
        ];
        assert_eq!(client.post(path, &headers, body).await.status, 200);
        let newest = &list(&client).await[0];
        json!([newest["service_signature"], newest["standard_signature"], newest["standard_problem"]])
    };
    let (known, other) = ("/dev/inbox/known?a=b", EndpointSecret::from_bits([8; 32]));
    assert_eq!(statuses(known, &secret, 0).await, json!(["verified", "verified", null]));
    assert_eq!(statuses(known, &other, 0).await, json!(["wrong", "wrong", null]));
    assert_eq!(statuses(known, &secret, 600).await, json!(["verified", "wrong", "too old"]));
    assert_eq!(statuses("/dev/inbox", &secret, 0).await, json!(["unknown", "unknown", null]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_is_shown_live_as_it_arrives() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let client = running.client.clone();
    let mut follower = Follower::connect(&client, None).await;
    follower.assert_emptied().await;
    client.post("/dev/inbox/1", &[], "line\nbreak\r").await;
    let [first, _, data] = follower.next().await;
    let shown: Value = serde_json::from_str(&data).unwrap();
    assert_eq!((shown["path"].clone(), shown["body"].clone()), (json!("/dev/inbox/1"), json!("line\nbreak\r")));
    assert_eq!(shown, list(&client).await[0], "the same as in the list");
    client.post("/dev/inbox/2", &[], "").await;
    assert_eq!(follower.delivery().await["path"], "/dev/inbox/2");

    let mut again = Follower::connect(&client, Some(&first)).await;
    assert_eq!(again.delivery().await["path"], "/dev/inbox/2", "only what was missed");
    let mut fresh = Follower::connect(&client, Some("nonsense")).await;
    fresh.assert_emptied().await;
    assert_eq!(fresh.delivery().await["path"], "/dev/inbox/1");

    client.send("DELETE", "/dev/inbox", &[]).await;
    client.post("/dev/inbox/3", &[], "").await;
    for mut follower in [follower, again] {
        follower.assert_emptied().await;
        assert_eq!(follower.delivery().await["path"], "/dev/inbox/3");
    }
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
    for senseless in ["/dev/inbox/status/600", "/dev/inbox/slow/61"] {
        assert_eq!(client.post(senseless, &[], "{}").await.status, 400);
    }
    assert_eq!(list(client).await.len(), 8, "all are shown");
    let began = Instant::now();
    assert_eq!(client.post("/dev/inbox/slow/1", &[], "{}").await.status, 200);
    assert!(began.elapsed() >= Duration::from_secs(1));

    client.send("DELETE", "/dev/inbox", &[]).await;
    let mut follower = Follower::connect(client, None).await;
    follower.assert_emptied().await;
    let slow = async { client.post("/dev/inbox/slow/60", &[], "{}").await.status };
    tokio::select! {
        status = slow => panic!("answered {status} at once"),
        delivery = follower.delivery() => assert_eq!(delivery["path"], "/dev/inbox/slow/60"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_deliveries_do_no_harm() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let client = &running.client;
    let mut follower = Follower::connect(client, None).await;
    follower.assert_emptied().await;
    let script = "</script><script>alert(1)</script>\0\u{1b}\r\n\n\u{202e}";
    let event = ("x-service-event", "<img src=x onerror=alert(1)>");
    let hostile = [script.as_bytes(), b"\xff\xfe"].concat();
    client.post("/dev/inbox/%3Cscript%3E\"'<", &[event], hostile).await;
    let shown = follower.delivery().await;
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
    let head = format!("POST /dev/inbox HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![b'x'; length]).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn other_methods_are_refused() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    for (path, allow, refused) in [
        ("/dev/inbox", "GET, HEAD, POST, DELETE", &["PUT", "PATCH", "OPTIONS", "TRACE", "SPAM"][..]),
        ("/dev/inbox.json", "GET, HEAD", &["POST", "DELETE", "OPTIONS"]),
        ("/dev/inbox/events", "GET, POST", &["HEAD", "DELETE", "PUT"]),
        ("/dev/inbox/status/503", "POST", &["GET", "DELETE", "PUT"]),
        ("/dev/inbox/", "POST", &["GET", "DELETE"]),
    ] {
        for method in refused {
            let reply = running.client.send(method, path, &[]).await;
            assert_eq!((reply.status, reply.header("allow")), (405, allow), "{method} {path}");
        }
    }
    assert_eq!(list(&running.client).await, Vec::<Value>::new());
    let head = running.client.send("HEAD", "/dev/inbox", &[]).await;
    assert_eq!((head.status, head.bytes.len()), (200, 0));
}
