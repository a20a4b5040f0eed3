//! Waits for the attempt of a delivery that was just queued, and tells how it ended.

use std::time::Duration;

use admin::webhooks::WebhookAdmin;
use admin::webhooks::document::{DeliveryDocument, DeliveryOfUser, SentDelivery};
use common::ids::DeliveryId;
use terminal::Output;
use tokio::time::{Instant, sleep};
use webhooks::delivery::{Delivery, Status};

use super::show;
use crate::failure::CommandFailure;

/// More than an attempt takes, and a minute until a sweep finds what no message calls for.
const LIMIT: Duration = Duration::from_mins(2);
const PAUSE: Duration = Duration::from_millis(250);

/// Waits, and prints the delivery. It is an error if the endpoint has not acknowledged it.
pub(super) async fn wait(admin: &WebhookAdmin, id: DeliveryId, output: Output) -> Result<(), CommandFailure> {
    let Some(delivery) = attempted(admin, id).await? else {
        output.print(&SentDelivery { delivery_id: id }, show::queued)?;
        return Err(CommandFailure::new(
            format!("no attempt of delivery {id} was made within {} s", LIMIT.as_secs()),
            "It is still queued. `marketctl check` finds what is wrong.",
        ));
    };
    let shown = DeliveryDocument::new(&delivery, admin.clock.now());
    output.print(&DeliveryOfUser::new(&delivery, shown), show::delivery)?;
    if delivery.progress.status == Status::Delivered {
        return Ok(());
    }
    // Attempts of earlier rounds say nothing about this one.
    let last = delivery.progress.attempts.last().filter(|_| delivery.progress.failed_attempts > 0);
    let (why, hint) = match last.map(|attempt| (attempt.status, attempt.error.as_deref())) {
        Some((_, Some(error))) => (error.to_owned(), "Mend the receiver, then send it again."),
        Some((Some(status), None)) => {
            (format!("the receiver answered {status}"), "Mend the receiver, then send it again.")
        }
        _ => (
            "no attempt was made".to_owned(),
            "`marketctl webhooks show-endpoint ID` shows whether its endpoint is on.",
        ),
    };
    Err(CommandFailure::new(format!("delivery {id} was not acknowledged: {why}"), hint))
}

/// Returns the delivery once the first attempt of its round is over, or nothing if that takes too long.
async fn attempted(admin: &WebhookAdmin, id: DeliveryId) -> Result<Option<Delivery>, CommandFailure> {
    let deadline = Instant::now() + LIMIT;
    loop {
        let delivery = admin.delivery(id).await?;
        if delivery.progress.status != Status::Pending || delivery.progress.failed_attempts > 0 {
            return Ok(Some(delivery));
        }
        if Instant::now() > deadline {
            return Ok(None);
        }
        sleep(PAUSE).await;
    }
}
