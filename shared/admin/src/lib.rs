//! What an operator does, or an owner in the account's settings: the life of keys and of webhook endpoints. Of the
//! functions, only `account` uses it.

pub mod audit;
mod code;
pub mod keys;
pub mod owner;
pub mod webhooks;

pub use code::ErrorCode;
