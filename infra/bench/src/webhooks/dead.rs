//! Measures what a delivery costs that is never acknowledged: seven attempts, the switch-off, the notice.

use std::num::NonZeroU32;
use std::time::Duration;

use local::meter::Bill;
use serde::Serialize;
use webhooks::endpoint::Switch;

use super::load::{account, burst};
use super::receiver::Receiver;
use super::stack::MeteredStack;
use crate::output::text;

const ENDPOINTS: u64 = 20;
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Divides every delay of the retry schedule down to one second.
const TIME_SCALE: NonZeroU32 = NonZeroU32::new(86_400).expect("not zero");

/// The calls for deliveries that are never acknowledged, including the sweep's searches.
#[derive(Debug, Serialize)]
pub(super) struct NeverAcknowledged {
    pub(super) deliveries: u64,
    pub(super) attempts: u64,
    pub(super) bill: Bill,
}

pub(super) async fn measure() -> Result<NeverAcknowledged, String> {
    let (stack, receiver) = (MeteredStack::start().await?, Receiver::start().await?);
    for number in 0..ENDPOINTS {
        stack.add(account(number), format!("{}/fail", receiver.url)).await?;
    }
    let running = stack.functions(TIME_SCALE).await?;
    stack.meter.take();
    burst(&stack, ENDPOINTS, 0..ENDPOINTS).await?;
    let admin = stack.admin()?;
    for number in 0..ENDPOINTS {
        while admin.list(account(number)).await.map_err(text)?.readable.iter().any(|one| one.switch == Switch::On) {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
    let bill = stack.meter.take();
    drop(running);
    Ok(NeverAcknowledged { deliveries: ENDPOINTS, attempts: receiver.take().await?.hanging, bill })
}
