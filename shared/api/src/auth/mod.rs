//! API keys: their text, their table, and the conditional write that admits or refuses a request.

mod bucket;
mod gate;
mod grant;
mod memory;
pub mod table;
mod text;
mod usage;

pub use gate::Gate;
pub use grant::{Grant, Rate, Refusal, Refused};
pub use table::{KeyRecord, KeyStatus};
pub use text::{KeyHash, KeyText, KeyTextError};
pub use usage::{DayUse, Usage};
