//! Sends an endpoint's deliveries again in bulk.

use std::cell::Cell;

use admin::webhooks::document::{SentDeliveries, SkippedDeliveries};
use admin::webhooks::{Recovery, RecoveryProgress, Selection, Survey, WebhookAdmin, WebhookAdminError};
use common::ids::EndpointId;
use common::timestamp::Timestamp;
use serde::Serialize;
use terminal::{Output, second};
use webhooks::delivery::MAX_ROUNDS;

use crate::failure::{CommandFailure, none_left_out, shortened};
use crate::interrupt::Interrupt;
use crate::progress::Progress;

/// What was found, and what became of it.
#[derive(Debug, Serialize)]
struct RecoveryReport {
    endpoint_id: EndpointId,
    dry_run: bool,
    /// The number of deliveries of each status that were found.
    held: u64,
    failed: u64,
    pending: u64,
    /// When the first and the last of them were created.
    oldest: Option<Timestamp>,
    newest: Option<Timestamp>,
    #[serde(flatten)]
    done: SentDeliveries,
}

/// Sends the selected deliveries again, or only counts them.
pub(super) async fn resend(
    admin: &WebhookAdmin,
    id: EndpointId,
    selection: &Selection,
    dry_run: bool,
    output: Output,
) -> Result<(), CommandFailure> {
    if dry_run {
        let progress = Display::start(output);
        let found = Box::pin(admin.survey(id, selection, |at| progress.show(at))).await?;
        drop(progress);
        output.print(&RecoveryReport::counted(id, &found), RecoveryReport::text)?;
        return none_left_out(&found.unreadable);
    }
    let recovery = recover(admin, id, selection, output).await?;
    output.print(&RecoveryReport::new(id, &recovery), RecoveryReport::text)?;
    complete(&recovery)
}

async fn recover(
    admin: &WebhookAdmin,
    id: EndpointId,
    selection: &Selection,
    output: Output,
) -> Result<Recovery, CommandFailure> {
    let (progress, interrupt) = (Display::start(output), Interrupt::catch());
    tokio::select! {
        biased;
        recovery = Box::pin(admin.recover(id, selection, |at| progress.show(at))) => Ok(recovery?),
        () = interrupt.interrupted() => {
            let (done, of) = progress.seen.get();
            let message = format!("interrupted: deliveries queued or skipped: {done} of {of}");
            Err(CommandFailure::new(message, "Run this command again: it sends what is left."))
        }
    }
}

/// Returns an error unless everything was sent again that could be. It has no code, because deliveries may have been sent.
fn complete(recovery: &Recovery) -> Result<(), CommandFailure> {
    let Recovery { found, sent, too_many_rounds, left, stopped_by, .. } = recovery;
    let (message, hint) = match stopped_by {
        None if *too_many_rounds == 0 => return none_left_out(&found.unreadable),
        None => (
            format!(
                "deliveries that have had {MAX_ROUNDS} rounds of attempts and cannot be sent again: {too_many_rounds}"
            ),
            "`marketctl webhooks deliveries ID` lists them, and `marketctl webhooks show DELIVERY_ID` shows a body, which you can hand to the receiver yourself.",
        ),
        Some(cause) => (
            format!("stopped: {cause}; deliveries queued: {sent}, left: {left}"),
            match cause {
                WebhookAdminError::Disabled(_) => {
                    "What is left stays as it is. Once the receiver works, run `marketctl webhooks enable ID`, then this command again."
                }
                WebhookAdminError::Removed(_) => "Its deliveries ended with it, and cannot be sent any more.",
                _ => "Run this command again: it sends what is left. `marketctl check` finds what is wrong.",
            },
        ),
    };
    Err(CommandFailure::new(shortened(&message), hint))
}

/// Shows people how far a recovery is.
struct Display {
    shown: Option<Progress>,
    /// How many deliveries were sent or skipped, and of how many.
    seen: Cell<(u64, u64)>,
}

impl Display {
    fn start(output: Output) -> Self {
        Self { shown: (output == Output::Text).then(Progress::start), seen: Cell::default() }
    }

