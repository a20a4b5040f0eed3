//! The `compact` function, triggered by a schedule: packs the change log of each stream into deltas and bases.
//!
//! Any number of runs may overlap, and any of them may die at any step: see [`replica::base::Compaction`].

use market::Market;
use std::sync::Arc;

use common::aws::{Missing, Patience};
use common::clock::Clock;
use common::metrics::{Meter, Metric};
use common::preflight;
use common::records::{PublicItem, PublicListing};
use common::runtime::{Error, Service, Worker, catch_panic, names_no_rule};
use common::store::StoreError;
use market::Log;
use market::Standing;
use replica::base::{Columnar, Compacted, Compaction};
use replica::objects::Objects;
use serde_json::Value;

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
    /// The schedule's event says nothing that matters. One that names no rule only finds out whether the function starts.
    type Event = Value;
    type Response = ();

    /// Compacts one stream after the other, because each may need most of the memory.
    ///
    /// The streams take turns at being the first. So if one of them takes all memory or time of a run, the other is
    /// still compacted every second minute.
    async fn work(&self, event: Value) -> Result<(), Error> {
        if names_no_rule(&event) {
            return Ok(());
        }
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

/// A part of a run has panicked, which the log says. The run fails, after that of the other stream.
fn panicked<T>() -> Result<T, StoreError> {
    Err(StoreError::Defect("a compaction panicked".to_owned()))
}

/// Compacts a stream and logs one line about it. `behind` is the metric for the changes that lie behind the base.
async fn compact_and_log<R: Columnar>(
    meter: &Meter,
    behind: Metric,
    compaction: &Compaction<R>,
) -> Result<(), StoreError> {
    let standing = catch_panic(Box::pin(compaction.standing())).await.unwrap_or_else(panicked);
    let found = standing.as_ref().ok().map(Standing::behind);
    let outcome = match standing {
        Ok(standing) => catch_panic(Box::pin(compaction.run_from(standing))).await.unwrap_or_else(panicked),
        Err(error) => Err(error),
    };
    let mut line = meter.line(match &outcome {
        Ok(Compacted::Idle { .. }) => "the base is fresh enough",
        Ok(Compacted::Extended { .. }) => "continued the base",
        Ok(Compacted::Reading { .. }) => "read a part of the entities",
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
        Ok(Compacted::Reading { records }) => line.member("records", records),
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
