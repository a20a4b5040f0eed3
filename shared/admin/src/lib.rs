//! What an operator does, or an owner in the account's settings: the life of keys and of webhook endpoints. No function
//! uses it.

pub mod keys;
pub mod webhooks;
