//! Adds endpoints, after a check of their URLs and of the addresses behind them.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{WebhookAdmin, WebhookAdminError};
use common::event::EventKind;
use common::ids::{EndpointId, UserId};
use common::rotation::Secrets;
use webhooks::endpoint::{Switch, WebhookEndpoint};
use webhooks::guard::{AddressRefusal, EndpointUrl, check_resolved};
use webhooks::secrets::EndpointSecret;
use webhooks::store::Added;

/// A host name that takes longer to resolve is treated as one that has no address yet (specification 6.12.3).
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);

/// What an owner chooses about a new endpoint.
#[derive(Clone, Debug)]
pub struct NewEndpoint {
    /// The account that the endpoint belongs to.
    pub user_id: UserId,
    pub url: String,
    /// The events that are delivered to it, at least one.
    pub events: BTreeSet<EventKind>,
}

impl WebhookAdmin {
    /// Adds an endpoint, switched on. This is the only time that its secret is returned.
    pub async fn add(&self, new: NewEndpoint) -> Result<(WebhookEndpoint, EndpointSecret), WebhookAdminError> {
        check_events(&new.events)?;
        let url = self.checked_url(&new.url).await?;
        let id = EndpointId::from(uuid::Uuid::new_v4());
        let secret = fresh_secret()?;
        let sealed = self.keyring.seal(id, &secret).await?;
        let now = self.clock.now();
        let endpoint = WebhookEndpoint {
            id,
            account_id: new.user_id,
            url: url.as_str().to_owned(),
            events: new.events,
            switch: Switch::On,
            epoch: 1,
            created_at: now,
            secrets: Secrets::first(sealed, now),
            secret_version: 1,
            is_prompt: false,
            warning: None,
            full_since: None,
            full_told_at: None,
        };
        match self.store.add_endpoint(&endpoint).await? {
            Added::Done => Ok((endpoint, secret)),
            Added::TooMany => Err(WebhookAdminError::TooMany),
        }
    }

    /// Reads a URL, and checks its text and the addresses behind it.
    pub(super) async fn checked_url(&self, text: &str) -> Result<EndpointUrl, WebhookAdminError> {
        let url = EndpointUrl::parse(text, self.policy).map_err(|refusal| invalid("url", &refusal))?;
        self.check_name(&url).await.map_err(|refusal| invalid("url", &refusal))?;
        Ok(url)
    }

    /// Checks the addresses that the host name has now. A name without an address is accepted, because it may get one
    /// later: every connection checks again.
    async fn check_name(&self, url: &EndpointUrl) -> Result<(), AddressRefusal> {
        let host = url.uri().host().unwrap_or_default().trim_matches(['[', ']']);
        if host.parse::<std::net::IpAddr>().is_ok() {
            return Ok(());
        }
        match tokio::time::timeout(RESOLVE_TIMEOUT, self.resolver.resolve(host)).await {
            Ok(Ok(addresses)) if !addresses.is_empty() => check_resolved(&addresses, self.policy).map(drop),
            _ => Ok(()),
        }
    }
}

pub(super) fn check_events(events: &BTreeSet<EventKind>) -> Result<(), WebhookAdminError> {
    if events.is_empty() { Err(invalid("event", "at least one is needed")) } else { Ok(()) }
}

pub(super) fn fresh_secret() -> Result<EndpointSecret, WebhookAdminError> {
    let mut bits = [0; 32];
    getrandom::fill(&mut bits).map_err(|_| WebhookAdminError::NoRandomness)?;
    Ok(EndpointSecret::from_bits(bits))
}

pub(super) fn invalid(field: &'static str, reason: &(impl ToString + ?Sized)) -> WebhookAdminError {
    WebhookAdminError::Invalid { field, reason: reason.to_string() }
}
