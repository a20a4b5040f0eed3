//! The base: a stream's records packed whole, so that a cold start reads kilobytes where a scan of the
//! entities would read megabytes.
//!
//! A base is exact: every change up to its sequence number and none behind. Its chunks never change once the
//! pointer names them. Readers that cannot read one fall back on the entities; `compact` replaces it then.

mod chunk;
mod columns;
mod compact;
mod read;

pub use columns::{Columnar, Columns, ItemColumns, ListingColumns, ListingRow, items};
pub use compact::{Compacted, Compaction};
pub use read::{Snapshot, load};
