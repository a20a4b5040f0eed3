//! Holds the new deliveries of a batch whose endpoints are off, those of an account in one transaction.

use platform::store::StoreError;
use types::ids::UserId;
use webhooks::delivery::Delivery;
use webhooks::endpoint::WebhookEndpoint;

use crate::Webhook;
use crate::outcome::DispatchOutcome;
use crate::received::Received;

impl Webhook {
    /// Holds the deliveries that messages of an account carry. Each message comes with its endpoint, which is off.
    pub(crate) async fn hold_new(
        &self,
        account: UserId,
        messages: Vec<(Received, &WebhookEndpoint)>,
    ) -> Vec<(usize, DispatchOutcome)> {
        let outcome = match self.hold_together(account, &messages).await {
            Ok(true) => Ok(DispatchOutcome::Held),
            Err(error @ (StoreError::Conflict | StoreError::Unavailable(_))) => Err(error),
            // There is only one, some are stored already, or an endpoint has changed.
            Ok(false) | Err(_) => return self.hold_one_by_one(&messages).await,
        };
        let mut outcomes = Vec::with_capacity(messages.len());
        for (message, _) in &messages {
            outcomes.push((message.number, self.or_later(message, outcome.clone()).await));
        }
        outcomes
    }

    async fn hold_together(
        &self,
        account: UserId,
        messages: &[(Received, &WebhookEndpoint)],
    ) -> Result<bool, StoreError> {
        if messages.len() < 2 {
            return Ok(false);
        }
        let now = self.clock.now();
        let held = messages.iter().filter_map(|(message, endpoint)| {
            let carried = message.carried.as_ref()?;
            Some((carried.held(now), *endpoint))
        });
        let held: Vec<(Delivery, &WebhookEndpoint)> = held.collect();
        self.store.hold_all_new(account, &held).await
    }

    async fn hold_one_by_one(&self, messages: &[(Received, &WebhookEndpoint)]) -> Vec<(usize, DispatchOutcome)> {
        let mut outcomes = Vec::with_capacity(messages.len());
        for (message, endpoint) in messages {
            let done = self.hold(message, endpoint).await;
            outcomes.push((message.number, self.or_later(message, done).await));
        }
        outcomes
    }
}
