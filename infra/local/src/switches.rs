//! What operators and the marketplace reach of the functions through the AWS side: the switches of what triggers them, and
//! their direct invocation. An operator throws a switch, and the workers and the gateway obey.

use std::collections::BTreeMap;
use std::fmt;
use std::iter;
use std::sync::{Arc, Mutex, PoisonError};

use api::routes::{DEFAULT, ROUTES};
use common::resources::Queue;
use common::runtime::Worker;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::watch;

/// The function that the marketplace's web application invokes.
pub const INVOKED: &str = "account";

/// What triggers a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    Queue(Queue),
    /// The schedule of the function with this name.
    Schedule(&'static str),
    /// The requests to the function with this name, or its invocations.
    Requests(&'static str),
}

/// The switches of all triggers. At first everything is on. Clones are the same switches.
#[derive(Clone, Debug)]
pub struct Switches(Arc<[(Trigger, Arc<Switch>)]>);

/// Lets invocations begin, or not.
#[derive(Debug)]
pub struct Switch(watch::Sender<State>);

#[derive(Clone, Copy, Debug)]
struct State {
    is_on: bool,
    running: usize,
}

/// An invocation that was let through. It runs until this is dropped.
#[derive(Debug)]
pub struct Pass(Arc<Switch>);

impl Trigger {
    /// The name of the function, without that of the stack.
    pub const fn function(self) -> &'static str {
        match self {
            Self::Queue(Queue::WebhooksFirst | Queue::WebhooksRetry | Queue::WebhooksSlow) => "webhook",
            Self::Queue(_) => "ingest",
            Self::Schedule(function) | Self::Requests(function) => function,
        }
    }
}

impl Default for Switches {
    fn default() -> Self {
        let queues = iter::once(Queue::Feed).chain(Queue::LANES).map(Trigger::Queue);
        let schedules = ["compact", "sweep"].map(Trigger::Schedule);
        let routed = ROUTES.iter().map(|route| route.function);
        let mut functions: Vec<&'static str> = routed.chain([DEFAULT, INVOKED]).collect();
        functions.sort_unstable();
        functions.dedup();
        let triggers = queues.chain(schedules).chain(functions.into_iter().map(Trigger::Requests));
        Self(triggers.map(|trigger| (trigger, Arc::new(Switch::default()))).collect())
    }
}

impl Switches {
    /// Returns a trigger's switch. A trigger that is not among them is always on.
    pub fn of(&self, trigger: Trigger) -> Arc<Switch> {
        let found = self.0.iter().find(|(known, _)| *known == trigger);
        found.map_or_else(Arc::default, |(_, switch)| Arc::clone(switch))
    }

    /// Iterates over all of them.
    pub fn iter(&self) -> impl Iterator<Item = (Trigger, &Arc<Switch>)> {
        self.0.iter().map(|(trigger, switch)| (*trigger, switch))
    }
}

impl Default for Switch {
    fn default() -> Self {
        Self(watch::Sender::new(State { is_on: true, running: 0 }))
    }
}

impl Switch {
    /// Switches on or off. What runs goes on.
    pub fn set(&self, is_on: bool) {
        self.0.send_modify(|state| state.is_on = is_on);
    }

    /// Returns whether invocations may begin.
    pub fn is_on(&self) -> bool {
        self.0.borrow().is_on
    }

    /// Returns whether no invocation runs.
    pub fn is_idle(&self) -> bool {
        self.0.borrow().running == 0
    }

    /// Waits until no invocation runs.
    pub async fn wait_until_idle(&self) {
        let _ = self.0.subscribe().wait_for(|state| state.running == 0).await;
    }

    /// Lets an invocation begin if this is on.
    pub fn try_enter(self: &Arc<Self>) -> Option<Pass> {
        let entered = self.0.send_if_modified(|state| {
            state.running += usize::from(state.is_on);
            state.is_on
        });
        entered.then(|| Pass(Arc::clone(self)))
    }

    /// Waits until this is on, and lets an invocation begin.
    pub async fn enter(self: &Arc<Self>) -> Pass {
        loop {
            if let Some(pass) = self.try_enter() {
                return pass;
            }
            let _ = self.0.subscribe().wait_for(|state| state.is_on).await;
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.0.0.send_modify(|state| state.running -= 1);
    }
}

/// A function that takes an event. The error is what the function failed with.
type Invoked = Arc<dyn Fn(Value) -> BoxFuture<'static, Result<Value, String>> + Send + Sync>;

/// The functions that are invoked directly, by name. An instance offers them, and the AWS side invokes them as Lambda
/// does. Clones are the same functions.
#[derive(Clone, Default)]
pub struct Invocations(Arc<Mutex<BTreeMap<&'static str, Invoked>>>);

impl Invocations {
    /// Offers a function, in place of an earlier one with this name.
    pub fn offer<W: Worker>(&self, function: &'static str, worker: W) {
        let worker = Arc::new(worker);
        let invoked: Invoked = Arc::new(move |event| {
            let worker = Arc::clone(&worker);
            async move {
                let event = serde_json::from_value(event).map_err(|error| error.to_string())?;
                let response = worker.work(event).await.map_err(|error| error.to_string())?;
                serde_json::to_value(response).map_err(|error| error.to_string())
            }
            .boxed()
        });
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(function, invoked);
    }

    /// Invokes a function. Returns `None` if there is none with this name.
    pub async fn invoke(&self, function: &str, event: Value) -> Option<Result<Value, String>> {
        let invoked = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(function).map(Arc::clone)?;
        Some(invoked(event).await)
    }
}

impl fmt::Debug for Invocations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Invocations(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_begins_while_a_switch_is_off_and_what_runs_goes_on() {
        let switch = Switches::default().of(Trigger::Queue(Queue::Feed));
        let running = switch.try_enter();
        assert!(running.is_some());
        switch.set(false);
        assert!(switch.try_enter().is_none());
        assert_eq!((switch.is_on(), switch.is_idle()), (false, false));
        drop(running);
        assert!(switch.is_idle());
        switch.set(true);
        assert!(switch.try_enter().is_some());
    }
}
