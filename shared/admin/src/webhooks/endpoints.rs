//! Adds endpoints, after a check of their URLs. Lists them, changes them, switches them on and off, removes them, and
//! rotates their secrets (specification 6.13.4 to 6.13.6).

use std::collections::BTreeSet;
use std::time::Duration;

use common::event::EventKind;
use common::ids::{EndpointId, UserId};
use common::rotation::Secrets;
use tokio::time::Instant;
use webhooks::endpoint::{Endpoints, Switch, WebhookEndpoint};
use webhooks::guard::EndpointUrl;
use webhooks::secrets::EndpointSecret;
use webhooks::store::{Added, Removal};

use crate::webhooks::{WebhookAdmin, WebhookAdminError};

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
        let url = self.checked_url(&new.url)?;
        self.count_trial(new.user_id, None).await?;
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
            disabled_at: None,
            epoch: 1,
            created_at: now,
            secrets: Secrets::first(sealed, now),
            secret_version: 1,
            is_prompt: false,
            warning: None,
            host_changed_at: None,
        };
        match self.store.add_endpoint(&endpoint).await? {
            Added::Done => Ok((endpoint, secret)),
            Added::TooMany => Err(WebhookAdminError::TooMany),
        }
    }

    /// Reads a URL, and checks its text. Its host name is resolved for each connection, and not here: the answer would tell
    /// an owner which names there are inside (specification 6.12.3).
    fn checked_url(&self, text: &str) -> Result<EndpointUrl, WebhookAdminError> {
        EndpointUrl::parse(text, self.policy).map_err(|refusal| invalid("url", &refusal))
    }
}

fn check_events(events: &BTreeSet<EventKind>) -> Result<(), WebhookAdminError> {
    if events.is_empty() { Err(invalid("event", "at least one is needed")) } else { Ok(()) }
}

fn fresh_secret() -> Result<EndpointSecret, WebhookAdminError> {
    let mut bits = [0; 32];
    getrandom::fill(&mut bits).map_err(|_| WebhookAdminError::NoRandomness)?;
    Ok(EndpointSecret::from_bits(bits))
}

fn invalid(field: &'static str, reason: &(impl ToString + ?Sized)) -> WebhookAdminError {
    WebhookAdminError::Invalid { field, reason: reason.to_string() }
}

/// How long a removal ends deliveries by itself.
const REMOVE_FOR: Duration = Duration::from_secs(10);

impl WebhookAdmin {
    /// Returns an account's endpoints, oldest first, and those that cannot be read.
    pub async fn list(&self, user: UserId) -> Result<Endpoints, WebhookAdminError> {
        Ok(self.store.endpoints(user).await?)
    }

    /// Returns the endpoints of all accounts, by account and age, and those that cannot be read. Reads the whole table.
    /// Calls `report` after each page with the number of endpoints so far.
    pub async fn list_all(&self, report: impl Fn(usize)) -> Result<Endpoints, WebhookAdminError> {
        let (mut all, mut from) = (Endpoints::default(), None);
        loop {
            let page = self.store.all_endpoints(from).await?;
            all.readable.extend(page.endpoints);
            all.unreadable.extend(page.unreadable);
            report(all.readable.len());
            from = page.next;
            if from.is_none() {
                all.readable.sort_by_key(|endpoint| (endpoint.account_id, endpoint.created_at, endpoint.id));
                return Ok(all);
            }
        }
    }

    /// Switches an endpoint on. Events are sent from now on. Deliveries that are held stay held until somebody resends
    /// them: one with [`Self::resend`], or all with [`Self::recover`].
    pub async fn enable(&self, id: EndpointId) -> Result<WebhookEndpoint, WebhookAdminError> {
        let endpoint = self.find(id).await?;
        self.store.enable(endpoint.account_id, id).await?;
        self.find(id).await
    }

    /// Switches an endpoint off. From now on its events are held.
    pub async fn disable(&self, id: EndpointId) -> Result<WebhookEndpoint, WebhookAdminError> {
        let endpoint = self.find(id).await?;
        self.store.disable(endpoint.account_id, id, self.clock.now()).await?;
        self.find(id).await
    }

    /// Removes an endpoint and ends its deliveries (specification 6.11.5), as far as there is time. The drain of the
    /// account ends the rest. The endpoint itself need not be readable.
    pub async fn remove(&self, id: EndpointId) -> Result<Removal, WebhookAdminError> {
        let owner = self.store.owner_of(id).await?.ok_or(WebhookAdminError::UnknownEndpoint(id))?;
        let now = self.clock.now();
        self.store.wake_drain_by(owner, now, now).await?;
        self.store.remove_endpoint(owner, id, now).await?;
        let begun = Instant::now();
        let removal = self.store.end_deliveries(id, now, || begun.elapsed() < REMOVE_FOR).await?;
        self.drains.wake(owner, now).await?;
        Ok(removal)
    }
}

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
            Some(text) => Some(self.checked_url(text)?),
            None => None,
        };
        if url.as_ref().is_some_and(|url| url.as_str() != seen.url) {
            self.count_trial(seen.account_id, Some(id)).await?;
        }
        let is_changed = self
            .store
            .update_endpoint(&seen, url.as_ref().map(EndpointUrl::as_str), events.as_ref(), self.clock.now())
            .await?;
        let endpoint = self.find(id).await?;
        if is_changed { Ok(endpoint) } else { Err(WebhookAdminError::Changed) }
    }
}

impl WebhookAdmin {
    /// Adds the next secret. This is the only time that it is returned. From now on `webhook-signature` has a
    /// signature under it as well. Also returns whether another next secret, which was not active yet, is void now.
    pub async fn rotate_secret(
        &self,
        id: EndpointId,
    ) -> Result<(WebhookEndpoint, EndpointSecret, bool), WebhookAdminError> {
        let endpoint = self.find(id).await?;
        let secret = fresh_secret()?;
        let sealed = self.keyring.seal(id, &secret).await?;
        let (mut secrets, now) = (endpoint.secrets.clone(), self.clock.now());
        let voids_another = secrets.changes(now).0.is_some();
        secrets.add_next(sealed, now)?;
        Ok((self.replace_secrets(endpoint, secrets).await?, secret, voids_another))
    }

    /// Makes the next secret sign `X-Service-Signature` at once, instead of 24 h after it was added.
    pub async fn activate_secret(&self, id: EndpointId) -> Result<WebhookEndpoint, WebhookAdminError> {
        let endpoint = self.find(id).await?;
        let mut secrets = endpoint.secrets.clone();
        secrets.activate(self.clock.now())?;
        self.replace_secrets(endpoint, secrets).await
    }

    /// Ends the old secret at once, instead of 24 h after the activation. Also activates the next one, if it is not active
    /// yet. From now on only the newest secret signs.
    pub async fn expire_old_secret(&self, id: EndpointId) -> Result<WebhookEndpoint, WebhookAdminError> {
        let endpoint = self.find(id).await?;
        let mut secrets = endpoint.secrets.clone();
        secrets.expire_old(self.clock.now())?;
        self.replace_secrets(endpoint, secrets).await
    }

    /// Replaces the secrets of an endpoint, if they are still those that were read.
    async fn replace_secrets(
        &self,
        endpoint: WebhookEndpoint,
        secrets: Secrets<String>,
    ) -> Result<WebhookEndpoint, WebhookAdminError> {
        let put = self.store.put_secrets(endpoint.account_id, endpoint.id, &secrets, endpoint.secret_version);
        if put.await? { Ok(WebhookEndpoint { secrets, ..endpoint }) } else { Err(WebhookAdminError::Changed) }
    }
}
