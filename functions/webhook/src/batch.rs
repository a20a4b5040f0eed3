//! A batch of messages: one reading of their endpoints, then each by itself.

use std::collections::BTreeSet;

use aws_lambda_events::sqs::SqsMessage;
use futures_util::future::join_all;
use shared::ids::UserId;
use shared::store::StoreError;
use shared::webhooks::delivery::{Dispatch, Lane};
use shared::webhooks::endpoint::Endpoint;
use shared::webhooks::{Call, QueueMessage};
use tokio::sync::Semaphore;

use crate::Webhook;
use crate::attempt::SLOW_AFTER;
use crate::fate::Fate;
use crate::plan::{Endpoints, Plan};

/// How long a message waits when the store or the keyring is away: from here on, up to twice as long.
const AWAY_SECONDS: u32 = 10;
/// The same when its endpoint is slow and has no room for another attempt.
const NO_ROOM_SECONDS: u32 = 15;

impl Webhook {
    /// Handles every message of a batch, all at the same time; one fate for each, in order.
    pub(crate) async fn handle(&self, records: &[SqsMessage]) -> Vec<Fate> {
        let messages: Vec<_> = records.iter().map(read).collect();
        let accounts: BTreeSet<UserId> = messages
            .iter()
            .filter_map(|message| match message {
                Ok(QueueMessage::Attempt(dispatch)) => Some(dispatch.account_id),
                _ => None,
            })
            .collect();
        let endpoints = self.store.endpoints_of(&accounts).await.map(Endpoints::of);
        let fates = records.iter().zip(messages).map(|(record, message)| {
            let (lane, endpoints) = (self.lane(record), endpoints.as_ref());
            async move {
                match message {
                    Ok(QueueMessage::Attempt(dispatch)) => self.answer(lane, dispatch, endpoints).await,
                    Ok(QueueMessage::Probe { sent_at }) => match self.store.probed(lane, sent_at).await {
                        Ok(()) => Fate::Probed,
                        Err(error) => Fate::Failed(error.to_string()),
                    },
                    Err(error) => Fate::Failed(error),
                }
            }
        });
        join_all(fates).await
    }

    async fn answer(&self, lane: Lane, dispatch: Dispatch, endpoints: Result<&Endpoints, &StoreError>) -> Fate {
        let done = match endpoints.map(|endpoints| endpoints.plan(lane, &dispatch, self.clock.now())) {
            Ok(Plan::Attempt(endpoint, room)) => self.attempt_in_turn(lane, &dispatch, endpoint, room).await,
            Ok(Plan::Forward) => Ok(self.forward(dispatch).await),
            Ok(Plan::Hold(endpoint)) => self.hold(&dispatch, endpoint).await,
            Ok(Plan::End) => self.end(&dispatch).await,
            Err(error) => Err(error.clone()),
        };
        match done {
            Ok(fate) => fate,
            // So that an outage of any length uses up no message's receives.
            Err(error @ (StoreError::Conflict | StoreError::Unavailable(_))) => {
                self.postpone(dispatch, up_to_twice(AWAY_SECONDS), error.to_string()).await
            }
            Err(error @ (StoreError::Defect(_) | StoreError::Corrupt { .. })) => Fate::Failed(error.to_string()),
        }
    }

    async fn attempt_in_turn(
        &self,
        lane: Lane,
        dispatch: &Dispatch,
        endpoint: &Endpoint,
        room: &Semaphore,
    ) -> Result<Fate, StoreError> {
        match tokio::time::timeout(SLOW_AFTER, room.acquire()).await {
            Ok(_turn) => self.attempt(dispatch, endpoint).await,
            Err(_) if lane == Lane::First => Ok(self.forward(*dispatch).await),
            Err(_) => {
                let why = "its endpoint is slow".to_owned();
                Ok(self.postpone(*dispatch, up_to_twice(NO_ROOM_SECONDS), why).await)
            }
        }
    }

    async fn forward(&self, dispatch: Dispatch) -> Fate {
        match self.postpone(dispatch, 0, String::new()).await {
            Fate::Postponed(_) => Fate::Forwarded,
            failed => failed,
        }
    }

    /// Puts a copy of a message into the retry queue.
    pub(crate) async fn postpone(&self, dispatch: Dispatch, delay_seconds: u32, why: String) -> Fate {
        match self.queues.call_once(Lane::Retry, Call { dispatch, delay_seconds }).await {
            Ok(()) => Fate::Postponed(why),
            Err(unsent) => Fate::Failed(format!("its copy cannot be sent: {unsent}")),
        }
    }

    fn lane(&self, record: &SqsMessage) -> Lane {
        let arn = record.event_source_arn.as_deref().unwrap_or_default();
        if arn.rsplit(':').next() == Some(&self.first_queue) { Lane::First } else { Lane::Retry }
    }
}

fn read(record: &SqsMessage) -> Result<QueueMessage, String> {
    serde_json::from_str(record.body.as_deref().unwrap_or_default()).map_err(|error| format!("unreadable: {error}"))
}

/// Spread, so that what was put off together does not come back together.
fn up_to_twice(seconds: u32) -> u32 {
    seconds + getrandom::u32().unwrap_or_default() % (seconds + 1)
}
