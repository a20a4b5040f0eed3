//! What becomes of a message.

use aws_lambda_events::sqs::SqsMessage;
use shared::feed::{Applied, Rejection};
use shared::metrics::{Meter, Unit};
use shared::store::StoreError;

use crate::outbox::times_postponed;

/// What becomes of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It changed something.
    Changed,
    /// What was there is as new.
    Unchanged,
    /// It is invalid and goes to the dead-letter queue.
    Refused(Rejection),
    /// The store was busy or away, which says nothing about the message: it goes to the end of the queue
    /// instead of using up its receives.
    Postponed(String),
    /// It stays in the queue, and after a few receives it is moved to the dead-letter queue as it is.
    Failed(String),
}

impl From<Result<Applied, StoreError>> for Fate {
    fn from(outcome: Result<Applied, StoreError>) -> Self {
        match outcome {
            Ok(Applied::Changed) => Self::Changed,
            Ok(Applied::Unchanged) => Self::Unchanged,
            Ok(Applied::Rejected(rejection)) => Self::Refused(rejection),
            Err(error @ (StoreError::Conflict | StoreError::Unavailable(_))) => Self::Postponed(error.to_string()),
            Err(error @ (StoreError::Defect(_) | StoreError::Corrupt { .. })) => Self::Failed(error.to_string()),
        }
    }
}

/// A message that was put off so often, for half an hour or more, is told by itself.
const STUCK: u64 = 12;

/// One line for the batch, and one for each message that could not be applied; never a body.
pub(crate) fn log(meter: &Meter, records: &[SqsMessage], fates: &[Fate]) {
    for (record, fate) in records.iter().zip(fates) {
        let message_id = record.message_id.as_deref();
        match fate {
            Fate::Refused(Rejection { field, reason }) => tracing::warn!(message_id, field, reason, "refused"),
            Fate::Failed(error) => tracing::error!(message_id, error, "failed"),
            Fate::Postponed(reason) => {
                let times = u64::from(times_postponed(record)) + 1;
                if times >= STUCK {
                    tracing::warn!(message_id, times, reason, "postponed again and again");
                }
            }
            Fate::Changed | Fate::Unchanged => {}
        }
    }
    let count = |is: fn(&Fate) -> bool| fates.iter().filter(|fate| is(fate)).count() as u64;
    let because = fates.iter().find_map(|fate| if let Fate::Postponed(error) = fate { Some(error) } else { None });
    let postponed = records.iter().zip(fates).filter(|(_, fate)| matches!(fate, Fate::Postponed(_)));
    let times: Vec<u64> = postponed.map(|(record, _)| u64::from(times_postponed(record)) + 1).collect();
    let mut line = meter.line("batch");
    line.member("received", &fates.len());
    line.count("Changed", count(|fate| matches!(fate, Fate::Changed)));
    line.count("Unchanged", count(|fate| matches!(fate, Fate::Unchanged)));
    line.count("Refused", count(|fate| matches!(fate, Fate::Refused(_))));
    line.count("Postponed", times.len() as u64);
    line.samples("PostponedTimes", Unit::Count, &times);
    line.known("postponed_because", because);
    line.count("Failed", count(|fate| matches!(fate, Fate::Failed(_))));
    line.log(false);
}
