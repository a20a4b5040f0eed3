//! `GET /v1/public/items/{id}`: returns one item with its variants, and on request with the prices of each variant.

use std::sync::Arc;

use api::error::{ApiError, FieldCode, FieldError};
use api::routes::Route;
use api::{Anyone, Api, Endpoint, Input, Params, params, routes};
use common::aws::{Missing, Patience};
use common::ids::ItemId;
use common::paging::ItemInclude;
use common::preflight;
use common::records::{IncludedPrices, PublicItemDetail};
use common::runtime::Service;
use market::{Market, PriceReader};

const INCLUDE: &str = "include";
/// With how many variants an item may have its prices included. Each variant is a read of its own, so this bounds what a
/// token costs.
pub const MAX_PRICED: usize = 25;

pub struct Item {
    market: Market,
    prices: PriceReader,
}

#[derive(Clone, Debug)]
pub struct ItemInput {
    /// The item's id as it was requested. If it is not a valid item id, the response is a 404, not a 400.
    id: String,
    include: Option<ItemInclude>,
}

impl Input for ItemInput {
    const QUERY: &'static [&'static str] = &[INCLUDE];

    fn read(params: &mut Params<'_>) -> Option<Self> {
        let include = params.query(INCLUDE, params::one_of);
        params.path("id", params::text).map(|id| Self { id, include })
    }
}

impl Endpoint for Item {
    const ROUTE: Route = routes::ITEM;
    type Caller = Anyone;
    type Input = ItemInput;
    type Output = PublicItemDetail;

    async fn read(&self, _: Anyone, ItemInput { id, include }: ItemInput) -> Result<PublicItemDetail, ApiError> {
        let found = match id.parse::<ItemId>() {
            Ok(id) => self.market.item(&id).await?,
            Err(_) => None,
        };
        let mut item = found.ok_or(ApiError::ItemNotFound(id))?;
        if include == Some(ItemInclude::Prices) {
            if item.variants.len() > MAX_PRICED {
                return Err(ApiError::Invalid(vec![too_many(item.variants.len())]));
            }
            // Only the item says which variants it has, so they are read after it.
            let ids = item.variants.iter().map(|variant| variant.variant_id).collect();
            for (variant, prices) in item.variants.iter_mut().zip(self.prices.prices_of_all(ids).await?) {
                variant.prices = Some(IncludedPrices(prices));
            }
        }
        Ok(item)
    }
}

/// Returns the refusal to include prices with an item that has this many variants.
pub fn too_many(variants: usize) -> FieldError {
    FieldError::new(INCLUDE, FieldCode::TooMany, [("max", MAX_PRICED.into()), ("found", variants.into())])
}

pub fn api(service: &Service<'_>) -> Result<Api<Item>, Missing> {
    let market = Market::from_service(service, Patience::Request, preflight::get)?;
    let prices = PriceReader::new(market.clone(), Arc::clone(&service.clock));
    Api::from_service(service, Item { market, prices })
}