    fn show(&self, at: RecoveryProgress) {
        if let RecoveryProgress::Sending { done, of } = at {
            self.seen.set((done, of));
        }
        let Some(progress) = &self.shown else { return };
        match at {
            RecoveryProgress::Counting { found } => progress.show_rows(found, None, "deliveries found"),
            RecoveryProgress::Sending { done, of } => progress.show_rows(done, Some(of), "deliveries"),
            RecoveryProgress::Slowed { done, of } => {
                progress.show_rows(done, Some(of), "deliveries, which wait");
            }
        }
    }
}

impl RecoveryReport {
    fn counted(endpoint_id: EndpointId, found: &Survey) -> Self {
        let Survey { held, failed, pending, span, .. } = found;
        Self {
            endpoint_id,
            dry_run: true,
            held: *held,
            failed: *failed,
            pending: *pending,
            oldest: span.map(|span| span.first),
            newest: span.map(|span| span.last),
            done: SentDeliveries { left: found.total(), ..SentDeliveries::default() },
        }
    }

    fn new(endpoint_id: EndpointId, recovery: &Recovery) -> Self {
        let done = SentDeliveries::new(recovery);
        Self { dry_run: false, done, ..Self::counted(endpoint_id, &recovery.found) }
    }

    fn text(&self) -> String {
        let Self { endpoint_id, held, failed, pending, done, .. } = self;
        if self.oldest.is_none() {
            return format!(
                "Endpoint {endpoint_id} has no such deliveries to send again. What is due within five minutes is sent by itself."
            );
        }
        let (oldest, newest) = (second(self.oldest), second(self.newest));
        let found = format!(
            "Endpoint {endpoint_id} had {held} held, {failed} failed and {pending} pending deliveries, from {oldest} to {newest}. Pending ones that are due within five minutes are not counted, and are sent by themselves."
        );
        if self.dry_run {
            return format!("{found}\nNothing was sent. Without --dry-run they are sent again.");
        }
        let SentDeliveries { sent, skipped, left } = done;
        // The bound of a day is for owners alone.
        let SkippedDeliveries { changed, too_many_rounds, expired, .. } = skipped;
        format!(
            "{found}\nQueued: {sent}. Changed meanwhile: {changed}. With too many rounds: {too_many_rounds}. \
             No longer kept: {expired}. Left: {left}."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use webhooks::store::Span;

    const ID: &str = "6f9619ff-8b86-d011-b42d-00c04fc964ff";

    fn survey() -> Survey {
        let [first, last] = ["2026-11-20T10:00:00.000Z", "2026-11-21T19:00:00.000Z"].map(|at| at.parse().unwrap());
        Survey { held: 30, failed: 4, pending: 0, span: Some(Span { first, last }), unreadable: Vec::new() }
    }

    fn recovery(stopped_by: Option<WebhookAdminError>) -> Recovery {
        let found = survey();
        Recovery {
            found,
            sent: 20,
            changed: 3,
            too_many_rounds: 2,
            expired: 1,
            left: 8,
            stopped_by,
            ..Recovery::default()
        }
    }

    fn id() -> EndpointId {
        ID.parse().unwrap()
    }

    #[test]
    fn a_recovery_that_stopped_says_why_and_what_is_left() {
        let stopped_by = |cause| complete(&recovery(Some(cause))).unwrap_err();
        let disabled = stopped_by(WebhookAdminError::Disabled(id()));
        let stopped = format!("error: stopped: endpoint {ID} is disabled; deliveries queued: 20, left: 8\n");
        let text = disabled.text();
        assert!(text.starts_with(&stopped) && text.contains("webhooks enable ID"), "{text}");
        // Deliveries were sent, so the audit line must not take it for a refusal.
        assert_eq!(disabled.code(), None);
        let text = stopped_by(WebhookAdminError::Removed(id())).text();
        assert!(text.contains("was removed") && text.contains("ended with it"), "{text}");
        let text = complete(&recovery(None)).unwrap_err().text();
        assert!(text.starts_with("error: deliveries that have had 100 rounds"), "{text}");
        assert!(complete(&Recovery { found: survey(), sent: 34, ..Recovery::default() }).is_ok());
    }
}
