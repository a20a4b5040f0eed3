//! What servers that others wrote do to their connections, each in its barest form. `infra/receivers/run` has the servers
//! themselves.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::iter;
use http::{HeaderMap, HeaderValue};
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use webhook::transport::PostError;
use webhooks::guard::SystemResolver;

use crate::receiver::{REST, Receiver, client, client_with_clock, post, reach, read_request, until_closed};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// The requests that a receiver has read, by the number in their header `n`.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<usize>>>);

impl Log {
    async fn read(&self, stream: &mut TcpStream) -> io::Result<usize> {
        let (head, _) = read_request(stream).await?;
        let number = head.lines().find_map(|line| line.strip_prefix("n: ")?.parse().ok()).unwrap();
        self.0.lock().unwrap().push(number);
        Ok(number)
    }

    fn numbers(&self) -> HashSet<usize> {
        self.0.lock().unwrap().iter().copied().collect()
    }
}

/// Makes 200 POSTs, ten at a time, each on a used connection if there is one. Returns those that were not acknowledged.
async fn burst(receiver: &Receiver) -> Vec<(usize, Result<u16, PostError>)> {
    let (client, clock) = client_with_clock(reach(Arc::new(SystemResolver)));
    let posts = iter(0..200).map(|number| {
        let (client, url, clock) = (client.clone(), receiver.url(), Arc::clone(&clock));
        async move {
            clock.advance(REST);
            let mut headers = HeaderMap::new();
            headers.insert("n", HeaderValue::from(number));
            (number, client.post(&url, headers, Bytes::from_static(b"{}")).await.outcome)
        }
    });
    let posted: Vec<_> = posts.buffer_unordered(10).collect().await;
    posted.into_iter().filter(|(_, outcome)| !matches!(outcome, Ok(200..=299))).collect()
}

/// Asserts that a burst to a receiver is read and acknowledged as a whole.
async fn assert_takes_a_burst<F>(what: &str, handle: impl Fn(TcpStream, Log) -> F + Send + 'static)
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let log = Log::default();
    let read = log.clone();
    let receiver = Receiver::start(move |stream| handle(stream, read.clone())).await;
    assert_eq!(burst(&receiver).await, [], "{what}");
    let all_read = async {
        while log.numbers().len() < 200 {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(10), all_read).await.unwrap_or_else(|_| panic!("{what}: not all were read"));
}

/// uWSGI's `--http-socket`: it keeps to itself that it will close, and closes once the application has ended. If the
/// next request is unread in its buffer by then, the kernel resets the connection.
#[tokio::test]
async fn a_receiver_may_close_a_moment_after_its_answer_without_a_word() {
    for (millis, resets) in [(0, false), (1, false), (5, false), (20, false), (100, false), (0, true), (5, true)] {
        assert_takes_a_burst(&format!("after {millis} ms, resets: {resets}"), move |mut stream, log| async move {
            log.read(&mut stream).await?;
            stream.write_all(OK.as_bytes()).await?;
            sleep(Duration::from_millis(millis)).await;
            if resets {
                SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
            }
            Ok(())
        })
        .await;
    }
}

/// gunicorn's threads, Node, nginx and Apache: an idle connection ends by a time-out or after a number of requests, and
/// the next request may cross its end.
#[tokio::test]
async fn a_receiver_may_close_a_connection_while_the_next_request_is_on_its_way() {
    for requests in [1, 2, 7] {
        assert_takes_a_burst(&format!("after {requests} requests"), move |mut stream, log| async move {
            for _ in 0..requests {
                log.read(&mut stream).await?;
                stream.write_all(OK.as_bytes()).await?;
            }
            stream.read_u8().await.map(drop)
        })
        .await;
    }
}

/// Python's and PHP's built-in servers. With a length and an announcement: gunicorn's default worker, Apache at its
/// last request, every server that is being restarted.
#[tokio::test]
async fn a_receiver_may_end_its_answer_by_closing() {
    for answer in [
        "HTTP/1.0 200 OK\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok",
        "HTTP/1.1 200 OK\n\n",
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
    ] {
        assert_takes_a_burst(answer, move |mut stream, log| async move {
            log.read(&mut stream).await?;
            stream.write_all(answer.as_bytes()).await
        })
        .await;
    }
}

/// Load balancers and Node: a 408 tells that an idle connection ends, and says nothing about the request that crosses it.
/// What is no answer may be the rest of the one before.
#[tokio::test]
async fn a_receiver_may_say_on_a_used_connection_that_it_has_waited_too_long() {
    for said in ["HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", "0\r\n\r\n"] {
        assert_takes_a_burst(said, move |mut stream, log| async move {
            log.read(&mut stream).await?;
            stream.write_all(OK.as_bytes()).await?;
            // The whole request is read and the connection stays open. A reset would hide what was said.
            read_request(&mut stream).await?;
            stream.write_all(said.as_bytes()).await?;
            until_closed(stream).await
        })
        .await;
    }
}

/// A loop of `nc`: it answers as soon as somebody connects.
#[tokio::test]
async fn a_receiver_that_answers_before_it_is_asked_gets_the_request_all_the_same() {
    assert_takes_a_burst("at once", |mut stream, log| async move {
        stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").await?;
        log.read(&mut stream).await.map(drop)
    })
    .await;
}

/// Node, Express and Go without a length.
#[tokio::test]
async fn a_receiver_may_answer_in_chunks_that_come_one_by_one() {
    assert_takes_a_burst("chunks", |mut stream, log| async move {
        loop {
            log.read(&mut stream).await?;
            for piece in ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "2\r\no", "k\r", "\n0\r\n", "\r\n"] {
                stream.write_all(piece.as_bytes()).await?;
                tokio::task::yield_now().await;
            }
        }
    })
    .await;
}

/// Firewalls and proxies that decide by the head.
#[tokio::test]
async fn a_receiver_may_answer_before_it_has_read_the_body() {
    for (status, is_acknowledged) in [(200, true), (413, false)] {
        let receiver = Receiver::start(move |mut stream| async move {
            stream.read_u8().await?;
            let answer = format!("HTTP/1.1 {status} Early\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).await?;
            stream.shutdown().await?;
            until_closed(stream).await
        })
        .await;
        let body = vec![b'x'; 32 << 20];
        let posted = client().post(&receiver.url(), HeaderMap::new(), body.into()).await;
        assert_eq!((posted.outcome, posted.is_acknowledged()), (Ok(status), is_acknowledged));
    }
}

/// fasthttp and Jetty after an error in the application: a second answer to the same request, a moment later.
#[tokio::test]
async fn a_connection_on_which_anything_came_after_the_answer_is_not_used_again() {
    for stray in ["HTTP/1.1 500 Alas\r\ncontent-length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n", "\r\n", "trailing"] {
        let said = Arc::new(Notify::new());
        let told = Arc::clone(&said);
        let receiver = Receiver::start(move |mut stream| {
            let told = Arc::clone(&told);
            async move {
                read_request(&mut stream).await?;
                stream.write_all(OK.as_bytes()).await?;
                // Until the client has taken the answer.
                sleep(Duration::from_millis(1)).await;
                stream.write_all(stray.as_bytes()).await?;
                told.notify_one();
                until_closed(stream).await
            }
        })
        .await;
        let (client, clock) = client_with_clock(reach(Arc::new(SystemResolver)));
        for posts in 1..=10 {
            assert_eq!(post(&client, &receiver.url()).await.outcome, Ok(200), "{stray}");
            said.notified().await;
            clock.advance(REST);
            assert_eq!(receiver.accepted(), posts, "{stray}");
        }
    }
}
