//! The base: all records of a stream, packed into a few objects of the bucket. A cold start reads kilobytes of it,
//! where a scan of the entities would read megabytes.
//!
//! A base is exact together with the deltas beside it: they hold every change up to a position in the log, and none
//! after it. Their objects never change once the manifest names them. If a base cannot be read, readers use the
//! entities instead, and the function `compact` replaces the base.

pub mod columns;
mod compact;
mod load;
mod part;
mod snapshot;

pub use columns::{Columnar, Columns, ItemColumns, ListingColumns, ListingEntry, ProductEntry};
pub use compact::{Compacted, Compaction, RebuildLimits, Thresholds};
pub use load::Load;
pub use part::{hash as object_hash, pack as pack_part};
pub use snapshot::Snapshot;
