//! A batch of messages: one reading of their endpoints, then each by itself.

use std::collections::{BTreeSet, HashMap};

use aws_lambda_events::sqs::SqsMessage;
use futures_util::future::join_all;
use shared::ids::UserId;
use shared::store::StoreError;
use shared::webhooks::delivery::{Dispatch, Lane};
use shared::webhooks::endpoint::Endpoint;
use shared::webhooks::{Call, QueueMessage};

use crate::Webhook;
use crate::fate::Fate;
use crate::plan::{Plan, plans};

/// How long a message waits when the store or the keyring is away: from here on, up to twice as long.
const AWAY_SECONDS: u32 = 10;

impl Webhook {
    /// Handles every message of a batch, all at the same time; one fate for each, in order.
    pub(crate) async fn handle(&self, records: &[SqsMessage]) -> Vec<Fate> {
        let messages: Vec<_> = records.iter().map(|record| (self.lane(record), read(record))).collect();
        let dispatches = messages.iter().filter_map(|(lane, message)| match message {
            Ok(QueueMessage::Attempt(dispatch)) => Some((*lane, *dispatch)),
            _ => None,
        });
        let dispatches: Vec<(Lane, Dispatch)> = dispatches.collect();
        let out_of_lane = messages.iter().filter_map(|(lane, message)| match message {
            Ok(QueueMessage::Probe { sent_at }) => Some(self.store.probed(*lane, *sent_at)),
            _ => None,
        });
        let (called, probed) = tokio::join!(self.answer(&dispatches), join_all(out_of_lane));
        let (mut called, mut probed) = (called.into_iter(), probed.into_iter());
        let fates = messages.into_iter().map(|(_, message)| match message {
            Ok(QueueMessage::Attempt(_)) => called.next(),
            Ok(QueueMessage::Probe { .. }) => probed.next().map(probe_fate),
            Err(error) => Some(Fate::Failed(error)),
        });
        fates.map(|fate| fate.unwrap_or_else(|| Fate::Failed("it was not handled".to_owned()))).collect()
    }

    /// One fate for each call, in order.
    async fn answer(&self, dispatches: &[(Lane, Dispatch)]) -> Vec<Fate> {
        let accounts: BTreeSet<UserId> = dispatches.iter().map(|(_, dispatch)| dispatch.account_id).collect();
        if accounts.is_empty() {
            return Vec::new();
        }
        match self.store.endpoints_of(&accounts).await {
            Ok(endpoints) => self.answer_with(dispatches, &endpoints).await,
            Err(error) => join_all(dispatches.iter().map(|(_, dispatch)| self.put_off(*dispatch, &error))).await,
        }
    }

    async fn answer_with(
        &self,
        dispatches: &[(Lane, Dispatch)],
        endpoints: &HashMap<UserId, Vec<Endpoint>>,
    ) -> Vec<Fate> {
        // A batch comes out of one queue.
        let lane = dispatches.first().map_or(Lane::Retry, |(lane, _)| *lane);
        let plans = plans(lane, dispatches.iter().map(|(_, dispatch)| *dispatch), endpoints, self.clock.now());
        let planned: Vec<_> = dispatches.iter().map(|(_, dispatch)| *dispatch).zip(plans).collect();
        let forwards = planned.iter().filter(|(_, plan)| matches!(plan, Plan::Forward));
        let forwards: Vec<Call> =
            forwards.map(|(dispatch, _)| Call { dispatch: *dispatch, delay_seconds: 0 }).collect();
        let others = planned.iter().filter(|(_, plan)| !matches!(plan, Plan::Forward));
        let others = join_all(others.map(|(dispatch, plan)| self.carry_out(dispatch, *plan)));
        let (forwarded, others) = tokio::join!(self.queues.call(Lane::Retry, &forwards), others);
        let (mut forwarded, mut others) = (forwarded.into_iter(), others.into_iter());
        let fates = planned.iter().map(|(_, plan)| match plan {
            Plan::Forward => forwarded.next().map(|sent| match sent {
                Ok(()) => Fate::Forwarded,
                Err(unsent) => Fate::Failed(format!("its copy cannot be sent: {unsent}")),
            }),
            _ => others.next(),
        });
        fates.map(|fate| fate.unwrap_or(Fate::Void)).collect()
    }

    async fn carry_out(&self, dispatch: &Dispatch, plan: Plan<'_>) -> Fate {
        let done = match plan {
            Plan::Attempt(endpoint) => self.attempt(dispatch, endpoint).await,
            Plan::Hold(endpoint) => self.hold(dispatch, endpoint).await,
            Plan::End => self.end(dispatch).await,
            Plan::Forward => Ok(Fate::Forwarded),
        };
        match done {
            Ok(fate) => fate,
            Err(error) => self.put_off(*dispatch, &error).await,
        }
    }

    /// Puts off what the store did not allow, so that an outage of any length uses up no message's receives.
    async fn put_off(&self, dispatch: Dispatch, error: &StoreError) -> Fate {
        match error {
            StoreError::Conflict | StoreError::Unavailable(_) => {
                let jitter = getrandom::u32().unwrap_or_default() % (AWAY_SECONDS + 1);
                self.postpone(dispatch, AWAY_SECONDS + jitter, error.to_string()).await
            }
            StoreError::Defect(_) | StoreError::Corrupt { .. } => Fate::Failed(error.to_string()),
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

fn probe_fate(probed: Result<(), StoreError>) -> Fate {
    match probed {
        Ok(()) => Fate::Probed,
        Err(error) => Fate::Failed(error.to_string()),
    }
}
