//! `GET /v1/public/orders`: the caller's own orders, newest first.

use shared::accounts::OrderPages;
use shared::aws::Missing;
use shared::error::ApiError;
use shared::http::paging::{PAGE, PAGE_SIZE};
use shared::http::{Api, CacheControl, Endpoint, Input, Paged, Paging, Params};
use shared::ids::UserId;
use shared::model::PublicOrder;
use shared::scope::{Budget, Scope};
use shared::service::Service;

/// The endpoint.
pub struct Orders {
    pages: OrderPages,
}

/// The page asked for.
#[derive(Clone, Copy, Debug)]
pub struct OrdersInput(Paging);

impl Input for OrdersInput {
    const QUERY: &'static [&'static str] = &[PAGE, PAGE_SIZE];

    fn read(params: &mut Params<'_>) -> Option<Self> {
        Some(Self(Paging::read(params)))
    }
}

impl Endpoint for Orders {
    const BUDGET: Budget = Budget::Scope(Scope::OrdersRead);
    const CACHE: CacheControl = CacheControl::NoStore;
    type Caller = UserId;
    type Input = OrdersInput;
    type Output = Paged<PublicOrder>;

    async fn read(&self, user: UserId, OrdersInput(paging): OrdersInput) -> Result<Paged<PublicOrder>, ApiError> {
        Ok(self.pages.page(user, paging).await?)
    }
}

/// The function.
pub fn api(service: &Service<'_>) -> Result<Api<Orders>, Missing> {
    service.api(Orders { pages: OrderPages::new(service.accounts()?) })
}
