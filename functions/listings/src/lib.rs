//! `GET /v1/public/listings`: returns a page of the active listings, filtered and sorted.

use std::time::Duration;

use api::error::ApiError;
use api::routes::Route;
use api::{Anyone, Api, Endpoint, Input, Params, params, routes};
use api::{PAGE, PAGE_SIZE, State, Stated};
use common::aws::{Missing, Patience};
use common::paging::{Paged, Paging};
use common::preflight;
use common::records::PublicListing;
use common::runtime::Service;
use market::Log;
use market::Market;
use replica::objects::Objects;
use replica::{ListingQuery, Listings, Replica};

pub struct SearchListings {
    replica: Replica<Listings>,
}

#[derive(Clone, Debug)]
pub struct ListingsInput {
    query: ListingQuery,
    paging: Paging,
}

impl Input for ListingsInput {
    const QUERY: &'static [&'static str] =
        &["item_id", "variant_id", "min_price", "max_price", "sort", PAGE, PAGE_SIZE];

    fn read(params: &mut Params<'_>) -> Option<Self> {
        let query = ListingQuery {
            item_id: params.query("item_id", params::text),
            variant_id: params.query("variant_id", params::variant_id),
            min_price: params.query("min_price", params::usd),
            max_price: params.query("max_price", params::usd),
            sort: params.query("sort", params::one_of).unwrap_or_default(),
        };
        if query.min_price.zip(query.max_price).is_some_and(|(min, max)| min > max) {
            params.inverted("min_price");
        }
        Some(Self { query, paging: api::paging(params) })
    }
}

impl Endpoint for SearchListings {
    const ROUTE: Route = routes::LISTINGS;
    type Caller = Anyone;
    type Input = ListingsInput;
    type Output = Stated<Paged<PublicListing>>;

    async fn read(&self, _: Anyone, input: ListingsInput) -> Result<Self::Output, ApiError> {
        let ((items, total), seq, as_of) =
            self.replica.read_positioned(|listings| listings.page(&input.query, input.paging)).await?;
        Ok(Stated { body: input.paging.envelope(items, total), state: State::LogPosition { seq, as_of } })
    }

    fn state(output: &Self::Output) -> State {
        output.state
    }

    fn replica_age(&self) -> Option<Duration> {
        self.replica.age()
    }

    async fn warm_up(&self) -> Result<(), String> {
        self.replica.warm_up().await
    }
}

pub fn api(service: &Service<'_>) -> Result<Api<SearchListings>, Missing> {
    let replica = Replica::new(
        Log::new(Market::from_service(service, Patience::Request, preflight::query)?),
        Objects::from_service(service, Patience::Request)?,
        service.clock.clone(),
    );
    Api::from_service(service, SearchListings { replica })
}
