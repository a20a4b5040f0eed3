//! What becomes of a message.

use aws_lambda_events::sqs::SqsMessage;
use platform::metrics::{Meter, Unit};
use webhooks::Unsent;

/// What becomes of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The endpoint acknowledged the attempt.
    Delivered,
    /// The attempt failed, and what follows from that is on record.
    Unacknowledged,
    /// The same, and it was the delivery's last.
    Exhausted,
    /// The same, and its endpoint was switched off for it.
    SwitchedOff,
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
pub(crate) fn log(meter: &Meter, records: &[SqsMessage], fates: &[Fate], waits: &[u64]) {
    for (record, fate) in records.iter().zip(fates) {
        if let Fate::Failed(error) = fate {
            tracing::error!(message_id = record.message_id.as_deref(), error, "failed");
        }
    }
    let count = |is: fn(&Fate) -> bool| fates.iter().filter(|fate| is(fate)).count() as u64;
    let because = fates.iter().find_map(|fate| if let Fate::Postponed(why) = fate { Some(why) } else { None });
    let mut line = meter.line("batch");
    line.member("received", &fates.len());
    line.count("Delivered", count(|fate| matches!(fate, Fate::Delivered)));
    line.count(
        "Unacknowledged",
        count(|fate| matches!(fate, Fate::Unacknowledged | Fate::Exhausted | Fate::SwitchedOff)),
    );
    line.count("Exhausted", count(|fate| matches!(fate, Fate::Exhausted | Fate::SwitchedOff)));
    line.count("SwitchedOff", count(|fate| matches!(fate, Fate::SwitchedOff)));
    line.count("Held", count(|fate| matches!(fate, Fate::Held)));
    line.member("void", &count(|fate| matches!(fate, Fate::Void)));
    line.member("forwarded", &count(|fate| matches!(fate, Fate::Forwarded)));
    line.count("Postponed", count(|fate| matches!(fate, Fate::Postponed(_))));
    line.known("postponed_because", because);
    line.count("Failed", count(|fate| matches!(fate, Fate::Failed(_))));
    line.samples("EventToPost", Unit::Milliseconds, waits);
    line.log(false);
}
