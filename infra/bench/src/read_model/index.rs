//! Measures the index alone: what a page and its total take once the replica is loaded.

use market::Market;
use std::sync::Arc;

use market::Log;
use objects::Objects;
use platform::aws::Patience;
use platform::preflight;
use platform::service::Service;
use replica::Replica;
use serde::Serialize;
use types::clock::{Clock, ManualClock, SystemClock};
use types::paging::Paging;

use super::samples::Samples;
use super::subject::{Depth, QuestionKind, Subject};
use crate::aws_side::AwsProcess;
use crate::output::text;
use crate::percentiles::Percentiles;

/// What one kind of question takes at one depth.
#[derive(Clone, Debug, Serialize)]
pub(super) struct IndexTimes {
    pub(super) depth: Depth,
    pub(super) cpu: Percentiles,
}

/// How the index answers a kind of question.
pub(super) struct IndexedKind {
    /// The total of each question of this kind.
    pub(super) totals: Vec<usize>,
    pub(super) answered: Vec<IndexTimes>,
}

/// Asks every kind at every depth.
pub(super) async fn measure<S: Subject>(
    aws: &AwsProcess,
    kinds: &[QuestionKind<S::Query>],
) -> Result<Vec<IndexedKind>, String> {
    // The clock stands still, so that no catch-up becomes due.
    let clock = Arc::new(ManualClock::at(SystemClock::new().now()));
    let lookup = |name: &str| aws.variables.get(name);
    let (market, objects) = {
        let service = Service::new(&lookup, clock.clone()).map_err(text)?;
        let market = Market::from_service(&service, Patience::Request, preflight::query).map_err(text)?;
        (market, Objects::from_service(&service, Patience::Request).map_err(text)?)
    };
    let replica = Replica::<S::View>::new(Log::new(market), objects, clock);
    let mut indexed = Vec::with_capacity(kinds.len());
    for kind in kinds {
        indexed.push(ask::<S>(&replica, kind).await.map_err(|error| format!("{}: {error:?}", kind.name))?);
    }
    Ok(indexed)
}

async fn ask<S: Subject>(
    replica: &Replica<S::View>,
    kind: &QuestionKind<S::Query>,
) -> Result<IndexedKind, api::error::ApiError> {
    let read = async |query: &S::Query, paging: Paging| replica.read(|view| S::page(view, query, paging)).await;
    let mut totals = Vec::with_capacity(kind.queries.len());
    for query in &kind.queries {
        totals.push(read(query, Depth::First.paging(0)).await?);
    }
    let mut answered = Vec::with_capacity(Depth::ALL.len());
    for depth in Depth::ALL {
        let mut samples = Samples::new();
        let mut questions = kind.queries.iter().zip(&totals).cycle();
        while let (Some((query, total)), Some(sample)) = (questions.next(), samples.next()) {
            read(query, depth.paging(*total)).await?;
            samples.end(&sample);
        }
        answered.push(IndexTimes { depth, cpu: samples.cpu() });
    }
    Ok(IndexedKind { totals, answered })
}
