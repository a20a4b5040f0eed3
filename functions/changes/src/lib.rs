//! `GET /v1/public/listings/changes`: returns what has changed in the active listings since a position of their log.
//!
//! It reads the log itself, so it needs no replica, and an answer shows everything that was committed before it was asked.

use std::sync::Arc;

use api::error::{ApiError, FieldCode, FieldError};
use api::routes::Route;
use api::{Anyone, Api, Endpoint, Input, Params, State, Stated, params, routes};
use common::aws::{Missing, Patience};
use common::clock::Clock;
use common::preflight;
use common::records::{ListingChange, ListingChanges, PublicListing};
use common::runtime::Service;
use market::{Change, Changes, Log, Market};
use serde_json::json;

pub struct FollowListings {
    log: Log<PublicListing>,
    clock: Arc<dyn Clock>,
}

/// A position in the log of changes.
#[derive(Clone, Copy, Debug)]
pub struct After(u64);

const AFTER: &str = "after";

impl Input for After {
    const QUERY: &'static [&'static str] = &[AFTER];

    fn read(params: &mut Params<'_>) -> Option<Self> {
        params.required(AFTER, params::position).map(Self)
    }
}

impl Endpoint for FollowListings {
    const ROUTE: Route = routes::CHANGES;
    type Caller = Anyone;
    type Input = After;
    type Output = Stated<ListingChanges>;

    async fn read(&self, _: Anyone, After(after): After) -> Result<Self::Output, ApiError> {
        let (changes, as_of) = self.log.changes(after, &*self.clock).await?;
        match changes {
            Changes::Page { batches, position, more } => {
                let changes =
                    batches.into_iter().flat_map(|(seq, batch)| batch.into_iter().map(move |it| shown(seq, it)));
                let body = ListingChanges { changes: changes.collect(), position, more };
                Ok(Stated { body, state: State::LogPosition { seq: position, as_of } })
            }
            Changes::Expired => Err(ApiError::PositionExpired(after)),
            Changes::Beyond { head } => {
                // Whoever takes the highest one instead would miss what lies between.
                let expected = format!(
                    "a position of this log, which ends at {head}; if it was one, the log was begun anew, so walk again"
                );
                let bounds = [("min", json!(0)), ("max", json!(head)), ("expected", json!(expected))];
                Err(ApiError::Invalid(vec![FieldError::new(AFTER, FieldCode::OutOfRange, bounds)]))
            }
        }
    }

    fn state(output: &Self::Output) -> State {
        output.state
    }
}

fn shown(position: u64, change: Change<PublicListing>) -> ListingChange {
    let (listing, removed) = match change {
        Change::Put(listing) => (Some(listing), None),
        Change::Remove(id) => (None, Some(id)),
    };
    ListingChange { position, listing, removed }
}

pub fn api(service: &Service<'_>) -> Result<Api<FollowListings>, Missing> {
    let market = Market::from_service(service, Patience::Request, preflight::query)?;
    Api::from_service(service, FollowListings { log: Log::new(market), clock: Arc::clone(&service.clock) })
}
