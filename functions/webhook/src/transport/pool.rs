//! Connections that may be used again.
//!
//! After its answer a receiver may still close the connection or write to it, and does so without a word. So a connection
//! rests before it is used again, and is dropped if anything arrives meanwhile. If it ends later, [`super::Transport`]
//! sends the request on a new one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use common::clock::{Clock, Moment};
use futures_util::FutureExt;
use tokio::io::AsyncReadExt;
use tokio::task::unconstrained;

use super::connect::Connection;

/// How long a connection may be idle, by the wall clock as well: it goes on while the instance is frozen. Receivers close
/// idle connections, many after five seconds, and firewalls forget them.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a connection rests. Most servers that close it or answer twice have done so by then.
const REST: Duration = Duration::from_millis(20);
/// The most idle connections. Beyond that the oldest is closed.
const MAX_IDLE: usize = 128;

/// Idle connections, oldest first.
pub(super) struct Pool {
    clock: Arc<dyn Clock>,
    idle: Mutex<VecDeque<Idle>>,
}

struct Idle {
    origin: String,
    connection: Connection,
    since: Moment,
}

impl Pool {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, idle: Mutex::default() }
    }

    /// Returns a connection to an origin that has been silent since its last answer.
    pub(super) fn take(&self, origin: &str) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|idle| idle.since.is_within(IDLE_TIMEOUT, &*self.clock));
        loop {
            let rested = |idle: &Idle| idle.origin == origin && idle.since.age(&*self.clock) >= REST;
            let mut connection = idle.iter().position(rested).and_then(|found| idle.remove(found))?.connection;
            if unconstrained(connection.read(&mut [0])).now_or_never().is_none() {
                return Some(connection);
            }
        }
    }

    pub(super) fn put(&self, origin: String, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() == MAX_IDLE {
            idle.pop_front();
        }
        idle.push_back(Idle { origin, connection, since: Moment::now(&*self.clock) });
    }
}
