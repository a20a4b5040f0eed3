//! Puts a market into the tables the way `marketctl import` does.

use feed::{Applier, ApplyOutcome, Message};
use indicatif::ProgressBar;
use local::seed::StackAdmin;
use types::clock::{Clock, SystemClock};

use super::GeneratedMarket;

/// The number of items, and of listings, that are applied at a time.
const CHUNK_RECORDS: u64 = 2_000;

/// Applies every item and listing.
pub(crate) async fn fill(admin: &StackAdmin, market: &GeneratedMarket, bar: &ProgressBar) -> Result<(), String> {
    let clock = SystemClock::new();
    let mut applier = Applier::new(admin.stores());
    for start in (0..market.size()).step_by(CHUNK_RECORDS as usize) {
        let numbers = || start..(start + CHUNK_RECORDS).min(market.size());
        let items = numbers().filter_map(|number| Some(Message::Item(market.item(number)?, 1)));
        let listings = numbers().filter_map(|number| Some(Message::Listing(market.listing(number)?, 1)));
        let messages: Vec<_> = items.chain(listings).map(|message| ((), message)).collect();
        for ((), outcome) in applier.apply(messages, clock.now()).await {
            match outcome {
                Ok(ApplyOutcome::Changed) => bar.inc(1),
                other => return Err(format!("filling: {other:?}")),
            }
        }
    }
    Ok(())
}
