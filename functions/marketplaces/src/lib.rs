//! `GET /v1/public/marketplaces`: returns all marketplaces that prices can come from, including disabled ones. One that
//! cannot be read is left out, because no price comes from it either.

use api::error::ApiError;
use api::routes::Route;
use api::{Anyone, Api, Endpoint, routes};
use common::aws::{Missing, Patience};
use common::preflight;
use common::records::PublicMarketplace;
use common::runtime::Service;
use market::Market;

pub struct Marketplaces {
    market: Market,
}

impl Endpoint for Marketplaces {
    const ROUTE: Route = routes::MARKETPLACES;
    type Caller = Anyone;
    type Input = ();
    type Output = Vec<PublicMarketplace>;

    async fn read(&self, _: Anyone, (): ()) -> Result<Vec<PublicMarketplace>, ApiError> {
        Ok(self.market.marketplaces().await?.log_unreadable())
    }
}

pub fn api(service: &Service<'_>) -> Result<Api<Marketplaces>, Missing> {
    Api::from_service(
        service,
        Marketplaces { market: Market::from_service(service, Patience::Request, preflight::query)? },
    )
}
