//! When a connection is used again. `servers.rs` has what receivers do to connections.

use std::sync::Arc;
use std::time::Duration;

use common::clock::{Clock, ManualClock};
use webhooks::guard::SystemResolver;

use crate::receiver::{LOOPBACK, REST, Receiver, ScriptedResolver, client_with_clock, post, reach};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

#[tokio::test]
async fn a_connection_is_used_again_for_the_next_request() {
    for answer in [
        OK,
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nyes\r\n0\r\n\r\n",
    ] {
        let receiver = Receiver::answering(answer).await;
        let (client, clock) = client_with_clock(reach(Arc::new(SystemResolver)));
        for _ in 0..20 {
            assert!(post(&client.clone(), &receiver.url()).await.outcome.is_ok());
            clock.advance(REST);
        }
        assert_eq!(receiver.accepted(), 1, "{answer}");
    }
}

/// Each of these may be followed by something that is not an answer to the next request.
#[tokio::test]
async fn a_connection_is_used_once_if_its_answer_was_a_failure_or_has_no_clear_end() {
    let long = format!("HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n{}", "x".repeat(1_000_000));
    for answer in [
        "HTTP/1.1 500 Alas\r\ncontent-length: 4\r\n\r\nalas",
        "HTTP/1.1 304 Not Modified\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok\r\n",
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nconnection: Keep-Alive, Close\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nno colon\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx: y\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nokay",
        &long,
    ] {
        let receiver = Receiver::answering(answer.to_owned()).await;
        let (client, clock) = client_with_clock(reach(Arc::new(SystemResolver)));
        for posts in 1..=3 {
            assert!(post(&client, &receiver.url()).await.outcome.is_ok());
            clock.advance(REST);
            assert_eq!(receiver.accepted(), posts, "{answer:.99}");
        }
    }
}

#[tokio::test]
async fn hosts_that_share_an_address_do_not_share_connections() {
    let receiver = Receiver::answering(OK).await;
    let (client, clock) = client_with_clock(reach(ScriptedResolver::all_at(LOOPBACK)));
    for (host, connections) in [
        ("one.example.com", 1),
        ("two.example.com", 2),
        ("ONE.example.com", 2),
        ("two.example.com", 2),
        ("one.example.com.", 3),
        ("127.0.0.1", 4),
    ] {
        assert!(post(&client, &receiver.url_at("http", host)).await.is_acknowledged());
        assert_eq!(receiver.accepted(), connections, "{host}");
        clock.advance(REST);
    }
}

#[tokio::test]
async fn a_connection_is_used_again_from_its_rest_on_for_three_seconds_by_both_clocks() {
    let receiver = Receiver::answering(OK).await;
    let (client, clock) = client_with_clock(reach(Arc::new(SystemResolver)));
    for (idle, frozen, connections) in [
        (0, 0, 1),
        (20, 0, 1),
        (2_999, 0, 1),
        (1_500, 1_499, 1),
        (3_000, 0, 2),
        (0, 3_000, 3),
        (19, 0, 4),
        // A wall clock that is set back hides for how long the instance was frozen.
        (20, -60_000, 5),
    ] {
        clock.advance(Duration::from_millis(idle));
        set_ahead(&clock, frozen);
        assert!(post(&client, &receiver.url()).await.is_acknowledged());
        assert_eq!(receiver.accepted(), connections, "{idle} {frozen}");
    }
}

fn set_ahead(clock: &ManualClock, millis: i64) {
    clock.set_wall(clock.now().plus_millis(millis));
}
