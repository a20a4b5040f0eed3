//! What a batch tells in the log.

use aws_lambda_events::sqs::SqsMessage;
use common::metrics::{Meter, Metric};
use feed::Rejection;

use crate::copies::times_postponed;
use crate::outcome::MessageOutcome;

/// A message that is postponed this often gets a log line of its own. By then it has waited for 23 to 47 minutes.
const STUCK_POSTPONEMENTS: u64 = 12;

/// Logs one line for the batch, and one for each message that was refused, met a defect, failed or is postponed again
/// and again. No line contains a message's body.
pub(crate) fn log(meter: &Meter, records: &[SqsMessage], outcomes: &[MessageOutcome]) {
    for (record, outcome) in records.iter().zip(outcomes) {
        let message_id = record.message_id.as_deref();
        match outcome {
            MessageOutcome::Refused(Rejection { field, reason, others }) => {
                let others: Vec<_> = others.iter().map(ToString::to_string).collect();
                let others = (!others.is_empty()).then(|| others.join("; "));
                tracing::warn!(message_id, field, reason, others, "refused");
            }
            MessageOutcome::Defective(defect) => tracing::error!(message_id, defect, "defective"),
            MessageOutcome::Failed(error) => tracing::error!(message_id, error, "failed"),
            MessageOutcome::Postponed(reason) => {
                let times = u64::from(times_postponed(record)) + 1;
                if times >= STUCK_POSTPONEMENTS {
                    tracing::warn!(message_id, times, reason, "postponed again and again");
                }
            }
            MessageOutcome::Changed | MessageOutcome::Unchanged => {}
        }
    }
    let count = |is: fn(&MessageOutcome) -> bool| outcomes.iter().filter(|outcome| is(outcome)).count() as u64;
    let because = outcomes
        .iter()
        .find_map(|outcome| if let MessageOutcome::Postponed(error) = outcome { Some(error) } else { None });
    let postponed = records.iter().zip(outcomes).filter(|(_, outcome)| matches!(outcome, MessageOutcome::Postponed(_)));
    let times: Vec<u64> = postponed.map(|(record, _)| u64::from(times_postponed(record)) + 1).collect();
    let mut line = meter.line("batch");
    line.member("received", &outcomes.len());
    line.count(Metric::Changed, count(|outcome| matches!(outcome, MessageOutcome::Changed)));
    line.count(Metric::Unchanged, count(|outcome| matches!(outcome, MessageOutcome::Unchanged)));
    line.count(Metric::Refused, count(|outcome| matches!(outcome, MessageOutcome::Refused(_))));
    line.count(Metric::Postponed, times.len() as u64);
    line.samples(Metric::PostponedTimes, &times);
    line.known("postponed_because", because);
    line.count(Metric::Defects, count(|outcome| matches!(outcome, MessageOutcome::Defective(_))));
    line.count(Metric::Failed, count(|outcome| matches!(outcome, MessageOutcome::Failed(_))));
    line.log(false);
}
