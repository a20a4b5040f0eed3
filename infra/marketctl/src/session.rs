//! The operator's AWS session: the clients for one stack, and the names of its resources.

use std::sync::Arc;

use admin::keys::KeyAdmin;
use admin::webhooks::WebhookAdmin;
use aws_config::SdkConfig;
use common::aws::Patience;
use common::clock::{Clock, SystemClock};
use common::preflight::{Problem, ResourceKind};
use common::resources::{Queue, Resources, Table};
use feed::Stores;
use pretraffic::inventory::Clients;
use replica::objects::Objects;
use webhooks::delivery::Lane;
use webhooks::guard::{EndpointUrl, LOOPBACK_VARIABLE, Policy};
use webhooks::secrets::KeyringCache;
use webhooks::store::WebhookStore;
use webhooks::{Drains, Queues, Schedule};

use crate::cli::Target;
use crate::environment;
use crate::failure::{CommandFailure, with_remedy};

/// A stack and the AWS configuration to reach it.
pub(crate) struct Session {
    config: SdkConfig,
    pub(crate) resources: Resources,
    pub(crate) dynamodb: aws_sdk_dynamodb::Client,
    pub(crate) clock: Arc<dyn Clock>,
}

/// What to do if a queue or the bucket cannot be used.
pub(crate) const CHECK_HINT: &str =
    "Run `marketctl check`: it names every table, queue, bucket and secret that cannot be used.";

impl Session {
    /// Opens a session with the region, credentials and endpoint that every AWS tool would use. If `needs_stack`, there
    /// must be such a stack.
    pub(crate) async fn open(target: &Target, needs_stack: bool) -> Result<Self, CommandFailure> {
        let (config, resources) = Box::pin(environment::load(target, needs_stack)).await?;
        let dynamodb = aws_sdk_dynamodb::Client::new(&config);
        Ok(Self { config, resources, dynamodb, clock: Arc::new(SystemClock::new()) })
    }

    /// Returns the clients that the resources of a stack are checked by.
    pub(crate) fn clients(&self) -> Clients {
        Clients { dynamodb: self.dynamodb.clone(), sqs: self.sqs(), secrets: self.secrets(), s3: self.s3() }
    }

    pub(crate) fn keys(&self) -> KeyAdmin {
        KeyAdmin::new(self.dynamodb.clone(), self.resources.table(Table::Keys), Arc::clone(&self.clock))
    }

    pub(crate) async fn webhooks(&self) -> Result<WebhookAdmin, CommandFailure> {
        let slow = self.queue_url(Queue::WebhooksSlow).await;
        let slow = slow.map_err(|reason| CommandFailure::new(format!("nothing was done: {reason}"), CHECK_HINT))?;
        let store = WebhookStore::new(self.dynamodb.clone(), self.resources.table(Table::Webhooks));
        Ok(WebhookAdmin {
            drains: Drains::new(store.clone(), Queues::new(self.sqs(), [(Lane::Slow, slow)]), Schedule::default()),
            store,
            keyring: KeyringCache::new(self.secrets(), self.resources.keyring(), Arc::clone(&self.clock)),
            policy: policy(),
            clock: Arc::clone(&self.clock),
        })
    }

    /// Returns whether the stack is on this machine, and an endpoint with this URL would be as well. It is refused unless
    /// the stack allows such endpoints.
    pub(crate) fn refuses_as_local(&self, url: &str) -> bool {
        policy() == Policy::public() && self.config.endpoint_url().is_some_and(is_local) && is_local(url)
    }

    /// Looks up the URL of a queue. The error is a whole sentence: what is wrong and what to do next.
    pub(crate) async fn queue_url(&self, queue: Queue) -> Result<String, String> {
        let name = self.resources.queue(queue);
        let found = self.sqs().get_queue_url().queue_name(&name).send().await;
        let found = found.map_err(|error| with_remedy(&Problem::from(error), ResourceKind::Queue, &name))?;
        Ok(found.queue_url.unwrap_or_default())
    }

    pub(crate) fn stores(&self) -> Stores {
        Stores::new(&self.dynamodb, &self.resources)
    }

    pub(crate) fn sqs(&self) -> aws_sdk_sqs::Client {
        aws_sdk_sqs::Client::new(&self.config)
    }

    pub(crate) fn secrets(&self) -> aws_sdk_secretsmanager::Client {
        aws_sdk_secretsmanager::Client::new(&self.config)
    }

    pub(crate) fn lambda(&self) -> aws_sdk_lambda::Client {
        aws_sdk_lambda::Client::new(&self.config)
    }

    pub(crate) fn s3(&self) -> replica::objects::Client {
        replica::objects::Client::from_conf(replica::objects::config(&self.config).build())
    }

    /// Returns the bucket.
    pub(crate) async fn objects(&self) -> Result<Objects, CommandFailure> {
        let bucket = self.bucket().await.map_err(|problem| {
            let what = "the credentials do not tell the account, which is in the bucket's name";
            CommandFailure::new(format!("nothing was done: {what}: {problem}"), CHECK_HINT)
        })?;
        Ok(Objects::new(self.s3(), bucket, Patience::Bulk))
    }

    /// Returns the ARN of whom the credentials belong to, if AWS tells it.
    pub(crate) async fn caller(&self) -> Option<String> {
        aws_sdk_sts::Client::new(&self.config).get_caller_identity().send().await.ok()?.arn
    }

    /// Returns the name of the bucket. It contains the account, which only the credentials tell.
    pub(crate) async fn bucket(&self) -> Result<String, Problem> {
        let identity = aws_sdk_sts::Client::new(&self.config).get_caller_identity().send().await?;
        let region = self.config.region().map_or("", AsRef::as_ref);
        Ok(self.resources.base_bucket(identity.account().unwrap_or_default(), region))
    }
}

/// Returns whether a URL leads to this machine.
fn is_local(url: &str) -> bool {
    let is_allowed = |policy| EndpointUrl::parse(url, policy).is_ok();
    !is_allowed(Policy::public()) && is_allowed(Policy::with_loopback())
}

fn policy() -> Policy {
    if std::env::var(LOOPBACK_VARIABLE).is_ok_and(|value| value == "1") {
        Policy::with_loopback()
    } else {
        Policy::public()
    }
}
