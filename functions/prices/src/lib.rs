//! `GET /v1/public/prices/{variant_id}`: what other marketplaces ask for a variant.

use std::sync::Arc;

use shared::aws::{Missing, Patience};
use shared::clock::Clock;
use shared::error::ApiError;
use shared::http::{Anyone, Api, CacheControl, Endpoint, Input, Params, params};
use shared::ids::VariantId;
use shared::look;
use shared::market::figures::figures;
use shared::market::{Market, MarketplaceCache};
use shared::model::VariantPrices;
use shared::scope::{Budget, Scope};
use shared::service::Service;

/// The endpoint.
pub struct Prices {
    market: Market,
    marketplaces: MarketplaceCache,
    clock: Arc<dyn Clock>,
}

/// The variant asked for.
#[derive(Clone, Copy, Debug)]
pub struct Variant(VariantId);

impl Input for Variant {
    const QUERY: &'static [&'static str] = &[];

    fn read(params: &mut Params<'_>) -> Option<Self> {
        params.path("variant_id", params::variant_id).map(Self)
    }
}

impl Endpoint for Prices {
    const BUDGET: Budget = Budget::Scope(Scope::CatalogRead);
    const CACHE: CacheControl = CacheControl::PrivateNoCache;
    type Caller = Anyone;
    type Input = Variant;
    type Output = VariantPrices;

    async fn read(&self, _: Anyone, Variant(id): Variant) -> Result<VariantPrices, ApiError> {
        let (quotes, marketplaces) = tokio::try_join!(self.market.quotes(id), self.marketplaces.get())?;
        figures(id, quotes, &marketplaces, self.clock.now()).ok_or(ApiError::PricesNotFound(id))
    }
}

/// The function.
pub fn api(service: &Service<'_>) -> Result<Api<Prices>, Missing> {
    let (market, clock) = (service.market(Patience::Request, look::query)?, Arc::clone(&service.clock));
    let marketplaces = MarketplaceCache::new(market.clone(), Arc::clone(&clock));
    service.api(Prices { market, marketplaces, clock })
}
