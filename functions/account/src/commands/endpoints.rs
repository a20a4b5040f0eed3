//! Commands about endpoints.

use admin::owner::Owner;
use admin::webhooks::EndpointUpdate;
use admin::webhooks::document::{EndpointDocument, EndpointWithHealth, EndpointWithSecret, RemovedEndpoint};
use webhooks::endpoint::Endpoints;

use super::deliveries::sent;
use crate::answer::Done;
use crate::document::EndpointList;
use crate::error::CommandError;
use crate::parameters::{AddEndpoint, NoParameters, OneEndpoint, RotateSecret, TestEndpoint, UpdateEndpoint};

pub(super) async fn add(owner: Owner<'_>, AddEndpoint { url, events }: AddEndpoint) -> Result<Done, CommandError> {
    let (endpoint, secret) = owner.add_endpoint(url, events).await?;
    Ok(Done::new(&EndpointWithSecret::new(&endpoint, &secret))?.about(endpoint.id))
}

pub(super) async fn list(owner: Owner<'_>, NoParameters {}: NoParameters) -> Result<Done, CommandError> {
    let Endpoints { readable, unreadable } = owner.list_endpoints().await?;
    let endpoints = readable.iter().map(EndpointDocument::from).collect();
    Done::new(&EndpointList { endpoints, unreadable: unreadable.iter().map(|endpoint| endpoint.id).collect() })
}

pub(super) async fn show(owner: Owner<'_>, parameters: OneEndpoint) -> Result<Done, CommandError> {
    let (endpoint, health) = owner.show_endpoint(parameters.endpoint_id).await?;
    Done::new(&EndpointWithHealth { endpoint: EndpointDocument::from(&endpoint), health })
}

pub(super) async fn update(owner: Owner<'_>, parameters: UpdateEndpoint) -> Result<Done, CommandError> {
    let UpdateEndpoint { endpoint_id, url, events } = parameters;
    let endpoint = owner.update_endpoint(endpoint_id, EndpointUpdate { url, events }).await?;
    Done::new(&EndpointDocument::from(&endpoint))
}

pub(super) async fn enable(owner: Owner<'_>, parameters: OneEndpoint) -> Result<Done, CommandError> {
    let endpoint = owner.enable_endpoint(parameters.endpoint_id).await?;
    Done::new(&EndpointDocument::from(&endpoint))
}

pub(super) async fn disable(owner: Owner<'_>, parameters: OneEndpoint) -> Result<Done, CommandError> {
    let endpoint = owner.disable_endpoint(parameters.endpoint_id).await?;
    Done::new(&EndpointDocument::from(&endpoint))
}

pub(super) async fn remove(owner: Owner<'_>, parameters: OneEndpoint) -> Result<Done, CommandError> {
    let id = parameters.endpoint_id;
    let removal = owner.remove_endpoint(id).await?;
    Done::new(&RemovedEndpoint::new(id, &removal))
}

pub(super) async fn rotate_secret(owner: Owner<'_>, parameters: RotateSecret) -> Result<Done, CommandError> {
    let RotateSecret { endpoint_id, activate, expire_old } = parameters;
    if activate || expire_old {
        let endpoint = if expire_old {
            owner.expire_old_secret(endpoint_id).await?
        } else {
            owner.activate_secret(endpoint_id).await?
        };
        return Done::new(&EndpointDocument::from(&endpoint));
    }
    let (endpoint, secret) = owner.rotate_secret(endpoint_id).await?;
    Done::new(&EndpointWithSecret::new(&endpoint, &secret))
}

pub(super) async fn test(owner: Owner<'_>, parameters: TestEndpoint) -> Result<Done, CommandError> {
    let TestEndpoint { endpoint_id, event } = parameters;
    sent(owner.test_endpoint(endpoint_id, event).await, Some(endpoint_id))
}
