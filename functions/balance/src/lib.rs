//! `GET /v1/public/wallet/balance`: returns the caller's own balance.

use accounts::Accounts;
use api::error::ApiError;
use api::{Api, CacheControl, Endpoint};
use platform::aws::Missing;
use platform::service::Service;
use types::ids::UserId;
use types::records::PublicBalance;
use types::scope::{Budget, Scope};

pub struct Balance {
    accounts: Accounts,
}

impl Endpoint for Balance {
    const BUDGET: Budget = Budget::Scope(Scope::WalletRead);
    const CACHE: CacheControl = CacheControl::NoStore;
    type Caller = UserId;
    type Input = ();
    type Output = PublicBalance;

    async fn read(&self, user: UserId, (): ()) -> Result<PublicBalance, ApiError> {
        Ok(self.accounts.balance(user).await?)
    }
}

pub fn api(service: &Service<'_>) -> Result<Api<Balance>, Missing> {
    Api::from_service(service, Balance { accounts: Accounts::from_service(service)? })
}
