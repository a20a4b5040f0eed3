//! The way to SQS: a client, the URLs of the queues that a function uses, their check before its first event, the
//! batches that SQS accepts, and copies of received messages.

mod batches;
mod copies;

use crate::aws::{Environment, Missing, Patience};
use crate::preflight::{ProbeFuture, ResourceKind};
use crate::resources::Queue;
use crate::service::Service;
pub use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::QueueAttributeName;
pub use batches::{MAX_BATCH_BYTES, batches};
pub use copies::{MessageCopy, UnsentCopy, attribute, send_copies};
use futures_util::FutureExt;

/// The longest delay of a message that SQS allows, in seconds.
pub const MAX_DELAY_SECONDS: u32 = 900;

/// Makes a client of SQS.
pub fn client(environment: &Environment, patience: Patience) -> Client {
    let mut config = aws_sdk_sqs::config::Builder::from(&environment.config(patience));
    config.set_interceptors(environment.interceptors());
    Client::from_conf(config.build())
}

/// Makes a client with [`Patience::Request`], reads the URLs of queues, and notes that the queues are to be checked. If
/// several URLs are missing, the error names all of them at once.
pub fn from_service<const N: usize>(
    service: &Service<'_>,
    queues: [Queue; N],
) -> Result<(Client, [String; N]), Missing> {
    let urls = service.variables(queues.map(Queue::variable))?;
    let client = client(service.environment(), Patience::Request);
    for url in &urls {
        let (client, probed) = (client.clone(), url.clone());
        service.check(ResourceKind::Queue, name(url), move || probe(&client, &probed));
    }
    Ok((client, urls))
}

/// Returns the name of the queue at a URL.
pub fn name(url: &str) -> &str {
    url.rsplit('/').next().unwrap_or_default()
}

/// Checks a queue by asking for its ARN. This needs the permission `sqs:GetQueueAttributes`.
pub fn probe(client: &Client, url: &str) -> ProbeFuture {
    let attributes = client.get_queue_attributes().queue_url(url).attribute_names(QueueAttributeName::QueueArn);
    async move { Ok(attributes.send().await.map(drop)?) }.boxed()
}
