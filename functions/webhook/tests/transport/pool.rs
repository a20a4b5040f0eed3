//! Connections are reused, but only for the same host, and reuse never sends a delivery twice.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::clock::{Clock, ManualClock};
use common::timestamp::Timestamp;
use futures_util::future::{BoxFuture, pending};
use tokio::io::AsyncWriteExt;
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::timeout;
use webhook::transport::{DEADLINE, Transport};
use webhooks::guard::{Resolve, SystemResolver};

use crate::receiver::{
    LOOPBACK, Receiver, ScriptedResolver, answer_all, client, post, reach, read_request, until_closed,
};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

#[tokio::test]
async fn a_connection_is_used_again_for_the_next_request() {
    for answer in [
        OK,
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 500 Alas\r\ncontent-length: 4\r\n\r\nalas",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nyes\r\n0\r\n\r\n",
    ] {
        let receiver = Receiver::answering(answer).await;
        let client = client();
        for _ in 0..20 {
            assert!(post(&client.clone(), &receiver.url()).await.outcome.is_ok());
        }
        assert_eq!(receiver.accepted(), 1, "{answer}");
    }
}

#[tokio::test]
async fn a_connection_with_an_unread_answer_is_not_used_again() {
    let long = format!("HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n{}", "x".repeat(1_000_000));
    let receiver = Receiver::answering(long).await;
    let client = client();
    for posts in 1..=3 {
        assert!(post(&client, &receiver.url()).await.is_acknowledged());
        assert_eq!(receiver.accepted(), posts);
    }
}

#[tokio::test]
async fn hosts_that_share_an_address_do_not_share_connections() {
    let receiver = Receiver::answering(OK).await;
    let client = Transport::new(reach(ScriptedResolver::all_at(LOOPBACK))).unwrap();
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
    }
}

#[tokio::test]
async fn a_connection_that_was_closed_while_idle_is_replaced() {
    let closed = Arc::new(Notify::new());
    let told = Arc::clone(&closed);
    let receiver = Receiver::start(move |mut stream| {
        let told = Arc::clone(&told);
        Box::pin(async move {
            read_request(&mut stream).await?;
            stream.write_all(OK.as_bytes()).await?;
            drop(stream);
            told.notify_one();
            Ok(())
        })
    });
    let receiver = receiver.await;
    let client = client();
    for posts in 1..=20 {
        assert!(post(&client, &receiver.url()).await.is_acknowledged());
        closed.notified().await;
        assert_eq!(receiver.accepted(), posts);
    }
}

/// The receiver closes the connection instead of answering the second request. It may have acted on it, so the
/// request must not be sent again.
#[tokio::test]
async fn a_request_that_may_have_been_read_is_not_sent_again() {
    let receiver = Receiver::start(move |mut stream| {
        Box::pin(async move {
            read_request(&mut stream).await?;
            stream.write_all(OK.as_bytes()).await?;
            read_request(&mut stream).await.map(drop)
        })
    });
    let receiver = receiver.await;
    let client = client();
    assert!(post(&client, &receiver.url()).await.is_acknowledged());
    let error = post(&client, &receiver.url()).await.outcome.unwrap_err();
    assert_eq!(error.to_string(), "the connection was closed before an answer");
    assert_eq!(receiver.accepted(), 1);
}

/// Resolves a name the first time, and hangs every time after that.
struct Forgetful {
    asked: AtomicUsize,
    given_up: Arc<Notify>,
}

impl Resolve for Forgetful {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            if self.asked.fetch_add(1, Ordering::SeqCst) == 0 {
                return Ok(vec![LOOPBACK]);
            }
            let _told_when_dropped = NotifyOnDrop(Arc::clone(&self.given_up));
            pending().await
        })
    }
}

struct NotifyOnDrop(Arc<Notify>);

