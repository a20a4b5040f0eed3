//! The environment variables that the functions and `marketctl` need to use one AWS side.

use std::collections::BTreeMap;
use std::fmt;

use common::aws::{Environment, Patience};
use common::resources::{BASE_BUCKET_VARIABLE, KEYRING_VARIABLE, MAX_KEYS, MAX_KEYS_VARIABLE, Queue, Resources, Table};
use common::store::explain;
use futures_util::future::try_join_all;
use serde::Serialize;
use webhooks::guard::LOOPBACK_VARIABLE;

/// The account that everything in our own AWS side belongs to.
pub const ACCOUNT_ID: &str = "000000000000";
/// The region of our own AWS side.
pub const REGION: &str = "us-east-1";
/// The variables that say who calls AWS, and in which region.
const PROCESS_VARIABLES: [&str; 5] =
    ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION"];

/// Variables by name. `Debug` does not show them, because credentials are among them.
#[derive(Clone, Default, Serialize)]
#[serde(transparent)]
pub struct Variables(BTreeMap<String, String>);

impl Variables {
    /// Returns the variables of the default stack on our own AWS side, which does not check credentials.
    pub fn new(endpoint_url: &str) -> Self {
        Self::with_resources(endpoint_url, &Resources::new(Resources::DEFAULT_STACK))
    }

    fn with_resources(endpoint_url: &str, resources: &Resources) -> Self {
        let mut variables = BTreeMap::from([
            ("AWS_ACCESS_KEY_ID".to_owned(), "local".to_owned()),
            ("AWS_SECRET_ACCESS_KEY".to_owned(), "local".to_owned()),
            ("AWS_REGION".to_owned(), REGION.to_owned()),
            // boto3 and the AWS CLI read this one instead.
            ("AWS_DEFAULT_REGION".to_owned(), REGION.to_owned()),
            ("AWS_ENDPOINT_URL".to_owned(), endpoint_url.to_owned()),
        ]);
        variables.extend(Table::ALL.map(|table| (table.variable().to_owned(), resources.table(table))));
        let url = |queue| format!("{endpoint_url}/{ACCOUNT_ID}/{}", resources.queue(queue));
        variables.insert(KEYRING_VARIABLE.to_owned(), resources.keyring());
        variables.insert(BASE_BUCKET_VARIABLE.to_owned(), resources.base_bucket(ACCOUNT_ID, REGION));
        variables.insert(MAX_KEYS_VARIABLE.to_owned(), MAX_KEYS.to_string());
        variables.extend(Queue::ALL.map(|queue| (queue.variable().to_owned(), url(queue))));
        Self(variables)
    }

    /// Returns the variables of a deployed stack, on a foreign endpoint or, if there is none, in AWS itself. Credentials
    /// and region come from the process's own environment if it has any, and the URLs of the queues from the endpoint.
    /// They also tell the account, which is in the bucket's name.
    pub async fn from_deployed_stack(stack: &str, endpoint_url: Option<&str>) -> Result<Self, String> {
        let resources = &Resources::new(stack);
        let mut variables = Self::with_resources(endpoint_url.unwrap_or_default(), resources);
        if endpoint_url.is_none() {
            variables.0.remove("AWS_ENDPOINT_URL");
        }
        for name in PROCESS_VARIABLES {
            let own = std::env::var(name).ok().filter(|value| !value.is_empty());
            variables.0.extend(own.map(|value| (name.to_owned(), value)));
        }
        let environment = Environment::read(&|name| variables.get(name)).map_err(|error| error.to_string())?;
        let sqs = &common::queues::client(&environment, Patience::Request);
        let urls = Queue::ALL.map(|queue| async move {
            let name = resources.queue(queue);
            let found = sqs.get_queue_url().queue_name(&name).send().await;
            let found = found.map_err(|error| format!("queue {name}: {}", explain(&error)))?;
            Ok::<_, String>((queue.variable().to_owned(), found.queue_url.unwrap_or_default()))
        });
        let urls = try_join_all(urls).await?;
        let account = urls.iter().find_map(|(_, url)| url.rsplit('/').nth(1)).unwrap_or_default();
        let region = variables.get("AWS_REGION").unwrap_or_default();
        let bucket = resources.base_bucket(account, &region);
        variables.0.insert(BASE_BUCKET_VARIABLE.to_owned(), bucket);
        variables.0.extend(urls);
        Ok(variables)
    }

    /// Takes the names of tables from the process's own environment, where it has any. So functions can be pointed at a
    /// table that was restored under another name.
    #[must_use]
    pub fn with_tables_of_process(mut self) -> Self {
        let own = |table: Table| Some((table.variable().to_owned(), std::env::var(table.variable()).ok()?));
        self.0.extend(Table::ALL.into_iter().filter_map(own));
        self
    }

    /// Sets one variable to another value.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.0.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Tells `marketctl` that webhook endpoints may be on this machine.
    #[must_use]
    pub fn with_loopback_webhooks(self) -> Self {
        self.with(LOOPBACK_VARIABLE, "1")
    }

    /// Returns the value of a variable.
    pub fn get(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }

    /// Iterates over the variables, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Variables(…)")
    }
}
