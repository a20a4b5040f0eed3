//! `GET /v1/public/wallet/balance`: returns the caller's own balance.

use accounts::Accounts;
use api::error::ApiError;
use api::routes::Route;
use api::{Api, Endpoint, routes};
use common::aws::Missing;
use common::ids::UserId;
use common::preflight;
use common::records::PublicBalance;
use common::runtime::Service;

pub struct Balance {
    accounts: Accounts,
}

impl Endpoint for Balance {
    const ROUTE: Route = routes::BALANCE;
    type Caller = UserId;
    type Input = ();
    type Output = PublicBalance;

    async fn read(&self, user: UserId, (): ()) -> Result<PublicBalance, ApiError> {
        Ok(self.accounts.balance(user).await?)
    }
}

pub fn api(service: &Service<'_>) -> Result<Api<Balance>, Missing> {
    Api::from_service(service, Balance { accounts: Accounts::from_service(service, preflight::get)? })
}