impl Drop for NotifyOnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tokio::test]
async fn a_connection_attempt_that_is_no_longer_needed_ends_at_its_deadline() {
    let (read, may_answer) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (told, gate) = (Arc::clone(&read), Arc::clone(&may_answer));
    let receiver = Receiver::start(move |mut stream| {
        let (told, gate) = (Arc::clone(&told), Arc::clone(&gate));
        Box::pin(async move {
            read_request(&mut stream).await?;
            told.notify_one();
            gate.notified().await;
            stream.write_all(OK.as_bytes()).await?;
            answer_all(stream, OK.into()).await
        })
    });
    let receiver = receiver.await;
    let url = receiver.url_at("http", "hooks.example.com");
    let given_up = Arc::new(Notify::new());
    let resolver = Arc::new(Forgetful { asked: AtomicUsize::new(0), given_up: Arc::clone(&given_up) });
    let client = Transport::with_deadline(reach(Arc::clone(&resolver) as _), Duration::from_secs(1)).unwrap();

    let second = async {
        read.notified().await;
        let answering = async {
            while resolver.asked.load(Ordering::SeqCst) < 2 {
                yield_now().await;
            }
            may_answer.notify_one();
        };
        tokio::join!(post(&client, &url), answering).0
    };
    let (first, second) = tokio::join!(post(&client, &url), second);
    assert!(first.is_acknowledged() && second.is_acknowledged(), "{first:?} {second:?}");
    assert_eq!(receiver.accepted(), 1);
    timeout(Duration::from_secs(10), given_up.notified()).await.expect("the name is still being resolved");
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_some_seconds() {
    let closed = Arc::new(Notify::new());
    let told = Arc::clone(&closed);
    let receiver = Receiver::start(move |mut stream| {
        let told = Arc::clone(&told);
        Box::pin(async move {
            read_request(&mut stream).await?;
            stream.write_all(OK.as_bytes()).await?;
            until_closed(stream).await?;
            told.notify_one();
            Ok(())
        })
    });
    let receiver = receiver.await;
    let client = client();
    assert!(post(&client, &receiver.url()).await.is_acknowledged());
    let closing = timeout(Duration::from_secs(15), closed.notified());
    closing.await.expect("the idle connection is still open");
}

const MINUTE_MILLIS: i64 = 60_000;

/// A client whose instance a test can freeze: then the wall clock goes on, and the monotonic clock stands still.
fn freezing_client() -> (Transport, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(Timestamp::from_millis(1_000 * MINUTE_MILLIS)));
    let client = Transport::with_clock(reach(Arc::new(SystemResolver)), DEADLINE, Arc::clone(&clock) as _);
    (client.unwrap(), clock)
}

fn set_ahead(clock: &ManualClock, millis: i64) {
    clock.set_wall(clock.now().plus_millis(millis));
}

/// The receiver forgets a connection while the instance is frozen: the next request on it gets no answer.
#[tokio::test]
async fn a_connection_from_before_a_freeze_is_not_used_again() {
    let receiver = Receiver::start(move |mut stream| {
        Box::pin(async move {
            read_request(&mut stream).await?;
            stream.write_all(OK.as_bytes()).await?;
            read_request(&mut stream).await.map(drop)
        })
    });
    let receiver = receiver.await;
    let (client, clock) = freezing_client();
    for posts in 1..=3 {
        assert!(post(&client.clone(), &receiver.url()).await.is_acknowledged());
        assert_eq!(receiver.accepted(), posts);
        set_ahead(&clock, MINUTE_MILLIS);
    }
}

#[tokio::test]
async fn many_short_freezes_count_like_a_long_one() {
    let receiver = Receiver::answering(OK).await;
    let (client, clock) = freezing_client();
    for connections in [1, 1, 1, 2, 2, 2, 3] {
        assert!(post(&client, &receiver.url()).await.is_acknowledged());
        assert_eq!(receiver.accepted(), connections);
        set_ahead(&clock, 400);
    }
}

#[tokio::test]
async fn a_connection_is_used_again_while_both_clocks_go_on_or_the_wall_clock_is_corrected_a_little() {
    let receiver = Receiver::answering(OK).await;
    let (client, clock) = freezing_client();
    for correction in [0, -300, 200, -100, 300] {
        assert!(post(&client, &receiver.url()).await.is_acknowledged());
        clock.advance(Duration::from_mins(1));
        set_ahead(&clock, correction);
    }
    assert_eq!(receiver.accepted(), 1);
}

/// A wall clock that is set back hides for how long the instance was frozen.
#[tokio::test]
async fn a_wall_clock_that_is_set_back_empties_the_pool_as_well() {
    let receiver = Receiver::answering(OK).await;
    let (client, clock) = freezing_client();
    for connections in 1..=3 {
        assert!(post(&client, &receiver.url()).await.is_acknowledged());
        assert_eq!(receiver.accepted(), connections);
        set_ahead(&clock, -MINUTE_MILLIS);
    }
}

#[tokio::test]
async fn a_request_that_is_under_way_keeps_its_connection_when_the_pool_is_emptied() {
    let (read, may_answer) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (told, gate) = (Arc::clone(&read), Arc::clone(&may_answer));
    let slow = Receiver::start(move |mut stream| {
        let (told, gate) = (Arc::clone(&told), Arc::clone(&gate));
        Box::pin(async move {
            read_request(&mut stream).await?;
            told.notify_one();
            gate.notified().await;
            stream.write_all(OK.as_bytes()).await?;
            until_closed(stream).await
        })
    });
    let (slow, fast) = tokio::join!(slow, Receiver::answering(OK));
    let (client, clock) = freezing_client();
    let meanwhile = async {
        read.notified().await;
        set_ahead(&clock, MINUTE_MILLIS);
        let posted = post(&client, &fast.url()).await;
        may_answer.notify_one();
        posted
    };
    let url = slow.url();
    let (first, second) = tokio::join!(post(&client, &url), meanwhile);
    assert!(first.is_acknowledged() && second.is_acknowledged(), "{first:?} {second:?}");
    assert_eq!((slow.accepted(), fast.accepted()), (1, 1));
}
