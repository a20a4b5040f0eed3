//! Sets up a stack: creates what is missing, fills an empty store with the demo market, creates keys to try it with, and
//! keeps them and the keyring in the folder of the tables.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use admin::keys::{KeyAdmin, KeyBounds, NewKey};
use api::auth::KeyText;
use common::aws::{Environment, Patience};
use common::clock::Clock;
use common::ids::UserId;
use common::resources::{Resources, Table};
use common::scope::{Scope, Scopes, Tier};
use common::store::explain;
use common::timestamp::Timestamp;
use feed::{Applier, ApplyOutcome, Stores};
use terminal::Bar;
use webhooks::secrets::Keyring;
use webhooks::store::WebhookStore;

use crate::aws::setup::{Clients, create};
use crate::demo;
use crate::environment::Variables;
use crate::server::BackgroundTask;

/// The market is applied in this many parts. Each part has its share of every kind of message, so that streams and
/// single records are written at the same time.
const SEED_PARTS: usize = 5;
/// The time between two reads of the keyring. A rotated one is on disk after about this time.
const KEYRING_INTERVAL: Duration = Duration::from_secs(2);
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
    /// Administers the default stack that these variables lead to, and the tables that they name.
    pub fn new(variables: &Variables, clock: Arc<dyn Clock>) -> Result<Self, String> {
        let lookup = |name: &str| variables.get(name);
        let environment = Environment::read(&lookup).map_err(|error| error.to_string())?;
        let admin = Self::with_environment(&environment, clock);
        let name = |table: Table| variables.get(table.variable()).unwrap_or_else(|| admin.resources.own_table(table));
        let resources = admin.resources.clone().with_tables(Table::ALL.map(name));
        Ok(Self { resources, ..admin })
    }

    /// Administers the default stack that this environment leads to.
    pub fn with_environment(environment: &Environment, clock: Arc<dyn Clock>) -> Self {
        let clients = Clients {
            dynamodb: environment.dynamodb(Patience::Bulk),
            sqs: common::queues::client(environment, Patience::Bulk),
            s3: replica::objects::client(environment, Patience::Bulk),
            secrets: webhooks::secrets::client(environment, Patience::Bulk),
        };
        Self { clients, resources: Resources::new(Resources::DEFAULT_STACK), clock }
    }

    /// Administers the stack with this name instead.
    #[must_use]
    pub fn with_stack(self, stack: &str) -> Self {
        Self { resources: Resources::new(stack), ..self }
    }

    /// Creates the tables, queues, bucket and secret that are missing. If the folder of the tables has a keyring, the
    /// secret is created with it.
    pub async fn set_up(&self, data: Option<&Path>) -> Result<(), String> {
        let file = data.map(PrivateFile::keyring);
        let kept = file.as_ref().map(PrivateFile::read).transpose();
        let document = match kept.map_err(|error| format!("cannot read the keyring: {error}"))?.flatten() {
            Some(document) => document,
            None => Keyring::generate().map_err(|error| error.to_string())?.reveal(),
        };
        if let Some(file) = file {
            file.write(&document).map_err(|error| format!("cannot save the keyring: {error}"))?;
        }
        create(&self.clients, &self.resources, &document).await
    }

    /// Saves the keyring in the folder of the tables whenever it is rotated.
    pub fn save_keyring_changes(&self, folder: &Path) -> BackgroundTask {
        let (client, name) = (self.clients.secrets.clone(), self.resources.keyring());
        let file = PrivateFile::keyring(folder);
        BackgroundTask::start(async move {
            let mut saved = file.read().ok().flatten();
            loop {
                tokio::time::sleep(KEYRING_INTERVAL).await;
                let current = match client.get_secret_value().secret_id(&name).send().await {
                    Ok(found) => found.secret_string,
                    Err(error) => {
                        tracing::warn!(error = explain(&error), "cannot read the keyring");
                        continue;
                    }
                };
                if let Some(document) = current.filter(|current| saved.as_ref() != Some(current)) {
                    match file.write(&document) {
                        Ok(()) => saved = Some(document),
                        Err(error) => tracing::error!(%error, "cannot save the keyring"),
                    }
                }
            }
        })
    }

    /// Finds the deliveries of an earlier start for whose attempts nothing calls any more, and has their accounts' drains
    /// make these.
    pub fn find_lost_deliveries(&self) -> BackgroundTask {
        let store = WebhookStore::new(self.clients.dynamodb.clone(), self.resources.table(Table::Webhooks));
        let clock = Arc::clone(&self.clock);
        BackgroundTask::start(async move {
            let (mut from, mut lost) = (None, 0);
            loop {
                match store.repair_deliveries(from, clock.now()).await {
                    Ok((found, next)) => (from, lost) = (next, lost + found),
                    Err(error) => {
                        return tracing::error!(%error, "cannot look for lost deliveries; run marketctl repair");
                    }
                }
                if from.is_none() {
                    break;
                }
            }
            if lost > 0 {
                tracing::warn!(lost, "nothing called for these pending deliveries; they are attempted within minutes");
            }
        })
    }

    /// Returns the tables that messages are applied to.
    pub fn stores(&self) -> Stores {
        Stores::new(&self.clients.dynamodb, &self.resources)
    }

    /// Returns the administration of keys. Tests make many keys for one user, so it has no bound.
    pub fn keys(&self) -> KeyAdmin {
        let table = self.resources.table(Table::Keys);
        let keys = KeyAdmin::new(self.clients.dynamodb.clone(), table, Arc::clone(&self.clock));
        keys.with_bounds(KeyBounds::of_operator(u32::MAX))
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
        terminal::say_without_terminal("local: making the demo market, which takes some seconds");
        let bar = Bar::new(SEED_BAR, messages.len() as u64);
        let mut applier = Applier::new(stores);
        for part in 0..SEED_PARTS {
            let messages = messages.iter().enumerate().skip(part).step_by(SEED_PARTS);
            let messages = messages.map(|(index, message)| (index, message.clone())).collect();
            for (_, outcome) in applier.apply(messages, &*self.clock).await {
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

    /// Returns a key for each set of scopes of the demo user. The first has every scope. Those of an earlier start are used
    /// again as long as they are accepted; their texts are in the folder of the tables.
    pub async fn demo_keys(&self, data: Option<&Path>) -> Result<Vec<DemoKey>, String> {
        let file = data.map(|folder| PrivateFile(folder.join("demo-keys")));
        let kept = file.as_ref().map(PrivateFile::read).transpose();
        let kept = kept.map_err(|error| format!("cannot read the demo keys: {error}"))?.flatten().unwrap_or_default();
        let mut accepted = Vec::new();
        for text in KeyText::find(&kept).unwrap_or_default() {
            let found = self.keys().identify(&text).await.map_err(|error| error.to_string())?;
            if let Some(key) = found.filter(|key| key.is_live(self.clock.now())) {
                accepted.push(DemoKey { scopes: key.scopes, text });
            }
        }
        let sets: [&[Scope]; 4] =
            [&Scope::ALL, &[Scope::CatalogRead], &[Scope::ListingsRead], &[Scope::OrdersRead, Scope::WalletRead]];
        let mut keys = Vec::new();
        for set in sets {
            let scopes: Scopes = set.iter().copied().collect();
            keys.push(match accepted.iter().find(|key| key.scopes == scopes) {
                Some(key) => key.clone(),
                None => self.demo_key(demo::demo_user(), set).await?,
            });
        }
        if let Some(file) = file {
            let texts: Vec<&str> = keys.iter().map(|key| key.text.reveal()).collect();
            file.write(&texts.join("\n")).map_err(|error| format!("cannot save the demo keys: {error}"))?;
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
        fs::read_to_string(self.0.as_ref()?).ok()?.parse().ok()
    }

    fn mark(&self, now: Timestamp) -> Result<(), String> {
        let marked = self.0.as_ref().map_or(Ok(()), |path| fs::write(path, now.to_string()));
        marked.map_err(|error| error.to_string())
    }

    fn unmark(&self) -> Result<(), String> {
        self.0.as_ref().map_or(Ok(()), fs::remove_file).map_err(|error| error.to_string())
    }
}

/// A file in the folder of the tables that only the user who runs this may read.
struct PrivateFile(PathBuf);

impl PrivateFile {
    const MODE: u32 = 0o600;

    /// Secrets Manager is in memory here, and the secrets in the tables are sealed under its keyring, so losing the keyring
    /// would make them useless.
    fn keyring(folder: &Path) -> Self {
        Self(folder.join("keyring.json"))
    }

    /// Reads the file, if there is one.
    fn read(&self) -> io::Result<Option<String>> {
        match fs::read_to_string(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    /// Writes the file, whole or not at all.
    fn write(&self, document: &str) -> io::Result<()> {
        let new = self.0.with_added_extension("new");
        let mut written = OpenOptions::new().write(true).create(true).truncate(true).mode(Self::MODE).open(&new)?;
        written.set_permissions(Permissions::from_mode(Self::MODE))?;
        written.write_all(document.as_bytes())?;
        written.sync_all()?;
        fs::rename(new, &self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_written_is_read_and_is_for_its_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = PrivateFile::keyring(folder.path());
        assert_eq!(file.read().unwrap(), None);
        file.write("first").unwrap();
        file.write("second").unwrap();
        assert_eq!(file.read().unwrap().as_deref(), Some("second"));
        assert_eq!(fs::metadata(&file.0).unwrap().permissions().mode() & 0o777, PrivateFile::MODE);
    }
}
