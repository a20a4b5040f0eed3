//! Receivers that do not answer, or whose answer cannot be read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use webhook::transport::PostError;

use crate::receiver::{Handling, Receiver, client, post, read_request, until_closed};

async fn error(handle: impl Fn(TcpStream) -> Handling + Send + 'static) -> PostError {
    let receiver = Receiver::start(handle).await;
    let error = post(&client(), &receiver.url()).await.outcome.unwrap_err();
    assert_eq!(receiver.accepted(), 1, "the request was sent more than once");
    error
}

/// Closes the connection with an RST.
fn reset(stream: TcpStream) {
    SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    drop(stream);
}

#[tokio::test]
async fn a_connection_that_ends_before_an_answer_is_a_failure_and_nothing_is_sent_again() {
    let at_once = error(|stream| {
        drop(stream);
        Box::pin(async { Ok(()) })
    });
    assert_eq!(at_once.await, PostError::Closed);
    let reset_at_once = error(|stream| {
        reset(stream);
        Box::pin(async { Ok(()) })
    });
    assert_eq!(reset_at_once.await, PostError::Closed);
    let after_reading = error(|mut stream| Box::pin(async move { read_request(&mut stream).await.map(drop) }));
    assert_eq!(after_reading.await, PostError::Closed);
    let reset_after_reading = error(|mut stream| {
        Box::pin(async move {
            read_request(&mut stream).await?;
            reset(stream);
            Ok(())
        })
    });
    assert_eq!(reset_after_reading.await, PostError::Closed);
    let within_the_head = error(|mut stream| {
        Box::pin(async move {
            read_request(&mut stream).await?;
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-le").await
        })
    });
    assert_eq!(within_the_head.await, PostError::Closed);
}

#[tokio::test]
async fn a_port_where_nothing_listens_is_unreachable() {
    let receiver = Receiver::answering("").await;
    let url = receiver.url();
    let listening = receiver.address;
    drop(receiver);
    while TcpStream::connect(listening).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert_eq!(post(&client(), &url).await.outcome, Err(PostError::Unreachable));
}

#[tokio::test]
async fn an_answer_that_is_not_http_is_a_failure() {
    for bytes in [
        &b"SSH-2.0-OpenSSH_9.6\r\n"[..],
        b"220 mail.example.com ESMTP\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 two hundred\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n: nameless\r\n\r\n",
        b"HTTP/1.1 200 OK\r\na b: c\r\n\r\n",
        b"\x15\x03\x03\x00\x02\x02\x28",
        b"\0\0\0\x12\x04\0\0\0\0\0",
        b"<html>200 OK</html>\r\n\r\n",
    ] {
        let receiver = Receiver::writing(bytes).await;
        let outcome = post(&client(), &receiver.url()).await.outcome;
        assert_eq!(outcome, Err(PostError::NotHttp), "{}", bytes.escape_ascii());
    }
}

#[tokio::test]
async fn an_endless_head_is_not_read_to_the_end() {
    for piece in ["x: y\r\n", "x", "a-header-of-some-length: with a value of some length, which goes on\r\n"] {
        let written = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&written);
        let chunk = piece.repeat(1_000);
        let receiver = Receiver::start(move |mut stream| {
            let (count, chunk) = (Arc::clone(&count), chunk.clone());
            Box::pin(async move {
                SockRef::from(&stream).set_send_buffer_size(16 * 1_024)?;
                read_request(&mut stream).await?;
                stream.write_all(b"HTTP/1.1 200 OK\r\n").await?;
                loop {
                    stream.write_all(chunk.as_bytes()).await?;
                    count.fetch_add(chunk.len(), Ordering::SeqCst);
                }
            })
        });
        let receiver = receiver.await;
        assert_eq!(post(&client(), &receiver.url()).await.outcome, Err(PostError::HeadTooLong));
        let written = written.load(Ordering::SeqCst);
        assert!(written < 8 << 20, "{written} bytes were written, more than buffers hold");
    }
}

#[tokio::test]
async fn an_answer_that_comes_before_its_request_is_discarded() {
    let twice = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    let receiver = Receiver::start(move |mut stream| {
        Box::pin(async move {
            read_request(&mut stream).await?;
            stream.write_all(twice.as_bytes()).await?;
            until_closed(stream).await
        })
    });
    let receiver = receiver.await;
    let client = client();
    for posts in 1..=3 {
        assert!(post(&client, &receiver.url()).await.is_acknowledged());
        assert_eq!(receiver.accepted(), posts);
    }
}
