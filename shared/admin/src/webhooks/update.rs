//! Changes the URL of an endpoint, and the events that are delivered to it.

use std::collections::BTreeSet;

use super::register::{check_events, invalid};
use super::{WebhookAdmin, WebhookAdminError};
use common::event::EventKind;
use common::ids::EndpointId;
use webhooks::endpoint::WebhookEndpoint;
use webhooks::guard::EndpointUrl;

/// What changes about an endpoint. What is `None` stays as it is, but not both may be.
#[derive(Clone, Debug, Default)]
pub struct EndpointUpdate {
    pub url: Option<String>,
    /// At least one.
    pub events: Option<BTreeSet<EventKind>>,
}

impl WebhookAdmin {
    /// Changes an endpoint, and returns it as it is now. A URL is checked as that of a new endpoint is. An attempt that
    /// is under way goes to the URL that it has read; all later ones go to the new URL.
    pub async fn update(&self, id: EndpointId, update: EndpointUpdate) -> Result<WebhookEndpoint, WebhookAdminError> {
        let EndpointUpdate { url, events } = update;
        if url.is_none() && events.is_none() {
            return Err(invalid("url", "a URL, events or both are needed"));
        }
        let seen = self.find(id).await?;
        events.as_ref().map_or(Ok(()), check_events)?;
        let url = match &url {
            Some(text) => Some(self.checked_url(text).await?),
            None => None,
        };
        if url.as_ref().is_some_and(|url| url.as_str() != seen.url) {
            self.count_trial(&seen).await?;
        }
        let is_changed =
            self.store.update_endpoint(&seen, url.as_ref().map(EndpointUrl::as_str), events.as_ref()).await?;
        let endpoint = self.find(id).await?;
        if is_changed { Ok(endpoint) } else { Err(WebhookAdminError::Changed) }
    }
}
