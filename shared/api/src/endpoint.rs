//! What an endpoint declares. The pipeline does everything else.

use std::future::Future;

use serde::Serialize;

use super::error::ApiError;
use super::params::Input;
use super::routes::Route;
use super::state::State;
use crate::auth::KeyRecord;
use common::ids::UserId;
use common::metrics::ReplicaGauge;

/// One `GET` of the API.
pub trait Endpoint: Send + Sync + 'static {
    /// The route that the endpoint answers. It has a budget.
    const ROUTE: Route;
    /// Whom the answer depends on.
    type Caller: Caller;
    /// Parameters of path and query.
    type Input: Input;
    /// The body of a 200.
    type Output: Serialize + Send;

    /// Reads the answer. This may run at the same time as the key write, and the answer leaves only if that succeeds.
    fn read(
        &self,
        caller: Self::Caller,
        input: Self::Input,
    ) -> impl Future<Output = Result<Self::Output, ApiError>> + Send;

    /// Returns what the headers of an answer say about the state that it was made from.
    fn state(_: &Self::Output) -> State {
        State::Untold
    }

    /// Returns the age and size of the replica that answers come from, if they come from one.
    fn replica(&self) -> Option<ReplicaGauge> {
        None
    }

    /// Prepares the instance before its first request. An error says what the first request still has to do.
    fn warm_up(&self) -> impl Future<Output = Result<(), String>> + Send {
        async { Ok(()) }
    }
}

/// Whom an answer depends on. Some callers are known before the key write has answered.
pub trait Caller: Clone + PartialEq + Send + Sync {
    /// Returns the caller, if it is known before the key write. `remembered` is the user of a key that this instance has
    /// admitted before. For any other key nothing is read before the key write has answered.
    fn foreseen(remembered: UserId) -> Option<Self>;

    /// Returns the caller that the key write has authorised.
    fn authorised(key: &KeyRecord) -> Self;
}

/// The answer is the same for everyone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anyone;

impl Caller for Anyone {
    fn foreseen(_: UserId) -> Option<Self> {
        Some(Self)
    }

    fn authorised(_: &KeyRecord) -> Self {
        Self
    }
}

/// The answer belongs to the key's user, who never changes.
impl Caller for UserId {
    fn foreseen(remembered: UserId) -> Option<Self> {
        Some(remembered)
    }

    fn authorised(key: &KeyRecord) -> Self {
        key.user_id
    }
}

/// The answer shows the key itself, as only the key write returns it.
impl Caller for KeyRecord {
    fn foreseen(_: UserId) -> Option<Self> {
        None
    }

    fn authorised(key: &KeyRecord) -> Self {
        key.clone()
    }
}
