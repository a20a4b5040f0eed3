//! `GET /v1/public/orders`: the caller's own orders, newest first.

use shared::accounts::OrderPages;
use shared::aws::Missing;
use shared::error::ApiError;
use shared::http::{Api, CacheControl, Endpoint, Paged, Paging};
use shared::ids::UserId;
use shared::model::PublicOrder;
use shared::scope::{Budget, Scope};
use shared::service::Service;

/// The endpoint.
pub struct Orders {
    pages: OrderPages,
}

impl Endpoint for Orders {
    const BUDGET: Budget = Budget::Scope(Scope::OrdersRead);
    const CACHE: CacheControl = CacheControl::NoStore;
    type Caller = UserId;
    type Input = Paging;
    type Output = Paged<PublicOrder>;

    async fn read(&self, user: UserId, paging: Paging) -> Result<Paged<PublicOrder>, ApiError> {
        Ok(self.pages.page(user, paging).await?)
    }
}

/// The function.
pub fn api(service: &Service<'_>) -> Result<Api<Orders>, Missing> {
    service.api(Orders { pages: OrderPages::new(service.accounts()?) })
}
