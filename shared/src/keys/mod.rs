//! API keys: their text, their table, and the one conditional write that decides a request.

mod admin;
mod bucket;
mod gate;
mod table;
mod text;

pub use admin::{AdminError, KeyAdmin, NewKey};
pub use gate::{Gate, Grant, Rate, Refused};
pub use table::{KeyRecord, KeyStatus};
pub use text::{KeyHash, KeyText};
