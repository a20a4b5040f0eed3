//! What an endpoint declares; everything else is the pipeline's.

use std::future::Future;

use serde::Serialize;

use super::error::ApiError;
use super::params::Input;
use super::reply::CacheControl;
use auth::KeyRecord;
use platform::metrics::ReplicaGauge;
use types::ids::UserId;
use types::scope::Budget;

/// One `GET` of the API.
pub trait Endpoint: Send + Sync + 'static {
    /// What a request is counted against, and with it the scope that a key needs.
    const BUDGET: Budget;
    /// How long an answer may be kept by others.
    const CACHE: CacheControl;
    /// On whom the answer depends.
    type Caller: Caller;
    /// Parameters of path and query.
    type Input: Input;
    /// The body of a 200.
    type Output: Serialize + Send;

    /// Reads the answer. It runs beside the key write; what it returns leaves only once that has succeeded.
    fn read(
        &self,
        caller: Self::Caller,
        input: Self::Input,
    ) -> impl Future<Output = Result<Self::Output, ApiError>> + Send;

    /// The state that answers come from, if it is a replica's.
    fn replica(&self) -> Option<ReplicaGauge> {
        None
    }

    /// Prepares the instance before its first request. An error tells what is left to that request.
    fn warm_up(&self) -> impl Future<Output = Result<(), String>> + Send {
        async { Ok(()) }
    }
}

/// Whom an answer depends on, and whether that is known before the key write has answered.
pub trait Caller: Clone + PartialEq + Send + Sync {
    /// The caller as far as this instance remembers the key.
    fn foreseen(remembered: Option<UserId>) -> Option<Self>;

    /// The caller that the key write has authorised.
    fn authorised(key: &KeyRecord) -> Self;
}

/// The answer is the same for everyone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anyone;

impl Caller for Anyone {
    fn foreseen(_: Option<UserId>) -> Option<Self> {
        Some(Self)
    }

    fn authorised(_: &KeyRecord) -> Self {
        Self
    }
}

/// The answer belongs to the key's user, who never changes.
impl Caller for UserId {
    fn foreseen(remembered: Option<UserId>) -> Option<Self> {
        remembered
    }

    fn authorised(key: &KeyRecord) -> Self {
        key.user_id
    }
}

/// The answer shows the key itself, as only the key write returns it.
impl Caller for KeyRecord {
    fn foreseen(_: Option<UserId>) -> Option<Self> {
        None
    }

    fn authorised(key: &KeyRecord) -> Self {
        key.clone()
    }
}
