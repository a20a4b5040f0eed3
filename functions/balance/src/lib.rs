//! `GET /v1/public/wallet/balance`: the caller's own balance.

use shared::accounts::Accounts;
use shared::aws::Missing;
use shared::error::ApiError;
use shared::http::{Api, CacheControl, Endpoint};
use shared::ids::UserId;
use shared::model::PublicBalance;
use shared::scope::{Budget, Scope};
use shared::service::Service;

/// The endpoint.
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

/// The function.
pub fn api(service: &Service<'_>) -> Result<Api<Balance>, Missing> {
    service.api(Balance { accounts: service.accounts()? })
}
