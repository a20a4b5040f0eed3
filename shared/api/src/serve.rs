//! Puts an endpoint behind the gate, and runs it under Lambda.

use std::process::ExitCode;
use std::sync::Arc;

use crate::auth::Gate;
use common::aws::Missing;
use common::runtime::{Error, Service, Worker};

use super::endpoint::Endpoint;
use super::origin::Origin;
use super::pipeline::{Api, Handler};
use super::reply::{GatewayEvent, Response};

impl<E: Endpoint> Api<E> {
    /// Puts an endpoint behind the gate, which needs the keys table.
    pub fn from_service(service: &Service<'_>, endpoint: E) -> Result<Self, Missing> {
        let gate = Gate::from_service(service)?;
        let (clock, meter) = (Arc::clone(&service.clock), Arc::clone(&service.meter));
        Ok(Self::new(endpoint, Origin::from_service(service), gate, clock, meter))
    }
}

/// Runs a function of the API under Lambda.
pub async fn run<H, E>(build: impl FnOnce(&Service<'_>) -> Result<H, E>) -> ExitCode
where
    H: Handler + 'static,
    E: From<Missing> + Into<Error>,
{
    common::runtime::run(|service| build(service).map(Requests)).await
}

/// A handler, as a worker that the gateway triggers.
struct Requests<H>(H);

impl<H: Handler + 'static> Worker for Requests<H> {
    type Event = GatewayEvent;
    type Response = Response;

    async fn work(&self, event: GatewayEvent) -> Result<Response, Error> {
        Ok(self.0.handle(event).await)
    }

    async fn warm_up(&self) -> Result<(), String> {
        self.0.warm_up().await
    }
}
