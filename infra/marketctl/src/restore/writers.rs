//! What writes to a table: event source mappings, rules of schedules, the API's functions, and that of the account's
//! settings.

use std::sync::Arc;

use api::routes::ROUTES;
use aws_sdk_eventbridge::Client as Events;
use aws_sdk_eventbridge::types::RuleState;
use aws_sdk_lambda::Client as Lambda;
use common::resources::{ALIAS, Resources, Table};
use serde::Serialize;

use super::state::Cause;
use super::tables::Pauses;

/// What writes to one table.
pub(super) struct Writers {
    lambda: Lambda,
    events: Events,
    resources: Arc<Resources>,
    queues: &'static [&'static str],
    schedules: &'static [&'static str],
    requests: Vec<&'static str>,
}

/// One thing that triggers a function which writes.
#[derive(Debug, Serialize)]
pub(super) struct Writer {
    kind: WriterKind,
    /// The name of the function.
    function: String,
    /// The id of the mapping, or the name of the rule or of the function.
    name: String,
    pub(super) state: WriterState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum WriterKind {
    EventSourceMapping,
    Rule,
    Function,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WriterState {
    On,
    Changing,
    Off,
}

impl Writer {
    /// Returns what it is, its name, and its state, for people.
    pub(super) fn row(&self) -> [String; 3] {
        let Self { kind, function, name, state } = self;
        let what = match kind {
            WriterKind::EventSourceMapping => format!("event source mapping {name} of {function}"),
            WriterKind::Rule => format!("rule {name} of {function}"),
            WriterKind::Function => format!("function {function}"),
        };
        let state = match state {
            WriterState::On => "on",
            WriterState::Changing => "changing",
            WriterState::Off => "off",
        };
        ["writer".to_owned(), what, state.to_owned()]
    }
}

/// Returns the functions of the API that ask for a key.
fn with_keys() -> impl Iterator<Item = &'static str> {
    ROUTES.iter().filter(|route| route.budget.is_some()).map(|route| route.function)
}

impl Writers {
    /// Names what writes to a table.
    pub(super) fn of(table: Table, resources: Arc<Resources>, lambda: Lambda, events: Events) -> Self {
        let (queues, schedules, requests): (&[&str], &[&str], _) = match table {
            // Each request with a key writes to the key's row.
            Table::Keys => (&[], &[], with_keys().chain(["account"]).collect()),
            Table::Market => (&["ingest"], &["compact"], vec![]),
            Table::Accounts => (&["ingest"], &[], vec![]),
            Table::Webhooks => (&["ingest", "webhook"], &["sweep"], vec!["account"]),
        };
        Self { lambda, events, resources, queues, schedules, requests }
    }

    /// Returns all of them, each with its state.
    pub(super) async fn list(&self) -> Result<Vec<Writer>, Cause> {
        let mut writers = Vec::new();
        for function in self.queues {
            writers.append(&mut self.mappings(function).await?);
        }
        for function in self.schedules {
            writers.append(&mut self.rules(function).await?);
        }
        for function in &self.requests {
            let name = self.resources.function(function);
            let found = self.lambda.get_function_concurrency().function_name(&name).send().await?;
            let is_off = found.reserved_concurrent_executions == Some(0);
            let state = if is_off { WriterState::Off } else { WriterState::On };
            writers.push(Writer { kind: WriterKind::Function, function: name.clone(), name, state });
        }
        Ok(writers)
    }

    /// Switches all of them on or off, and waits until they are. Returns whether any was not.
    pub(super) async fn switch(&self, is_on: bool) -> Result<bool, Cause> {
        let (wanted, other) =
            if is_on { (WriterState::On, WriterState::Off) } else { (WriterState::Off, WriterState::On) };
        let (mut is_changed, mut pauses) = (false, Pauses::new());
        loop {
            let writers = self.list().await?;
            if writers.iter().all(|writer| writer.state == wanted) {
                return Ok(is_changed);
            }
            is_changed = true;
            for writer in writers.iter().filter(|writer| writer.state == other) {
                self.switch_one(writer, is_on).await?;
            }
            pauses.wait().await;
        }
    }

    /// Returns the longest time for which one of the functions may still run after it was stopped, in seconds.
    pub(super) async fn longest_run(&self) -> Result<i64, Cause> {
        let mut longest = 0;
        for function in self.queues.iter().chain(self.schedules).chain(&self.requests) {
            let name = self.resources.function(function);
            let found = self.lambda.get_function_configuration().function_name(name).send().await?;
            longest = longest.max(i64::from(found.timeout.unwrap_or_default()));
        }
        Ok(longest)
    }

    /// Returns the mappings that call the function's alias. They are not found by the function's name alone.
    async fn mappings(&self, function: &str) -> Result<Vec<Writer>, Cause> {
        let function = self.resources.function(function);
        let alias = self.alias(&function).await?;
        let found = self.lambda.list_event_source_mappings().function_name(alias).send().await?;
        let found = found.event_source_mappings.unwrap_or_default();
        if found.is_empty() {
            return Err(Cause(format!("function {function} has no event source mapping")));
        }
        let writer = |uuid: Option<String>, state: Option<String>| {
            let state = match state.as_deref() {
                Some("Enabled") => WriterState::On,
                Some("Disabled") => WriterState::Off,
                _ => WriterState::Changing,
            };
            let (function, name) = (function.clone(), uuid.unwrap_or_default());
            Writer { kind: WriterKind::EventSourceMapping, function, name, state }
        };
        Ok(found.into_iter().map(|mapping| writer(mapping.uuid, mapping.state)).collect())
    }

    /// Returns the rules whose target is the function's alias.
    async fn rules(&self, function: &str) -> Result<Vec<Writer>, Cause> {
        let function = self.resources.function(function);
        let alias = self.alias(&function).await?;
        let names = self.events.list_rule_names_by_target().target_arn(alias).send().await?;
        let names = names.rule_names.unwrap_or_default();
        if names.is_empty() {
            return Err(Cause(format!("function {function} has no rule")));
        }
        let mut rules = Vec::new();
        for name in names {
            let rule = self.events.describe_rule().name(&name).send().await?;
            let is_off = rule.state == Some(RuleState::Disabled);
            let state = if is_off { WriterState::Off } else { WriterState::On };
            rules.push(Writer { kind: WriterKind::Rule, function: function.clone(), name, state });
        }
        Ok(rules)
    }

    /// Returns the ARN of a function's alias.
    async fn alias(&self, function: &str) -> Result<String, Cause> {
        let found = self.lambda.get_function_configuration().function_name(function).send().await?;
        Ok(format!("{}:{ALIAS}", found.function_arn.unwrap_or_default()))
    }

    async fn switch_one(&self, writer: &Writer, is_on: bool) -> Result<(), Cause> {
        let Self { lambda, events, .. } = self;
        let name = &writer.name;
        match (writer.kind, is_on) {
            (WriterKind::EventSourceMapping, _) => {
                lambda.update_event_source_mapping().uuid(name).enabled(is_on).send().await?;
            }
            (WriterKind::Rule, true) => {
                events.enable_rule().name(name).send().await?;
            }
            (WriterKind::Rule, false) => {
                events.disable_rule().name(name).send().await?;
            }
            (WriterKind::Function, true) => {
                lambda.delete_function_concurrency().function_name(name).send().await?;
            }
            (WriterKind::Function, false) => {
                let put = lambda.put_function_concurrency().function_name(name);
                put.reserved_concurrent_executions(0).send().await?;
            }
        }
        Ok(())
    }
}
