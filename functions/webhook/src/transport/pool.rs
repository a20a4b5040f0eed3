//! The pool of connections. It is emptied once the instance has been frozen.
//!
//! A pool measures idle times by the monotonic clock, which may stand still while Lambda keeps an instance frozen. The
//! receivers' clocks go on, so a connection that looks new may be closed at the other side, or forgotten by a
//! firewall. A request on it would be lost, and a healthy receiver would have failed an attempt.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use types::clock::{Clock, Moment};

use super::connect::Connector;
use super::written::NotingBody;

/// How long an idle connection is kept by the monotonic clock. The time is short because receivers close idle
/// connections, many after five seconds. If a connection is found closed before anything was written, a new one is made
/// and the attempt does not fail.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the instance may have been frozen, in all, before the pool is emptied. So no connection is used again that
/// has been idle for four seconds by the wall clock.
const MAX_FROZEN: Duration = Duration::from_secs(1);
/// The most idle connections that are kept for each scheme, host and port.
const MAX_IDLE_PER_HOST: usize = 16;
/// The longest head of an answer, in bytes (specification 6.7.3).
const MAX_HEAD_BYTES: usize = 32 * 1_024;

pub(super) type HttpClient = Client<Connector, NotingBody>;

/// Connections to receivers, shared by all requests of an instance.
pub(super) struct Pool {
    connector: Connector,
    clock: Arc<dyn Clock>,
    current: Mutex<Current>,
}

struct Current {
    client: HttpClient,
    /// When its pool was empty.
    began: Moment,
}

impl Pool {
    pub(super) fn new(connector: Connector, clock: Arc<dyn Clock>) -> Self {
        let current = Mutex::new(Current::new(&connector, &*clock));
        Self { connector, clock, current }
    }

    /// Returns the client for the next request. Requests that are under way keep theirs, and their connections.
    pub(super) fn client(&self) -> HttpClient {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.began.drift(&*self.clock) > MAX_FROZEN {
            *current = Current::new(&self.connector, &*self.clock);
        }
        current.client.clone()
    }
}

impl Current {
    fn new(connector: &Connector, clock: &dyn Clock) -> Self {
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(MAX_IDLE_PER_HOST)
            .http1_max_buf_size(MAX_HEAD_BYTES)
            .build(connector.clone());
        Self { client, began: Moment::now(clock) }
    }
}
