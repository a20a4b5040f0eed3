//! Every command of the account's settings.

use super::Used;
use crate::account::Settings;

pub(super) async fn made() -> Used {
    let settings = Settings::new().await;
    settings.walk().await;
    settings.stack.ledger.used()
}
