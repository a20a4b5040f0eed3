//! `GET /v1/public/prices/{variant_id}`: returns figures over what other marketplaces ask for a variant.

use std::sync::Arc;

use api::error::ApiError;
use api::routes::Route;
use api::{Anyone, Api, Endpoint, Input, Params, State, Stated, params, routes};
use common::aws::{Missing, Patience};
use common::ids::VariantId;
use common::preflight;
use common::records::VariantPrices;
use common::runtime::Service;
use market::{Figures, Market, PriceReader};

pub struct Prices {
    prices: PriceReader,
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
    type Output = Stated<VariantPrices>;

    async fn read(&self, _: Anyone, AskedVariant(id): AskedVariant) -> Result<Self::Output, ApiError> {
        let figures = self.prices.figures(id).await?;
        let Figures { prices, newest, changed } = figures.ok_or(ApiError::PricesNotFound(id))?;
        Ok(Stated { body: prices, state: State::Modified { newest, changed } })
    }

    fn state(output: &Self::Output) -> State {
        output.state
    }
}

pub fn api(service: &Service<'_>) -> Result<Api<Prices>, Missing> {
    let market = Market::from_service(service, Patience::Request, preflight::query)?;
    let prices = PriceReader::new(market, Arc::clone(&service.clock));
    Api::from_service(service, Prices { prices })
}
