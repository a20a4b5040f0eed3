//! What only an operator, or an owner in the account's settings, does: the life of keys and of webhook endpoints.

pub mod keys;
pub mod webhooks;
