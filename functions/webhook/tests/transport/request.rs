//! What the request looks like to a receiver.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::receiver::{LOOPBACK, Receiver, ScriptedResolver, client, reach, read_request};
use webhook::transport::Transport;

/// Starts a receiver that passes on each request it reads.
async fn recording() -> (Receiver, UnboundedReceiver<(String, Vec<u8>)>) {
    let (seen, requests) = unbounded_channel();
    let receiver = Receiver::start(move |mut stream| {
        let seen = seen.clone();
        async move {
            seen.send(read_request(&mut stream).await?).unwrap();
            stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").await
        }
    });
    (receiver.await, requests)
}

#[tokio::test]
async fn the_request_has_nothing_that_was_not_given() {
    let (receiver, mut requests) = recording().await;
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert("x-service-event", HeaderValue::from_static("order.completed"));
    let url = format!("http://{}/a%20b/../c?d=e&f=%2F", receiver.address);
    assert!(client().post(&url, headers, Bytes::from_static(b"{\"a\":1}")).await.is_acknowledged());
    let (head, body) = requests.recv().await.unwrap();
    assert_eq!(body, b"{\"a\":1}");
    let mut lines: Vec<&str> = head.trim_end().split("\r\n").collect();
    lines[1..].sort_unstable();
    let host = format!("host: {}", receiver.address);
    assert_eq!(
        lines,
        [
            "POST /c?d=e&f=%2F HTTP/1.1",
            "content-length: 7",
            "content-type: application/json",
            &host,
            "x-service-event: order.completed",
        ]
    );
}

#[tokio::test]
async fn the_host_header_is_the_authority_of_the_url_and_its_name_is_resolved_in_normal_form() {
    let (receiver, mut requests) = recording().await;
    let names = ScriptedResolver::all_at(LOOPBACK);
    let client = Transport::new(reach(Arc::clone(&names) as _)).unwrap();
    let port = receiver.address.port();
    for (host, shown) in [
        ("Hooks.Example.COM", "hooks.example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("hooks%2eexample.com.", "hooks.example.com."),
        ("0x7f.1", "127.0.0.1"),
    ] {
        let url = format!("http://{host}:{port}?x");
        assert!(client.post(&url, HeaderMap::new(), Bytes::new()).await.is_acknowledged());
        let (head, _) = requests.recv().await.unwrap();
        assert!(head.starts_with("POST /?x HTTP/1.1\r\n"), "{head}");
        assert!(head.contains(&format!("host: {shown}:{port}\r\n")), "{head}");
    }
    assert_eq!(names.asked(), ["hooks.example.com", "xn--bcher-kva.example", "hooks.example.com."]);
}
