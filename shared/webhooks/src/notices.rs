//! Tells the marketplace what happened to endpoints (specification 6.9.5).

use aws_sdk_sqs::Client;

use super::notice::EndpointNotice;
use super::store::WebhookStore;
use platform::aws::Missing;
use platform::resources::Queue;
use platform::service::Service;
use platform::store::{StoreError, explain};
use types::ids::NoticeId;

/// Sends notices from the table to a queue that drops duplicates.
#[derive(Clone)]
pub struct Notices {
    store: WebhookStore,
    client: Client,
    queue_url: String,
}

impl Notices {
    /// Sends the table's notices to the queue that the environment names. A function can start without that queue: a
    /// notice that cannot be sent stays in the table, and `sweep` tries again.
    pub fn from_service(service: &Service<'_>, store: WebhookStore) -> Result<Self, Missing> {
        let (client, [queue_url]) = service.optionally(|service| queues::from_service(service, [Queue::Notices]))?;
        Ok(Self { store, client, queue_url })
    }

    /// Sends a notice that has not been sent, then marks it as sent. After a crash between the two it is sent again.
    pub async fn send(&self, id: NoticeId) -> Result<(), StoreError> {
        let Some(notice) = self.store.unsent_notice(id).await? else { return Ok(()) };
        self.deliver(&notice).await?;
        self.store.notice_sent(id).await
    }

    async fn deliver(&self, notice: &EndpointNotice) -> Result<(), StoreError> {
        let request = self.client.send_message().queue_url(&self.queue_url);
        let request = request.message_body(serde_json::to_string(notice)?);
        let request = request.message_group_id(notice.endpoint_id().to_string());
        let request = request.message_deduplication_id(notice.id().to_string());
        let sent = request.send().await;
        sent.map(drop).map_err(|error| StoreError::Unavailable(explain(&error)))
    }
}
