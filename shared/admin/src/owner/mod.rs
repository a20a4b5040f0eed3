//! The keys, endpoints and deliveries of one user: what owners do in their account's settings. Nothing of another user
//! can be reached.
//!
//! Each command that names a key, an endpoint or a delivery first reads to whom it belongs. If it belongs to somebody
//! else, the answer is the same as if it did not exist, after the same calls. An owner never changes, so nothing can
//! happen between this check and the command.

mod deliveries;
mod endpoints;
mod keys;

use crate::keys::KeyAdmin;
use crate::webhooks::WebhookAdmin;
use common::ids::UserId;
use common::timestamp::Timestamp;

/// What belongs to one user.
#[derive(Clone, Copy)]
pub struct Owner<'a> {
    user: UserId,
    keys: &'a KeyAdmin,
    webhooks: &'a WebhookAdmin,
}

impl<'a> Owner<'a> {
    pub const fn new(user: UserId, keys: &'a KeyAdmin, webhooks: &'a WebhookAdmin) -> Self {
        Self { user, keys, webhooks }
    }

    /// Returns the time at which something is shown.
    pub fn now(&self) -> Timestamp {
        self.webhooks.clock.now()
    }
}
