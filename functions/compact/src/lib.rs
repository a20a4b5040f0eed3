//! The compaction: triggered by a schedule, it folds each stream's log into a new base where one is due.
//!
//! Any number of runs may go on at once, and any of them may die at any step: see [`shared::market::Compaction`].

use std::sync::Arc;

use serde_json::Value;
use shared::aws::{Missing, Patience};
use shared::look;
use shared::market::{Compacted, Compaction, Log, Record};
use shared::model::{PublicItem, PublicListing};
use shared::service::{Error, Service, Worker};
use shared::store::StoreError;

/// The function.
pub struct Compact {
    catalog: Compaction<PublicItem>,
    listings: Compaction<PublicListing>,
}

/// The function as its environment describes it.
pub fn worker(service: &Service<'_>) -> Result<Compact, Missing> {
    let market = service.market(Patience::Bulk, look::query)?;
    Ok(Compact {
        catalog: Compaction::new(Log::new(market.clone()), Arc::clone(&service.clock)),
        listings: Compaction::new(Log::new(market), Arc::clone(&service.clock)),
    })
}

impl Worker for Compact {
    /// Nothing in it matters.
    type Event = Value;
    type Response = ();

    /// Streams one after the other: each may need the memory of a whole one.
    async fn work(&self, _: Value) -> Result<(), Error> {
        let catalog = told::<PublicItem>(self.catalog.run().await);
        let listings = told::<PublicListing>(self.listings.run().await);
        Ok(catalog.and(listings)?)
    }
}

/// One log line for each stream.
fn told<R: Record>(outcome: Result<Compacted, StoreError>) -> Result<(), StoreError> {
    let stream = R::STREAM;
    match &outcome {
        Ok(Compacted::Idle { behind }) => tracing::info!(stream, behind, "the base is fresh enough"),
        Ok(Compacted::Written { records, chunks, from_entities }) => {
            tracing::info!(stream, records, chunks, from_entities, "a new base");
        }
        Ok(Compacted::Overtaken) => tracing::info!(stream, "another run was first"),
        Err(error) => tracing::error!(stream, %error, "no new base"),
    }
    outcome.map(drop)
}
