//! What becomes of a message.

use aws_lambda_events::sqs::SqsMessage;
use shared::webhooks::Unsent;

/// What becomes of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The endpoint acknowledged the attempt.
    Delivered,
    /// The attempt failed, and what follows from that is on record.
    Unacknowledged,
    /// The delivery is held: its endpoint is off.
    Held,
    /// The delivery has moved on, or has ended.
    Void,
    /// A copy lies in the retry queue, without an attempt: the endpoint is slow or busy.
    Forwarded,
    /// A copy lies in the retry queue: somebody else makes the attempt, or what is needed for it is away.
    Postponed(String),
    /// It told how far behind its queue is.
    Probed,
    /// It stays in its queue, and after a few receives it is moved to the dead-letter queue.
    Failed(String),
}

impl Fate {
    /// The fate of a message whose copy cannot be sent.
    pub(crate) fn uncopied(unsent: &Unsent) -> Self {
        Self::Failed(format!("its copy cannot be sent: {unsent}"))
    }
}

/// One line for the batch, and one for each message that failed; never a body, a URL or a secret.
pub(crate) fn log(records: &[SqsMessage], fates: &[Fate]) {
    for (record, fate) in records.iter().zip(fates) {
        if let Fate::Failed(error) = fate {
            tracing::error!(message_id = record.message_id.as_deref(), error, "failed");
        }
    }
    let count = |is: fn(&Fate) -> bool| fates.iter().filter(|fate| is(fate)).count();
    let because = fates.iter().find_map(|fate| if let Fate::Postponed(why) = fate { Some(why) } else { None });
    tracing::info!(
        received = fates.len(),
        delivered = count(|fate| matches!(fate, Fate::Delivered)),
        unacknowledged = count(|fate| matches!(fate, Fate::Unacknowledged)),
        held = count(|fate| matches!(fate, Fate::Held)),
        void = count(|fate| matches!(fate, Fate::Void)),
        forwarded = count(|fate| matches!(fate, Fate::Forwarded)),
        postponed = count(|fate| matches!(fate, Fate::Postponed(_))),
        postponed_because = because,
        failed = count(|fate| matches!(fate, Fate::Failed(_))),
        "batch"
    );
}
