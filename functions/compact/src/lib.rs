//! The `compact` function, triggered by a schedule: packs the change log of each stream into deltas and bases.
//!
//! Any number of runs may overlap, and any of them may die at any step: see [`base::Compaction`].

use market::Market;
use std::sync::Arc;

use base::{Columnar, Compacted, Compaction};
use market::Log;
use market::Standing;
use objects::Objects;
use platform::aws::{Missing, Patience};
use platform::metrics::{Meter, Metric};
use platform::preflight;
use platform::service::Service;
use platform::store::StoreError;
use runtime::{Error, Worker};
use serde_json::Value;
use types::clock::Clock;
use types::records::{PublicItem, PublicListing};

/// The schedule's interval.
const MINUTE_MILLIS: i64 = 60_000;

pub struct Compact {
    catalog: Compaction<PublicItem>,
    listings: Compaction<PublicListing>,
    meter: Arc<Meter>,
    clock: Arc<dyn Clock>,
}

/// Builds the function from its environment.
pub fn worker(service: &Service<'_>) -> Result<Compact, Missing> {
    let market = Market::from_service(service, Patience::Bulk, preflight::query)?;
    let objects = Objects::from_service(service, Patience::Bulk)?;
    Ok(Compact {
        catalog: Compaction::new(Log::new(market.clone()), objects.clone(), Arc::clone(&service.clock)),
        listings: Compaction::new(Log::new(market), objects, Arc::clone(&service.clock)),
        meter: Arc::clone(&service.meter),
        clock: Arc::clone(&service.clock),
    })
}

impl Worker for Compact {
    /// It is not read, because the schedule's event says nothing that matters.
    type Event = Value;
    type Response = ();

    /// Compacts one stream after the other, because each may need the memory for all of its records.
    ///
    /// The streams take turns at being the first. So if one of them takes all memory or time of a run, the other is
    /// still compacted every second minute.
    async fn work(&self, _: Value) -> Result<(), Error> {
        let is_even_minute = self.clock.now().millis() / MINUTE_MILLIS % 2 == 0;
        if is_even_minute {
            let first = self.catalog().await;
            Ok(first.and(self.listings().await)?)
        } else {
            let first = self.listings().await;
            Ok(first.and(self.catalog().await)?)
        }
    }
}

impl Compact {
    async fn catalog(&self) -> Result<(), StoreError> {
        compact_and_log(&self.meter, Metric::CatalogLogBehind, &self.catalog).await
    }

    async fn listings(&self) -> Result<(), StoreError> {
        compact_and_log(&self.meter, Metric::ListingsLogBehind, &self.listings).await
    }
}

/// Compacts a stream and logs one line about it. `behind` is the metric for the changes that lie behind the base.
async fn compact_and_log<R: Columnar>(
    meter: &Meter,
    behind: Metric,
    compaction: &Compaction<R>,
) -> Result<(), StoreError> {
    let standing = compaction.standing().await;
    let found = standing.as_ref().ok().map(Standing::behind);
    let outcome = match standing {
        Ok(standing) => compaction.run_from(standing).await,
        Err(error) => Err(error),
    };
    let mut line = meter.line(match &outcome {
        Ok(Compacted::Idle { .. }) => "the base is fresh enough",
        Ok(Compacted::Extended { .. }) => "continued the base",
        Ok(Compacted::Written { .. }) => "wrote a new base",
        Ok(Compacted::Overtaken) => "another run was first",
        Err(_) => "compaction failed",
    });
    line.member("stream", R::STREAM);
    if let Some(found) = found {
        line.gauge(behind, found);
    }
    match &outcome {
        Ok(Compacted::Extended { changes }) => line.member("changes", changes),
        Ok(Compacted::Written { records, parts, from_entities }) => {
            line.member("records", records);
            line.member("parts", parts);
            line.member("from_entities", from_entities);
        }
        _ => {}
    }
    line.known("error", outcome.as_ref().err().map(ToString::to_string).as_deref());
    line.log(outcome.is_err());
    outcome.map(drop)
}
