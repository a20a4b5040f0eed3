//! Response bodies that a hostile or broken receiver may send.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use socket2::SockRef;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};
use webhook::transport::Posted;

use crate::receiver::{Receiver, client, post, read_request, until_closed};

/// Posts to a receiver that writes a head and then repeats one chunk until the connection ends. Returns the client's
/// result and how many bytes of body were written.
async fn flooded_by(head: &'static str, chunk: Vec<u8>) -> (Posted, usize) {
    let written = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&written);
    let (ended, mut end) = tokio::sync::mpsc::unbounded_channel();
    let receiver = Receiver::start(move |stream| {
        let (count, chunk, ended) = (Arc::clone(&count), chunk.clone(), ended.clone());
        Box::pin(async move {
            let error = flood(stream, head, &chunk, &count).await.unwrap_err();
            ended.send(error.kind()).unwrap();
            Ok(())
        })
    });
    let receiver = receiver.await;
    let posted = post(&client(), &receiver.url()).await;
    assert!(matches!(end.recv().await.unwrap(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe));
    (posted, written.load(Ordering::SeqCst))
}

async fn flood(mut stream: TcpStream, head: &str, chunk: &[u8], count: &AtomicUsize) -> io::Result<()> {
    SockRef::from(&stream).set_send_buffer_size(16 * 1_024)?;
    read_request(&mut stream).await?;
    stream.write_all(head.as_bytes()).await?;
    loop {
        count.fetch_add(stream.write(chunk).await?, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn an_endless_body_is_not_read_to_the_end() {
    let bomb = {
        let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
        bomb.write_all(&vec![0; 16 << 20]).unwrap();
        bomb.finish().unwrap()
    };
    for (head, chunk) in [
        ("HTTP/1.1 200 OK\r\n\r\n", vec![b'x'; 1_000]),
        ("HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n", vec![b'x'; 10_000]),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\nx\r\n".repeat(100)),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"x".repeat(100)),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", b"x: y\r\n".repeat(100)),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"1;x".repeat(100)),
        ("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n", bomb),
    ] {
        let (posted, written) = flooded_by(head, chunk).await;
        assert!(posted.is_acknowledged(), "{head}");
        assert!(written < 8 << 20, "{head}: {written} bytes were written, more than buffers hold");
    }
}

#[tokio::test]
async fn a_failure_with_an_endless_body_keeps_its_status() {
    let (posted, written) = flooded_by("HTTP/1.1 503 Alas\r\n\r\n", b"busy ".repeat(100)).await;
    assert_eq!(posted.outcome, Ok(503));
    assert!(posted.excerpt.unwrap().starts_with("busy busy"));
    assert!(written < 8 << 20);
}

#[tokio::test]
async fn a_dripping_body_is_waited_for_one_second() {
    for head in ["HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n", "HTTP/1.1 410 Gone\r\ncontent-length: 100\r\n\r\n"] {
        let receiver = Receiver::start(move |mut stream| {
            Box::pin(async move {
                read_request(&mut stream).await?;
                stream.write_all(head.as_bytes()).await?;
                loop {
                    stream.write_all(b"x").await?;
                    sleep(Duration::from_millis(100)).await;
                }
            })
        });
        let receiver = receiver.await;
        let start = Instant::now();
        let posted = post(&client(), &receiver.url()).await;
        assert!((Duration::from_millis(900)..Duration::from_secs(5)).contains(&start.elapsed()));
        assert!(posted.latency < Duration::from_millis(900), "the latency includes the body");
        assert_eq!(posted.is_acknowledged(), head.contains("200"));
        assert_eq!(posted.excerpt.is_some_and(|excerpt| excerpt.starts_with("xxx")), head.contains("410"));
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_does_not_change_the_outcome() {
    for body in ["content-length: 100\r\n\r\nhalf", "transfer-encoding: chunked\r\n\r\nzz\r\n"] {
        for reset in [false, true] {
            let receiver = Receiver::start(move |mut stream| {
                Box::pin(async move {
                    read_request(&mut stream).await?;
                    stream.write_all(format!("HTTP/1.1 202 Accepted\r\n{body}").as_bytes()).await?;
                    if reset {
                        // Waits until the client has read the head: a reset discards what is still unread.
                        sleep(Duration::from_millis(200)).await;
                        SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
                        return Ok(());
                    }
                    stream.shutdown().await?;
                    until_closed(stream).await
                })
            });
            let receiver = receiver.await;
            assert_eq!(post(&client(), &receiver.url()).await.outcome, Ok(202));
        }
    }
}
