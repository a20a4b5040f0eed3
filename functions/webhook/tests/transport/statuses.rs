//! The status alone decides whether a delivery was acknowledged.

use webhook::transport::PostError;

use crate::receiver::{Receiver, canary, client, is_touched, post};

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
    for status in [300, 304, 400, 401, 404, 408, 410, 413, 421, 425, 429, 500, 502, 503, 504, 599, 600, 999] {
        let answer = format!("HTTP/1.1 {status} Alas\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n");
        assert_eq!(outcome(answer).await, (Ok(status), false));
    }
}

#[tokio::test]
async fn a_change_of_protocol_does_not_acknowledge() {
    let answer = "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n";
    assert_eq!(outcome(answer.to_owned()).await, (Ok(101), false));
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let target = canary();
    let location = target.local_addr().unwrap();
    for status in [301, 302, 303, 307, 308] {
        let answer =
            format!("HTTP/1.1 {status} Elsewhere\r\nlocation: http://{location}/\r\ncontent-length: 0\r\n\r\n");
        assert_eq!(outcome(answer).await, (Ok(status), false));
    }
    assert!(!is_touched(&target));
}

#[tokio::test]
async fn informational_answers_are_skipped() {
    for before in [
        "HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 199 X\r\n\r\n",
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
