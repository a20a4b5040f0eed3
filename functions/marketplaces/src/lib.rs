//! `GET /v1/public/marketplaces`: where prices come from, disabled marketplaces included.

use shared::aws::{Missing, Patience};
use shared::error::ApiError;
use shared::http::{Anyone, Api, CacheControl, Endpoint};
use shared::look;
use shared::market::Market;
use shared::model::PublicMarketplace;
use shared::scope::{Budget, Scope};
use shared::service::Service;

/// The endpoint.
pub struct Marketplaces {
    market: Market,
}

impl Endpoint for Marketplaces {
    const BUDGET: Budget = Budget::Scope(Scope::CatalogRead);
    const CACHE: CacheControl = CacheControl::PrivateNoCache;
    type Caller = Anyone;
    type Input = ();
    type Output = Vec<PublicMarketplace>;

    async fn read(&self, _: Anyone, (): ()) -> Result<Vec<PublicMarketplace>, ApiError> {
        Ok(self.market.marketplaces().await?)
    }
}

/// The function.
pub fn api(service: &Service<'_>) -> Result<Api<Marketplaces>, Missing> {
    service.api(Marketplaces { market: service.market(Patience::Request, look::query)? })
}
