//! `GET /v1/public/catalog`: searches the items and returns a page of them, ordered by name.

use std::time::Duration;

use api::error::ApiError;
use api::routes::Route;
use api::{Anyone, Api, Endpoint, Input, Params, params, routes};
use api::{PAGE, PAGE_SIZE, State, Stated};
use common::aws::{Missing, Patience};
use common::paging::{Paged, Paging};
use common::preflight;
use common::records::PublicItem;
use common::runtime::Service;
use market::Log;
use market::Market;
use replica::objects::Objects;
use replica::{Catalog, CatalogQuery, Replica};

pub struct SearchCatalog {
    replica: Replica<Catalog>,
}

#[derive(Clone, Debug)]
pub struct CatalogInput {
    query: CatalogQuery,
    paging: Paging,
}

impl Input for CatalogInput {
    const QUERY: &'static [&'static str] = &["q", "kind", PAGE, PAGE_SIZE];

    fn read(params: &mut Params<'_>) -> Option<Self> {
        let q = params.query("q", |value| Ok(value.to_owned())).unwrap_or_default();
        let kind = params.query("kind", params::text);
        Some(Self { query: CatalogQuery { q, kind }, paging: api::paging(params) })
    }
}

impl Endpoint for SearchCatalog {
    const ROUTE: Route = routes::CATALOG;
    type Caller = Anyone;
    type Input = CatalogInput;
    type Output = Stated<Paged<PublicItem>>;

    async fn read(&self, _: Anyone, input: CatalogInput) -> Result<Self::Output, ApiError> {
        let ((items, total), seq, as_of) =
            self.replica.read_positioned(|catalog| catalog.page(&input.query, input.paging)).await?;
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

pub fn api(service: &Service<'_>) -> Result<Api<SearchCatalog>, Missing> {
    let replica = Replica::new(
        Log::new(Market::from_service(service, Patience::Request, preflight::query)?),
        Objects::from_service(service, Patience::Request)?,
        service.clock.clone(),
    );
    Api::from_service(service, SearchCatalog { replica })
}
