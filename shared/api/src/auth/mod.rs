//! API keys: their text, their table, and the conditional write that admits or refuses a request.

mod bucket;
mod gate;
pub mod table;
mod text;
mod usage;

pub use bucket::{Grant, Rate, Refusal, Refused};
pub use gate::{Gate, STRANGERS_A_SECOND};
pub use table::{KeyRecord, KeyStatus};
pub use text::{KeyHash, KeyText, KeyTextError};
pub use usage::{DayUse, Usage};
