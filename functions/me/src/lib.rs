//! `GET /v1/public/me`: returns the API key of the request.

use api::auth::KeyRecord;
use api::error::ApiError;
use api::routes::Route;
use api::{Api, Endpoint, routes};
use common::aws::Missing;
use common::records::PublicMe;
use common::runtime::Service;

pub struct Me;

impl Endpoint for Me {
    const ROUTE: Route = routes::ME;
    type Caller = KeyRecord;
    type Input = ();
    type Output = PublicMe;

    async fn read(&self, key: KeyRecord, (): ()) -> Result<PublicMe, ApiError> {
        Ok(PublicMe {
            api_key_id: key.key_id,
            user_id: key.user_id,
            tier: key.tier,
            scopes: key.scopes,
            rate_limit_per_minute: key.limit,
        })
    }
}

pub fn api(service: &Service<'_>) -> Result<Api<Me>, Missing> {
    Api::from_service(service, Me)
}
