//! API keys: their text, their table, and the conditional write that admits or refuses a request.

mod bucket;
mod gate;
mod grant;
pub mod table;
mod text;

pub use gate::Gate;
pub use grant::{Grant, Rate, Refusal, Refused};
pub use table::{KeyRecord, KeyStatus};
pub use text::{KeyHash, KeyText, KeyTextError};
