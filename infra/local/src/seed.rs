//! Fills an empty store with the demo market, and creates keys to try it with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use admin::keys::{KeyAdmin, NewKey};
use auth::KeyText;
use feed::{Applier, ApplyOutcome, Stores};
use platform::aws::{Environment, Patience};
use platform::resources::{Resources, Table};
use secrets::Keyring;
use terminal::Bar;
use types::clock::Clock;
use types::ids::UserId;
use types::scope::{Scope, Scopes, Tier};
use types::timestamp::Timestamp;

use crate::aws::setup::{Clients, create};
use crate::demo;
use crate::environment::Variables;
use crate::keyring;
use crate::workers::BackgroundTask;

/// The market is applied in this many parts. Each part has its share of every kind of message, so that streams and
/// single records are written at the same time.
const SEED_PARTS: usize = 5;
const SEED_BAR: &str = "demo market {bar:40} {pos}/{len} records";

/// Sets up and administers a stack.
pub struct StackAdmin {
    clients: Clients,
    resources: Resources,
    clock: Arc<dyn Clock>,
}

/// A key for trying things out.
#[derive(Clone, Debug)]
pub struct DemoKey {
    pub scopes: Scopes,
    pub text: KeyText,
}

/// Marks a store whose seeding has begun but not ended, so that the next start resumes it.
struct SeedingMarker(Option<PathBuf>);

impl StackAdmin {
    /// Administers the default stack that these variables lead to.
    pub fn new(variables: &Variables, clock: Arc<dyn Clock>) -> Result<Self, String> {
        let lookup = |name: &str| variables.get(name);
        let environment = Environment::read(&lookup).map_err(|error| error.to_string())?;
        Ok(Self::with_environment(&environment, clock))
    }

    /// Administers the default stack that this environment leads to.
    pub fn with_environment(environment: &Environment, clock: Arc<dyn Clock>) -> Self {
        let clients = Clients {
            dynamodb: environment.dynamodb(Patience::Bulk),
            sqs: queues::client(environment, Patience::Bulk),
            s3: objects::client(environment, Patience::Bulk),
            secrets: secrets::client(environment, Patience::Bulk),
        };
        Self { clients, resources: Resources::new(Resources::DEFAULT_STACK), clock }
    }

    /// Administers the stack with this name instead.
    #[must_use]
    pub fn with_stack(self, stack: &str) -> Self {
        Self { resources: Resources::new(stack), ..self }
    }

    /// Creates the tables, queues, bucket and secret that are missing. If the folder of the tables has a keyring, the secret is
    /// created with it.
    pub async fn set_up(&self, data: Option<&Path>) -> Result<(), String> {
        let kept = data.map(keyring::read).transpose().map_err(|error| format!("cannot read the keyring: {error}"))?;
        let document = match kept.flatten() {
            Some(document) => document,
            None => Keyring::generate().map_err(|error| error.to_string())?.reveal(),
        };
        if let Some(folder) = data {
            keyring::write(folder, &document).map_err(|error| format!("cannot save the keyring: {error}"))?;
        }
        create(&self.clients, &self.resources, &document).await
    }

    /// Saves the keyring in the folder of the tables whenever it is rotated.
    pub fn save_keyring_changes(&self, folder: &Path) -> BackgroundTask {
        keyring::save_changes(folder.to_owned(), self.clients.secrets.clone(), self.resources.keyring())
    }

    /// Returns the tables that messages are applied to.
    pub fn stores(&self) -> Stores {
        Stores::new(&self.clients.dynamodb, &self.resources)
    }

    /// Returns the administration of keys.
    pub fn keys(&self) -> KeyAdmin {
        let table = self.resources.table(Table::Keys);
        KeyAdmin::new(self.clients.dynamodb.clone(), table, Arc::clone(&self.clock))
    }

    /// Puts the demo market into a store that is empty, or whose seeding was interrupted.
    pub async fn seed(&self, data: Option<&Path>) -> Result<(), String> {
        let marker = SeedingMarker(data.map(|folder| folder.join("seeding")));
        let stores = self.stores();
        let is_empty = stores.market.is_empty().await.map_err(|error| error.to_string())?;
        let begun = marker.begun();
        if !is_empty && begun.is_none() {
            return Ok(());
        }
        // Resumes with the time at which the seeding began, because an order's creation time must not change.
        let now = begun.unwrap_or_else(|| self.clock.now());
        marker.mark(now)?;
        let messages = demo::messages(now);
        let bar = Bar::new(SEED_BAR, messages.len() as u64);
        let mut applier = Applier::new(stores);
        for part in 0..SEED_PARTS {
            let messages = messages.iter().enumerate().skip(part).step_by(SEED_PARTS);
            let messages = messages.map(|(index, message)| (index, message.clone())).collect();
            for (_, outcome) in applier.apply(messages, now).await {
                match outcome {
                    Ok(ApplyOutcome::Rejected(rejection)) => return Err(format!("demo market: {rejection}")),
                    Ok(_) => bar.advance(1),
                    Err(error) => return Err(format!("demo market: {error}")),
                }
            }
        }
        drop(bar);
        marker.unmark()
    }

    /// Creates a key for each set of scopes for the demo user. The first key has every scope.
    pub async fn demo_keys(&self) -> Result<Vec<DemoKey>, String> {
        let sets: [&[Scope]; 4] =
            [&Scope::ALL, &[Scope::CatalogRead], &[Scope::ListingsRead], &[Scope::OrdersRead, Scope::WalletRead]];
        let mut keys = Vec::new();
        for scopes in sets {
            keys.push(self.demo_key(demo::demo_user(), scopes).await?);
        }
        Ok(keys)
    }

    /// Creates a key of the free tier for a user.
    pub async fn demo_key(&self, user_id: UserId, scopes: &[Scope]) -> Result<DemoKey, String> {
        let scopes: Scopes = scopes.iter().copied().collect();
        let name = Some("demo".to_owned());
        let new =
            NewKey { user_id, name, tier: Tier::Free, limit_override: None, scopes: scopes.clone(), expires_at: None };
        let (text, _) = self.keys().create(new).await.map_err(|error| error.to_string())?;
        Ok(DemoKey { scopes, text })
    }
}

impl SeedingMarker {
    /// Returns when the unfinished seeding began.
    fn begun(&self) -> Option<Timestamp> {
        std::fs::read_to_string(self.0.as_ref()?).ok()?.parse().ok()
    }

    fn mark(&self, now: Timestamp) -> Result<(), String> {
        let marked = self.0.as_ref().map_or(Ok(()), |path| std::fs::write(path, now.to_string()));
        marked.map_err(|error| error.to_string())
    }

    fn unmark(&self) -> Result<(), String> {
        self.0.as_ref().map_or(Ok(()), std::fs::remove_file).map_err(|error| error.to_string())
    }
}
