//! The `account` function: the account's settings. The marketplace's web application invokes it directly, with one
//! command at a time. `schema.json` describes the commands and the answers.
//!
//! Whoever may invoke it has logged its users in, and acts for the user that a command names. A command reaches nothing
//! of another user. Commands are not remembered. If an invocation's answer is lost, the lists show what was made.

mod answer;
mod commands;
mod request;

use std::sync::Arc;
use std::time::Duration;

use admin::audit::{Change, DONE, IN_DOUBT};
use admin::keys::{KeyAdmin, KeyBounds};
use admin::owner::Owner;
use admin::webhooks::WebhookAdmin;
use answer::{Answer, CommandError, Done};
use common::aws::{Missing, Patience};
use common::metrics::{Meter, Metric};
use common::preflight;
use common::resources::{ACCOUNT_TIMEOUT, MAX_KEYS_VARIABLE, Queue, Table};
use common::runtime::{Error, Service, Worker};
use futures_util::FutureExt;
pub use request::CommandName;
use request::Request;
use serde_json::Value;
use tokio::time::timeout;
use webhooks::delivery::Lane;
use webhooks::guard::Policy;
use webhooks::secrets::KeyringCache;
use webhooks::store::WebhookStore;
use webhooks::{Drains, Queues, Schedule};

/// How long a command may take. Lambda ends a function that runs into its time-out, and then there would be neither an
/// answer nor an audit line. This leaves five seconds for both.
const COMMAND_LIMIT: Duration = ACCOUNT_TIMEOUT.saturating_sub(Duration::from_secs(5));

pub struct Account {
    keys: KeyAdmin,
    webhooks: WebhookAdmin,
    meter: Arc<Meter>,
    limit: Duration,
}

/// Builds the function from its environment. The caller decides which addresses endpoints may have.
pub fn worker(service: &Service<'_>, policy: Policy) -> Result<Account, Missing> {
    let (client, table) = service.table(Table::Keys, Patience::Request, preflight::get)?;
    // An owner must be able to revoke a key whatever is wrong with webhooks.
    let webhooks = service.optionally(|service| webhook_admin(service, policy))?;
    let [most] = service.variables([MAX_KEYS_VARIABLE])?;
    let most = most.parse().map_err(|_| Missing(vec![MAX_KEYS_VARIABLE]))?;
    let keys = KeyAdmin::new(client, table, Arc::clone(&service.clock)).with_bounds(KeyBounds::of_owner(most));
    Ok(Account { keys, webhooks, meter: Arc::clone(&service.meter), limit: COMMAND_LIMIT })
}

fn webhook_admin(service: &Service<'_>, policy: Policy) -> Result<WebhookAdmin, Missing> {
    let store = WebhookStore::from_service(service, Patience::Request, preflight::get)?;
    let (sqs, [slow]) = common::queues::from_service(service, [Queue::WebhooksSlow])?;
    let drains = Drains::new(store.clone(), Queues::new(sqs, [(Lane::Slow, slow)]), Schedule::default());
    Ok(WebhookAdmin {
        store,
        drains,
        keyring: KeyringCache::from_service(service)?,
        policy,
        clock: Arc::clone(&service.clock),
    })
}

/// Builds the function as it is deployed: endpoints have public addresses only (specification 6.12).
pub fn deployed(service: &Service<'_>) -> Result<Account, Missing> {
    worker(service, Policy::public())
}

impl Worker for Account {
    /// Any JSON. A command that cannot be read gets an answer that says why.
    type Event = Value;
    type Response = Value;

    async fn work(&self, event: Value) -> Result<Value, Error> {
        let (command, outcome) = match Request::parse(event) {
            Ok(request) => (Some(request.command), self.run(request).boxed().await),
            Err(error) => (None, Err(error)),
        };
        self.log(command, outcome.as_ref().err());
        Ok(serde_json::to_value(Answer::new(outcome))?)
    }
}

impl Account {
    /// Lets each command take this long at most, instead of 25 seconds.
    #[must_use]
    pub fn with_limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// Runs a command. If the command changes something, writes the audit line, also after an error.
    async fn run(&self, request: Request) -> Result<Done, CommandError> {
        let Request { user_id, command, parameters, actor } = request;
        let asked = request::subject(&parameters);
        let owner = Owner::new(user_id, &self.keys, &self.webhooks);
        let outcome = timeout(self.limit, commands::run(owner, command, parameters).boxed()).await;
        let outcome = outcome.unwrap_or_else(|_| Err(CommandError::late()));
        if command.is_change() {
            let (subject, text) = match &outcome {
                Ok(done) => (done.subject.unwrap_or(asked), if done.in_doubt { IN_DOUBT } else { DONE }),
                Err(error) => (asked, error.code.as_str()),
            };
            let change = Change { actor: actor.as_deref(), user_id: Some(user_id), command: command.as_str(), subject };
            change.log(text);
        }
        outcome
    }

    /// Writes the invocation's line. It is an error if an operator has to look at it.
    fn log(&self, command: Option<CommandName>, error: Option<&CommandError>) {
        let mut line = self.meter.line("answered");
        line.known("command", command.map(CommandName::as_str));
        line.member("outcome", error.map_or(DONE, |error| error.code.as_str()));
        let cause = error.and_then(|error| error.cause.as_deref());
        line.known("because", cause);
        if cause.is_some() {
            line.count(Metric::CommandErrors, 1);
        }
        line.log(cause.is_some());
    }
}
