//! `GET /v1/public/prices/{variant_id}`: returns figures over what other marketplaces ask for a variant.

use std::sync::Arc;

use api::error::ApiError;
use api::routes::Route;
use api::{Anyone, Api, Endpoint, Input, Params, params, routes};
use market::figures;
use market::{Market, MarketplaceCache};
use platform::aws::{Missing, Patience};
use platform::preflight;
use platform::service::Service;
use types::clock::Clock;
use types::ids::VariantId;
use types::records::VariantPrices;

pub struct Prices {
    market: Market,
    marketplaces: MarketplaceCache,
    clock: Arc<dyn Clock>,
}

#[derive(Clone, Copy, Debug)]
pub struct AskedVariant(VariantId);

impl Input for AskedVariant {
    const QUERY: &'static [&'static str] = &[];

    fn read(params: &mut Params<'_>) -> Option<Self> {
        params.path("variant_id", params::variant_id).map(Self)
    }
}

impl Endpoint for Prices {
    const ROUTE: Route = routes::PRICES;
    type Caller = Anyone;
    type Input = AskedVariant;
    type Output = VariantPrices;

    async fn read(&self, _: Anyone, AskedVariant(id): AskedVariant) -> Result<VariantPrices, ApiError> {
        let (quotes, marketplaces) = tokio::try_join!(self.market.quotes(id), self.marketplaces.get())?;
        // A quote that cannot be read counts as one that has not arrived. `source_keys` names those that count.
        figures(id, quotes.log_unreadable(), &marketplaces, self.clock.now()).ok_or(ApiError::PricesNotFound(id))
    }
}

pub fn api(service: &Service<'_>) -> Result<Api<Prices>, Missing> {
    let (market, clock) =
        (Market::from_service(service, Patience::Request, preflight::query)?, Arc::clone(&service.clock));
    let marketplaces = MarketplaceCache::new(market.clone(), Arc::clone(&clock));
    Api::from_service(service, Prices { market, marketplaces, clock })
}
