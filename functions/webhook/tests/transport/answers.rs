//! What receivers answer: statuses, which alone decide whether a delivery was acknowledged, the bodies of hostile or
//! broken receivers, and answers that do not come or cannot be read.

use std::io;
use std::time::Duration;

use socket2::SockRef;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use crate::receiver::{Receiver, canary, client, is_touched, post, read_request, until_closed};
use webhook::transport::{PostError, Posted};

async fn outcome(answer: String) -> (Result<u16, PostError>, bool) {
    let receiver = Receiver::answering(answer).await;
    let posted = post(&client(), &receiver.url()).await;
    (posted.outcome, posted.is_acknowledged())
}

#[tokio::test]
async fn any_2xx_status_acknowledges() {
    for status in [200, 201, 202, 203, 206, 207, 226, 299] {
        let answer = format!("HTTP/1.1 {status} Fine\r\ncontent-length: 2\r\n\r\nok");
        assert_eq!(outcome(answer).await, (Ok(status), true));
    }
    assert_eq!(outcome("HTTP/1.1 204 No Content\r\n\r\n".to_owned()).await, (Ok(204), true));
    assert_eq!(outcome("HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned()).await, (Ok(200), true));
}

#[tokio::test]
async fn any_other_status_does_not_acknowledge() {
    let canary = canary();
    let elsewhere = canary.local_addr().unwrap();
    let headers = format!("location: http://{elsewhere}/\r\nretry-after: 1\r\nupgrade: x\r\ncontent-length: 0");
    for status in [
        101, 300, 301, 302, 303, 304, 305, 306, 307, 308, 400, 401, 404, 408, 410, 413, 421, 425, 429, 500, 502, 503,
        504, 599, 600, 999,
    ] {
        let answer = format!("HTTP/1.1 {status} Alas\r\n{headers}\r\n\r\n");
        assert_eq!(outcome(answer).await, (Ok(status), false));
    }
    assert!(!is_touched(&canary), "a redirect was followed");
}

#[tokio::test]
async fn informational_answers_are_skipped() {
    for before in [
        "HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 199 X\r\n\r\n",
        // Nginx and others send these while the application works.
        &"HTTP/1.1 102 Processing\r\n\r\n".repeat(500),
    ] {
        let answer = format!("{before}HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        assert_eq!(outcome(answer).await, (Ok(200), true));
    }
}

#[tokio::test]
async fn the_beginning_of_a_failed_answers_body_is_kept() {
    let body = format!("no \u{1b}[31mthanks\r\n{}", "x".repeat(5_000));
    let answer = format!("HTTP/1.1 500 Alas\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let receiver = Receiver::answering(answer).await;
    let excerpt = post(&client(), &receiver.url()).await.excerpt.unwrap();
    assert_eq!(excerpt.len(), 1_024);
    assert!(excerpt.starts_with("no  [31mthanks  xxx"), "{excerpt}");

    for answer in ["HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", "HTTP/1.1 500 Alas\r\ncontent-length: 0\r\n\r\n"] {
        let receiver = Receiver::answering(answer).await;
        assert_eq!(post(&client(), &receiver.url()).await.excerpt, None);
    }
}

/// Posts to a receiver that writes a head and then repeats one chunk until the connection ends.
async fn flooded_by(head: &'static str, chunk: Vec<u8>) -> Posted {
    let (ended, mut end) = tokio::sync::mpsc::unbounded_channel();
    let receiver = Receiver::start(move |stream| {
        let (chunk, ended) = (chunk.clone(), ended.clone());
        async move {
            let mut written = 0;
            let error = flood(stream, head, &chunk, &mut written).await.unwrap_err();
            ended.send((error.kind(), written)).unwrap();
            Ok(())
        }
    })
    .await;
    let posted = post(&client(), &receiver.url()).await;
    let (error, written) = end.recv().await.unwrap();
    assert!(matches!(error, io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe), "{head}: {error}");
    assert!(written < 8 << 20, "{head}: {written} bytes were written, more than buffers hold");
    posted
}

async fn flood(mut stream: TcpStream, head: &str, chunk: &[u8], written: &mut usize) -> io::Result<()> {
    SockRef::from(&stream).set_send_buffer_size(16 * 1_024)?;
    read_request(&mut stream).await?;
    stream.write_all(head.as_bytes()).await?;
    loop {
        *written += stream.write(chunk).await?;
    }
}

#[tokio::test]
async fn an_endless_body_is_not_read_to_the_end() {
    for (head, chunk) in [
        ("HTTP/1.1 200 OK\r\n\r\n", vec![b'x'; 1_000]),
        ("HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n", vec![b'x'; 10_000]),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\nx\r\n".repeat(100)),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"x".repeat(100)),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", b"x: y\r\n".repeat(100)),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"1;x".repeat(100)),
    ] {
        assert!(flooded_by(head, chunk).await.is_acknowledged(), "{head}");
    }
    let failed = flooded_by("HTTP/1.1 503 Alas\r\n\r\n", b"busy ".repeat(100)).await;
    assert_eq!(failed.outcome, Ok(503));
    assert!(failed.excerpt.unwrap().starts_with("busy busy"));
}

#[tokio::test]
async fn a_dripping_body_is_waited_for_one_second() {
    for head in ["HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n", "HTTP/1.1 410 Gone\r\ncontent-length: 100\r\n\r\n"] {
        let receiver = Receiver::start(move |mut stream| async move {
            read_request(&mut stream).await?;
            stream.write_all(head.as_bytes()).await?;
            loop {
                stream.write_all(b"x").await?;
                sleep(Duration::from_millis(100)).await;
            }
        })
        .await;
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
        let receiver = Receiver::start(move |mut stream| async move {
            read_request(&mut stream).await?;
            stream.write_all(format!("HTTP/1.1 202 Accepted\r\n{body}").as_bytes()).await?;
            stream.shutdown().await?;
            until_closed(stream).await
        })
        .await;
        assert_eq!(post(&client(), &receiver.url()).await.outcome, Ok(202));
    }
}

#[tokio::test]
async fn a_connection_that_ends_before_an_answer_is_a_failure_and_nothing_is_sent_again() {
    for (reads, written, resets, error) in [
        (false, "", false, PostError::Closed),
        (false, "", true, PostError::Closed),
        (true, "", false, PostError::Closed),
        (true, "", true, PostError::Closed),
        (true, "HTTP/1.1 20", false, PostError::Closed),
        (true, "HTTP/1.1 200 OK\r\ncontent-le", false, PostError::HeadIncomplete(200)),
    ] {
        let receiver = Receiver::start(move |mut stream| async move {
            if reads {
                read_request(&mut stream).await?;
            }
            stream.write_all(written.as_bytes()).await?;
            if resets {
                SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
            }
            Ok(())
        })
        .await;
        let outcome = post(&client(), &receiver.url()).await.outcome;
        assert_eq!(outcome, Err(error), "reads: {reads}, resets: {resets}, {written}");
        assert_eq!(receiver.accepted(), 1, "the request was sent more than once");
    }
}

#[tokio::test]
async fn an_answer_that_is_not_http_is_a_failure() {
    for bytes in [
        &b"SSH-2.0-OpenSSH_9.6\r\n"[..],
        b"220 mail.example.com ESMTP\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 two hundred\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 099 OK\r\n\r\n",
        b"HTTP/1.1200 OK\r\n\r\n",
        b"HTTP/1.1\r\n\r\n",
        b"\r\n\r\nhello",
        b"\x15\x03\x03\x00\x02\x02\x28",
        b"\0\0\0\x12\x04\0\0\0\0\0",
        b"<html>200 OK</html>\r\n\r\n",
    ] {
        let receiver = Receiver::writing(bytes).await;
        let outcome = post(&client(), &receiver.url()).await.outcome;
        assert_eq!(outcome, Err(PostError::NotHttp), "{}", bytes.escape_ascii());
    }
}

/// Lines that real receivers have sent, or that a mistake in their code makes them send.
#[tokio::test]
async fn what_stands_in_the_headers_of_a_2xx_does_not_matter() {
    let many = "x: y\r\n".repeat(1_000);
    for lines in [
        "content-security-policy: default-src 'self';\r\n  img-src *\r\n",
        " folded: from the start\r\n",
        "content-length: 99999999999999999999999999\r\n",
        "content-length: 2\r\ncontent-length: 3\r\n",
        "content-length: 2\r\ntransfer-encoding: chunked\r\n",
        &many,
    ] {
        for (start, end) in [("HTTP/1.1 200 OK\r\n", "\r\n"), ("HTTP/1.0 202\n", "\n"), ("HTTP/1.1  299\r\n", "\r\nok")]
        {
            let receiver = Receiver::writing(format!("{start}{lines}{end}")).await;
            let posted = post(&client(), &receiver.url()).await;
            assert!(posted.is_acknowledged(), "{start}{lines}: {posted:?}");
        }
    }
    let chunked = "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    assert_eq!(outcome(chunked.to_owned()).await, (Ok(200), true));
    assert_eq!(outcome("\r\nHTTP/1.1 200 OK\r\n\r\n".to_owned()).await, (Ok(200), true));
}

#[tokio::test]
async fn a_body_is_no_part_of_the_bound_of_the_head() {
    for (length, fits) in [(32 * 1_024, true), (32 * 1_024 + 1, false)] {
        let start = "HTTP/1.1 200 OK\r\ncontent-length: 60000\r\nx: ";
        let head = format!("{start}{}\r\n\r\n", "x".repeat(length - start.len() - 4));
        let posted = outcome(format!("{head}{}", "y".repeat(60_000))).await;
        assert_eq!(posted, if fits { (Ok(200), true) } else { (Err(PostError::HeadTooLong(Some(200))), false) });
    }
}

#[tokio::test]
async fn an_endless_head_is_not_read_to_the_end() {
    for (start, piece) in [
        ("HTTP/1.1 200 OK\r\n", "x: y\r\n"),
        ("HTTP/1.1 200 OK\r\n", "x"),
        ("HTTP/1.1 200 OK\r\n", "a-header-of-some-length: with a value of some length, which goes on\r\n"),
        ("HTTP/1.1 ", "2"),
        ("", "\r\n"),
        ("", "HTTP/1.1 103 Early Hints\r\n\r\n"),
        ("", "HTTP/1.1 100 Continue\r\n\r\n"),
    ] {
        let error = flooded_by(start, piece.repeat(1_000).into_bytes()).await.outcome.unwrap_err();
        assert!(matches!(error, PostError::HeadTooLong(_)), "{error}");
        assert_eq!(error.to_string().contains("200"), start.contains("200"), "{error}");
    }
}
