//! `GET /v1/public/items/{id}`: returns one item with its variants.

use api::error::ApiError;
use api::routes::Route;
use api::{Anyone, Api, Endpoint, Input, Params, params, routes};
use market::Market;
use platform::aws::{Missing, Patience};
use platform::preflight;
use platform::service::Service;
use types::ids::ItemId;
use types::records::PublicItemDetail;

pub struct Item {
    market: Market,
}

/// An item's id as it was requested. If it is not a valid item id, the response is a 404, not a 400.
#[derive(Clone, Debug)]
pub struct AskedId(String);

impl Input for AskedId {
    const QUERY: &'static [&'static str] = &[];

    fn read(params: &mut Params<'_>) -> Option<Self> {
        params.path("id", params::text).map(Self)
    }
}

impl Endpoint for Item {
    const ROUTE: Route = routes::ITEM;
    type Caller = Anyone;
    type Input = AskedId;
    type Output = PublicItemDetail;

    async fn read(&self, _: Anyone, AskedId(asked): AskedId) -> Result<PublicItemDetail, ApiError> {
        let found = match asked.parse::<ItemId>() {
            Ok(id) => self.market.item(&id).await?,
            Err(_) => None,
        };
        found.ok_or(ApiError::ItemNotFound(asked))
    }
}

pub fn api(service: &Service<'_>) -> Result<Api<Item>, Missing> {
    Api::from_service(service, Item { market: Market::from_service(service, Patience::Request, preflight::get)? })
}
