//! The webhook inbox of `local`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::clock::{Clock, SystemClock};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use http::request::Parts;
use local::inbox::{Inbox, SecretSource};
use local::server::Server;
use serde_json::{Value, json};
use tests::{Client, NOON, RunningInstance, Stack};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use webhooks::secrets::{EndpointSecret, service_signature, standard_signature};

/// Reads Server-Sent Events as they come.
struct Follower {
    response: reqwest::Response,
    read: Vec<u8>,
}

/// A Server-Sent Event.
#[derive(Debug)]
struct ServerSentEvent {
    name: String,
    data: String,
}

impl Follower {
    async fn connect(client: &Client) -> Self {
        let response = client.open("GET", "/dev/inbox/events", &[], "").await;
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, read: Vec::new() }
    }

    async fn next(&mut self) -> ServerSentEvent {
        loop {
            if let Some(end) = self.read.windows(2).position(|pair| pair == b"\n\n") {
                let event = String::from_utf8(self.read.drain(..end + 2).collect()).unwrap();
                let field = |name| {
                    let line = event.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
                    line.unwrap_or_else(|| panic!("no {name} in {event}")).to_owned()
                };
                return ServerSentEvent { name: field("event"), data: field("data") };
            }
            let chunk = tokio::time::timeout(Duration::from_secs(10), self.response.chunk()).await.unwrap();
            self.read.extend(chunk.unwrap().unwrap());
        }
    }

    async fn delivery(&mut self) -> Value {
        let event = self.next().await;
        assert_eq!(event.name, "delivery");
        serde_json::from_str(&event.data).unwrap()
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
        newest_statuses(&client).await
    };
    let other = EndpointSecret::from_bits([8; 32]);
    let known = "/dev/inbox/known";
    assert_eq!(statuses(known, &secret, 0).await, json!(["verified", "verified", null]));
    assert_eq!(statuses("/dev/inbox/known?a=b", &secret, 0).await, json!(["verified", "verified", null]));
    assert_eq!(statuses(known, &other, 0).await, json!(["wrong", "wrong", null]));
    assert_eq!(statuses(known, &secret, 600).await, json!(["verified", "wrong", "too old"]));
    assert_eq!(statuses("/dev/inbox", &secret, 0).await, json!(["unknown", "unknown", null]));
    client.post(known, &[], body).await;
    assert_eq!(newest_statuses(&client).await, json!(["missing", "missing", null]));
}

async fn newest_statuses(client: &Client) -> Value {
    let newest = &list(client).await[0];
    json!([newest["service_signature"], newest["standard_signature"], newest["standard_problem"]])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_is_shown_live_as_it_arrives() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let client = running.client.clone();
    let mut follower = Follower::connect(&client).await;
    assert_eq!(follower.next().await.name, "emptied");
    client.post("/dev/inbox/1", &[], "line\nbreak\r").await;
    let shown = follower.delivery().await;
    assert_eq!((shown["path"].clone(), shown["body"].clone()), (json!("/dev/inbox/1"), json!("line\nbreak\r")));
    assert_eq!(shown, list(&client).await[0], "the same as in the list");
    client.post("/dev/inbox/2", &[], "").await;
    assert_eq!(follower.delivery().await["path"], "/dev/inbox/2");

    let mut again = Follower::connect(&client).await;
    assert_eq!(again.next().await.name, "emptied", "who connects again begins anew");
    for path in ["/dev/inbox/1", "/dev/inbox/2"] {
        assert_eq!(again.delivery().await["path"], path);
    }
    client.send("DELETE", "/dev/inbox", &[]).await;
    client.post("/dev/inbox/3", &[], "").await;
    for (mut follower, last) in [(follower, "follower"), (again, "again")] {
        assert_eq!(follower.next().await.name, "emptied", "{last}");
        assert_eq!(follower.delivery().await["path"], "/dev/inbox/3", "{last}");
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

    client.send("DELETE", "/dev/inbox", &[]).await;
    let mut follower = Follower::connect(client).await;
    assert_eq!(follower.next().await.name, "emptied");
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
    let mut follower = Follower::connect(client).await;
    assert_eq!(follower.next().await.name, "emptied");
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
    let head =
        format!("POST /dev/inbox HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
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
