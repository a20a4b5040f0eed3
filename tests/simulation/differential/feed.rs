//! The feed: its queue with the instances of `ingest` that read it, and the import.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use common::aws::Patience;
use common::resources::{INGEST_TIMEOUT, Queue};
use local::aws::InMemoryAws;
use local::environment::Variables;
use local::workers::{BackgroundTask, Backlog, EventSource, INGEST_INSTANCES, poll};
use serde_json::Value;
use tests::Simulation;
use tokio::time::sleep;

const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Feed {
    client: Client,
    url: String,
    dead_letters: String,
    backlog: Backlog,
    _pollers: Vec<BackgroundTask>,
}

impl Feed {
    /// Starts the instances of `ingest`.
    pub(super) async fn start(simulation: &Simulation) -> Self {
        let variables = Variables::new(&InMemoryAws::endpoint_url());
        let [url, dead_letters] = [Queue::Feed, Queue::FeedDead].map(|queue| variables.get(queue.variable()).unwrap());
        let mut pollers = Vec::new();
        for _ in 0..INGEST_INSTANCES {
            let host = simulation.host(simulation.clock());
            let poller = common::queues::client(&host.environment_of("ingest"), Patience::Bulk);
            let source = EventSource::open(poller, &url, INGEST_TIMEOUT).await.unwrap();
            pollers.push(poll(source, host.function("ingest", ingest::worker).unwrap()));
        }
        let client = common::queues::client(&simulation.aws.environment().unwrap(), Patience::Bulk);
        Self { backlog: Backlog::new(client.clone(), url.clone()), client, url, dead_letters, _pollers: pollers }
    }

    pub(super) async fn send(&self, messages: &[String]) {
        for batch in messages.chunks(10) {
            let entries = batch.iter().zip(0..).map(|(body, index): (_, u32)| {
                SendMessageBatchRequestEntry::builder().id(index.to_string()).message_body(body).build().unwrap()
            });
            let request = self.client.send_message_batch().queue_url(&self.url);
            let sent = request.set_entries(Some(entries.collect())).send().await.unwrap();
            assert!(sent.failed.is_empty(), "{:?}", sent.failed);
        }
    }

    /// Waits until every message is applied or refused.
    pub(super) async fn wait_until_empty(&self) {
        let mut pause = FIRST_PAUSE;
        while self.backlog.count().await.unwrap_or(1) > 0 {
            sleep(pause).await;
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }

    /// Takes the bodies of all dead letters. A letter may be there twice.
    pub(super) async fn take_dead_letters(&self) -> BTreeSet<String> {
        let mut letters = BTreeSet::new();
        loop {
            let receive = self.client.receive_message().queue_url(&self.dead_letters).max_number_of_messages(10);
            let received = receive.send().await.unwrap().messages.unwrap_or_default();
            if received.is_empty() {
                return letters;
            }
            letters.extend(received.into_iter().filter_map(|message| message.body));
        }
    }
}

/// Writes messages straight to the tables. What the store refuses is written again.
pub(super) async fn import(simulation: &Simulation, messages: &[Value]) {
    while simulation.try_to_feed(simulation.admin.stores(), messages).await.iter().any(Result::is_err) {
        sleep(LONGEST_PAUSE).await;
    }
}
