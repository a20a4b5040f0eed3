//! What web pages and other programs of the machine can do to the local stack's ports: nothing that their user did not ask
//! for.

use std::convert::identity;
use std::fs;

use http::StatusCode;
use local::aws::AwsSide;
use local::server::{Server, plain};
use tests::{Client, RunningInstance, Stack};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Sends a call to S3 whose path stays as it is, and returns the status. Nobody checks the signature.
async fn call_s3(aws: &AwsSide, method: &str, path: &str) -> u16 {
    let address = aws.endpoint_url.strip_prefix("http://").unwrap();
    let scope = "Credential=local/20261120/us-east-1/s3/aws4_request";
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: AWS4-HMAC-SHA256 {scope}\r\n\
         content-length: 0\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_of_s3_reaches_a_file_outside_its_folder() {
    let parent = tempfile::tempdir().unwrap();
    let (data, outside) = (parent.path().join("data"), parent.path().join("outside"));
    fs::create_dir(&outside).unwrap();
    let victim = outside.join("victim");
    fs::write(&victim, "precious").unwrap();
    let aws = AwsSide::start("127.0.0.1:0".parse().unwrap(), Some(&data)).await.unwrap();
    assert_eq!(call_s3(&aws, "PUT", "/bucket").await, 200);
    assert_eq!(call_s3(&aws, "PUT", "/bucket/key").await, 200);
    let escaped = |path: &str| path.replace('/', "%2F");
    let absolute = escaped(outside.to_str().unwrap());
    for bucket in [&absolute, "..%2F..%2Foutside", "%2E%2E", "..", ".", ""] {
        for path in [format!("/{bucket}"), format!("/{bucket}/victim"), format!("/{bucket}/dynamodb.sqlite3")] {
            for method in ["PUT", "DELETE"] {
                call_s3(&aws, method, &path).await;
            }
        }
    }
    for key in [&escaped(victim.to_str().unwrap()), "..%2F..%2F..%2Foutside%2Fvictim", "..", "."] {
        for method in ["PUT", "DELETE"] {
            call_s3(&aws, method, &format!("/bucket/{key}")).await;
        }
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    let names = |folder| {
        let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(parent.path()), ["data", "outside"]);
    assert_eq!(names(&outside), ["victim"]);
    assert!(names(&data).iter().all(|name| {
        name == "objects" || name == "queues" || name.to_str().unwrap().starts_with("dynamodb.sqlite3")
    }));
    assert!(data.join("dynamodb.sqlite3").exists());
    assert!(names(&data.join("objects")).iter().all(|name| !name.to_str().unwrap().starts_with('.')));
    assert_eq!(fs::read(data.join("objects/bucket/key")).unwrap(), b"");
}

/// Headers, and the status of a request that has them.
const SENDERS: [(&[(&str, &str)], u16); 10] = [
    (&[], 200),
    (&[("host", "localhost:8080")], 200),
    (&[("host", "bucket.localhost")], 200),
    (&[("host", "[::1]:8080")], 200),
    (&[("host", "127.1.2.3")], 200),
    (&[("origin", "http://localhost:3000")], 200),
    (&[("host", "rebound.example.com")], 421),
    (&[("host", "192.168.1.7:8080")], 421),
    (&[("origin", "https://example.com")], 403),
    (&[("origin", "null")], 403),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_port_of_all_addresses_knows_the_pages_of_this_machine_from_those_of_others() {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let server = Server::start_for_this_machine(listener, identity, async |_| plain(StatusCode::OK, "")).unwrap();
    let client = Client::new(&format!("http://127.0.0.1:{}", server.address.port()));
    for (host, origin, status) in [
        ("192.168.1.7:8080", "http://192.168.1.7:8080", 200),
        ("192.168.1.7:8080", "http://localhost:3000", 200),
        ("192.168.1.7:8080", "http://203.0.113.9", 403),
        ("rebound.example.com", "http://rebound.example.com", 421),
    ] {
        assert_eq!(client.send("GET", "/", &[("host", host), ("origin", origin)]).await.status, status, "{origin}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_ports_refuse_the_pages_of_other_sites() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let key = format!("Bearer {}", stack.full_key().await);
    let tables = [("x-amz-target", "DynamoDB_20120810.ListTables"), ("content-type", "application/x-amz-json-1.0")];
    for (headers, status) in SENDERS {
        let asked = [headers, &[("authorization", key.as_str())]].concat();
        let reply = running.client.send("GET", "/v1/public/me", &asked).await;
        assert_eq!(reply.status, status, "the API, {headers:?}");
        assert!(!reply.headers.contains_key("access-control-allow-origin"), "the API, {headers:?}");
        let reply = Client::new(&stack.aws.endpoint_url).post("/", &[headers, &tables].concat(), "{}").await;
        assert_eq!(reply.status, status, "the AWS side, {headers:?}");
        assert!(!reply.headers.contains_key("access-control-allow-origin"), "the AWS side, {headers:?}");
    }
}

/// Sends bytes on a connection of their own. Returns what comes back, until it ends with a message in JSON.
async fn exchange(running: &RunningInstance, bytes: &[u8]) -> String {
    let mut connection = TcpStream::connect(running.instance.base_url.trim_start_matches("http://")).await.unwrap();
    connection.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\"}") {
        assert_ne!(connection.read_buf(&mut answer).await.unwrap(), 0, "{}", String::from_utf8_lossy(&answer));
    }
    String::from_utf8(answer).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_request_gets_an_answer_in_the_form_of_the_gateway() {
    let running = Stack::new().await.instance().await;
    let get = |path: &[u8], headers: &str| {
        [b"GET ".as_slice(), path, b" HTTP/1.1\r\nhost: localhost\r\n", headers.as_bytes(), b"\r\n"].concat()
    };
    let overlong = format!("/v1/public/catalog?q={}", "a".repeat(70_000));
    for (request, status, text) in [
        (get(b"/v1/public/items/\xff", ""), "400 Bad Request", "Bad Request"),
        (get(overlong.as_bytes(), ""), "414 URI Too Long", "URI Too Long"),
        (
            get(b"/docs", &"a: b\r\n".repeat(200)),
            "431 Request Header Fields Too Large",
            "Request Header Fields Too Large",
        ),
    ] {
        let body = format!(r#"{{"message":"{text}"}}"#);
        let answer = exchange(&running, &request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{answer}");
        assert!(answer.contains("\r\ncontent-type: application/json\r\n"), "{answer}");
        assert!(answer.contains(&format!("\r\ncontent-length: {}\r\n", body.len())), "{answer}");
        assert!(answer.ends_with(&format!("\r\n\r\n{body}")), "{answer}");
    }
}
