//! The operator's AWS session: clients for one stack, and the names of what the stack is made of.

use std::sync::Arc;

use aws_config::{BehaviorVersion, SdkConfig};
use aws_sdk_dynamodb::config::ProvideCredentials;
use shared::aws::{Patience, http_client};
use shared::clock::{Clock, SystemClock};
use shared::feed::Stores;
use shared::keys::KeyAdmin;
use shared::resources::{Resources, Table};
use shared::store::causes;

use crate::failure::Failure;

/// A stack, and who asks.
pub(crate) struct Session {
    config: SdkConfig,
    pub(crate) resources: Resources,
    pub(crate) dynamodb: aws_sdk_dynamodb::Client,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Session {
    /// Finds region, credentials and endpoint as any AWS tool does.
    pub(crate) async fn open(stack: &str) -> Result<Self, Failure> {
        let patience = Patience::Bulk;
        let config = aws_config::defaults(BehaviorVersion::latest())
            .http_client(http_client())
            .timeout_config(patience.timeouts())
            .retry_config(patience.retries())
            .load()
            .await;
        if config.region().is_none() {
            return Err(Failure::NoRegion);
        }
        // Asked for here, so that a session that has run out is told as what it is.
        if let Some(credentials) = config.credentials_provider() {
            credentials.provide_credentials().await.map_err(|error| Failure::NoCredentials(causes(&error)))?;
        }
        let dynamodb = aws_sdk_dynamodb::Client::new(&config);
        Ok(Self { config, resources: Resources::of(stack), dynamodb, clock: Arc::new(SystemClock::new()) })
    }

    pub(crate) fn keys(&self) -> KeyAdmin {
        KeyAdmin::new(self.dynamodb.clone(), self.resources.table(Table::Keys), Arc::clone(&self.clock))
    }

    pub(crate) fn stores(&self) -> Stores {
        Stores::of(&self.dynamodb, &self.resources)
    }

    pub(crate) fn sqs(&self) -> aws_sdk_sqs::Client {
        aws_sdk_sqs::Client::new(&self.config)
    }

    pub(crate) fn secrets(&self) -> aws_sdk_secretsmanager::Client {
        aws_sdk_secretsmanager::Client::new(&self.config)
    }
}
