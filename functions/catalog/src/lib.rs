//! `GET /v1/public/catalog`: items by name, searched and paged.

use shared::aws::{Missing, Patience};
use shared::error::ApiError;
use shared::http::paging::{PAGE, PAGE_SIZE};
use shared::http::{Anyone, Api, CacheControl, Endpoint, Input, Paged, Paging, Params, params};
use shared::look;
use shared::market::Log;
use shared::model::PublicItem;
use shared::replica::{Catalog, CatalogQuery, Gauge, Replica};
use shared::scope::{Budget, Scope};
use shared::service::Service;

/// The endpoint.
pub struct SearchCatalog {
    replica: Replica<Catalog>,
}

/// Its parameters.
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
        Some(Self { query: CatalogQuery { q, kind }, paging: Paging::of(params) })
    }
}

impl Endpoint for SearchCatalog {
    const BUDGET: Budget = Budget::Scope(Scope::CatalogRead);
    const CACHE: CacheControl = CacheControl::PrivateNoCache;
    type Caller = Anyone;
    type Input = CatalogInput;
    type Output = Paged<PublicItem>;

    async fn read(&self, _: Anyone, input: CatalogInput) -> Result<Paged<PublicItem>, ApiError> {
        let (items, total) = self.replica.read(|catalog| catalog.page(&input.query, input.paging)).await?;
        Ok(input.paging.envelope(items, total))
    }

    fn replica(&self) -> Option<Gauge> {
        self.replica.gauge()
    }

    async fn warm_up(&self) -> Result<(), String> {
        self.replica.warm_up().await
    }
}

/// The function.
pub fn api(service: &Service<'_>) -> Result<Api<SearchCatalog>, Missing> {
    let replica = Replica::new(Log::new(service.market(Patience::Request, look::query)?), service.clock.clone());
    service.api(SearchCatalog { replica })
}
