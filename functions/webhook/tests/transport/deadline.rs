//! The deadline: an attempt has ten seconds from its start to the end of the answer's head, whatever takes the time.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{BoxFuture, join_all, pending};
use http::HeaderMap;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};
use webhook::transport::{DEADLINE, PostError, Posted, Reach, Transport};
use webhooks::guard::{Resolve, SystemResolver};

use crate::receiver::{Receiver, client, post, reach, read_request, until_closed};
use crate::tls::Authority;

/// Posts to a receiver that answers after this time.
async fn after(time: Duration) -> Posted {
    let receiver = Receiver::start(move |mut stream| async move {
        read_request(&mut stream).await?;
        sleep(time).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await
    });
    post(&client(), &receiver.await.url()).await
}

/// Posts to a receiver that writes the beginning of an answer and then one more piece every second.
async fn dripping(beginning: &'static str, piece: &'static str) -> Posted {
    let receiver = Receiver::start(move |mut stream| async move {
        read_request(&mut stream).await?;
        stream.write_all(beginning.as_bytes()).await?;
        loop {
            sleep(Duration::from_secs(1)).await;
            stream.write_all(piece.as_bytes()).await?;
        }
    });
    post(&client(), &receiver.await.url()).await
}

async fn never<F>(scheme: &str, body: usize, handle: impl Fn(TcpStream) -> F + Send + 'static) -> Posted
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let receiver = Receiver::start(handle).await;
    client().post(&receiver.url_at(scheme, "127.0.0.1"), HeaderMap::new(), vec![b'x'; body].into()).await
}

struct Silent;

impl Resolve for Silent {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(pending())
    }
}

async fn unresolved() -> Posted {
    let client = Transport::new(reach(Arc::new(Silent))).unwrap();
    client.post("http://hooks.example.com/", HeaderMap::new(), Bytes::new()).await
}

#[tokio::test]
async fn an_attempt_has_ten_seconds_and_no_more() {
    assert_eq!(DEADLINE, Duration::from_secs(10));
    let late: Vec<(&str, BoxFuture<'_, Posted>)> = vec![
        ("answers late", Box::pin(after(Duration::from_millis(10_500)))),
        ("never answers", Box::pin(never("http", 2, until_closed))),
        ("never reads", Box::pin(never("http", 32 << 20, hold))),
        ("never shakes hands", Box::pin(never("https", 2, hold))),
        ("reads the handshake and says nothing", Box::pin(never("https", 2, until_closed))),
        ("only says to continue", Box::pin(dripping("HTTP/1.1 100 Continue\r\n\r\n", ""))),
        ("says nothing but that it works on it", Box::pin(dripping("", "HTTP/1.1 102 Processing\r\n\r\n"))),
        ("a byte each second", Box::pin(dripping("HTTP/1.1 ", "2"))),
        ("does not resolve", Box::pin(unresolved())),
    ];
    let late = join_all(late.into_iter().map(|(what, posted)| async move { (what, posted.await) }));
    let headers = dripping("HTTP/1.1 200 OK\r\n", "x: y\r\n");
    let (in_time, late, headers) = tokio::join!(after(Duration::from_millis(9_500)), late, headers);
    assert_eq!(headers.outcome, Err(PostError::HeadIncomplete(200)));
    assert!(in_time.is_acknowledged(), "{in_time:?}");
    assert!(in_time.latency >= Duration::from_millis(9_500), "{in_time:?}");
    for (what, posted) in late {
        assert_eq!(posted.outcome, Err(PostError::NoAnswer(DEADLINE)), "{what}");
        assert!((DEADLINE..Duration::from_secs(12)).contains(&posted.latency), "{what}: {posted:?}");
        assert_eq!(posted.outcome.unwrap_err().to_string(), "no answer within 10 s");
    }
}

#[tokio::test]
async fn a_receiver_that_never_reads_loses_its_connection() {
    let authority = Authority::new();
    let receiver = authority.certify("127.0.0.1").serve_with(&[], hold).await;
    let reach = Reach { roots: authority.roots(), ..reach(Arc::new(SystemResolver)) };
    let deadline = Duration::from_millis(300);
    let client = Transport::with_deadline(reach, deadline).unwrap();
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let accepting = tasks();

    let body = vec![b'x'; 32 << 20];
    let posted = client.post(&receiver.url_at("https", "127.0.0.1"), HeaderMap::new(), body.into()).await;
    assert_eq!(posted.outcome, Err(PostError::NoAnswer(deadline)));
    assert_eq!(receiver.accepted(), 1);
    let only_held = async {
        while tasks() > accepting + 1 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(10), only_held).await.expect("the client's end of the connection is still open");
}

async fn hold<S>(stream: S) -> io::Result<()> {
    let () = pending().await;
    drop(stream);
    Ok(())
}
