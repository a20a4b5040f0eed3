//! The administrator of a stack, who makes keys and applies messages.

use std::sync::Arc;

use admin::keys::NewKey;
use auth::KeyRecord;
use feed::{Applier, ApplyOutcome, Stores, parse};
use local::environment::Variables;
use local::seed::StackAdmin;
use platform::aws::Environment;
use serde_json::Value;
use types::clock::Clock;
use types::ids::UserId;
use types::scope::{Scope, Tier};
use types::timestamp::Timestamp;
use uuid::Uuid;

/// Makes keys and applies messages in a stack, at the time of a clock.
pub struct Administrator {
    pub admin: StackAdmin,
    clock: Arc<dyn Clock>,
}

impl Administrator {
    pub fn new(variables: &Variables, clock: Arc<dyn Clock>) -> Self {
        Self { admin: StackAdmin::new(variables, Arc::clone(&clock)).unwrap(), clock }
    }

    /// Returns one that reaches AWS through this environment.
    pub(crate) fn with_environment(environment: &Environment, clock: Arc<dyn Clock>) -> Self {
        Self { admin: StackAdmin::with_environment(environment, Arc::clone(&clock)), clock }
    }

    /// Administers the stack with this name instead of the default one.
    pub(crate) fn with_stack(self, stack: &str) -> Self {
        Self { admin: self.admin.with_stack(stack), ..self }
    }

    /// The time at which keys are made and messages applied.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Makes a free key for a new user.
    pub async fn key(&self, scopes: &[Scope]) -> String {
        self.key_of(Uuid::new_v4().into(), scopes).await.0
    }

    /// Makes a free key with every scope for a new user.
    pub async fn full_key(&self) -> String {
        self.key(&Scope::ALL).await
    }

    /// Makes a free key for a user. Returns its text and its record.
    pub async fn key_of(&self, user_id: UserId, scopes: &[Scope]) -> (String, KeyRecord) {
        self.key_with(NewKey {
            user_id,
            name: None,
            tier: Tier::Free,
            limit_override: None,
            scopes: scopes.iter().copied().collect(),
            expires_at: None,
        })
        .await
    }

    /// Makes a key. Returns its text and its record.
    pub async fn key_with(&self, new: NewKey) -> (String, KeyRecord) {
        let (text, record) = self.admin.keys().create(new).await.unwrap();
        (text.reveal().to_owned(), record)
    }

    /// Applies messages, and asserts that each changes something.
    pub async fn feed(&self, messages: &[Value]) {
        for outcome in self.feed_outcomes(messages).await {
            assert_eq!(outcome, ApplyOutcome::Changed);
        }
    }

    /// Applies messages and returns what became of each, in order.
    pub async fn feed_outcomes(&self, messages: &[Value]) -> Vec<ApplyOutcome> {
        self.feed_through(self.admin.stores(), messages).await
    }

    /// Like `feed_outcomes`, but through these stores.
    pub async fn feed_through(&self, stores: Stores, messages: &[Value]) -> Vec<ApplyOutcome> {
        let now = self.now();
        let parsed = messages.iter().map(|message| parse(&message.to_string(), now).unwrap()).enumerate();
        let mut outcomes = Applier::new(stores).apply(parsed.collect(), now).await;
        outcomes.sort_by_key(|(index, _)| *index);
        outcomes.into_iter().map(|(_, outcome)| outcome.unwrap()).collect()
    }
}
