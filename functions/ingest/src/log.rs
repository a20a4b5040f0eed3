//! What a batch tells in the log.

use aws_lambda_events::sqs::SqsMessage;
use feed::Rejection;
use platform::metrics::{Meter, Unit};

use crate::fate::Fate;
use crate::outbox::times_postponed;

/// A message that is postponed this often gets a log line of its own. By then it has waited for 23 to 47 minutes.
const STUCK: u64 = 12;

/// Logs one line for the batch, and one for each message that was refused, failed or is postponed again and again. No
/// line contains a message's body.
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
