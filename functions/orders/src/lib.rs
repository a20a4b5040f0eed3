//! `GET /v1/public/orders`: returns a page of the caller's own orders, newest first.

use accounts::Accounts;
use accounts::OrderPages;
use api::error::ApiError;
use api::routes::Route;
use api::{Api, Endpoint, routes};
use common::aws::Missing;
use common::ids::UserId;
use common::paging::{Paged, Paging};
use common::preflight;
use common::records::PublicOrder;
use common::runtime::Service;

pub struct Orders {
    pages: OrderPages,
}

impl Endpoint for Orders {
    const ROUTE: Route = routes::ORDERS;
    type Caller = UserId;
    type Input = Paging;
    type Output = Paged<PublicOrder>;

    async fn read(&self, user: UserId, paging: Paging) -> Result<Paged<PublicOrder>, ApiError> {
        Ok(self.pages.page(user, paging).await?)
    }
}

pub fn api(service: &Service<'_>) -> Result<Api<Orders>, Missing> {
    Api::from_service(service, Orders { pages: OrderPages::new(Accounts::from_service(service, preflight::get)?) })
}
