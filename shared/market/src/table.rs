//! The key shapes, attribute names and layouts of the market table, in one place.

use crate::Record;
use common::ids::{MarketplaceKey, VariantId};
use common::layout::Format;
pub(super) use common::resources::{PARTITION_KEY as PK, SORT_KEY as SK, TTL};
use common::store::{Row, s};

pub(super) const VERSION: &str = "version";
pub(super) const DATA: &str = "data";
pub(super) const REMOVED: &str = "removed";
pub(super) const SEQ: &str = "seq";
pub(super) const CHANGES: &str = "changes";
pub(super) const ASKS: &str = "asks";
pub(super) const OBSERVED_AT: &str = "observed_at";
pub(super) const GENERATION: &str = "generation";
pub(super) const UNTIL: &str = "until";
/// The run that has a lease.
pub(super) const RUN: &str = "run";

pub(super) const HEAD_FORMAT: Format = Format::first("stream head");
pub(super) const MANIFEST_FORMAT: Format = Format::first("base manifest");
pub(super) const REBUILD_FORMAT: Format = Format::first("rebuild of a base");
pub(super) const ENTITY_FORMAT: Format = Format::first("entity");
pub(super) const MARKETPLACE_FORMAT: Format = Format::first("marketplace");
pub(super) const QUOTE_FORMAT: Format = Format::first("quote");

/// The number of partitions that hold a stream's entities, so that a scan can read them in parallel.
pub const ENTITY_PARTITIONS: u32 = 16;

pub(super) fn entity<R: Record>(id: &str) -> Row {
    place(entity_partition::<R>(crc32fast::hash(id.as_bytes()) % ENTITY_PARTITIONS), id.to_owned())
}

pub(super) fn entity_partition<R: Record>(number: u32) -> String {
    format!("entity#{}#{number:x}", R::STREAM)
}

/// Head and manifest are in the same partition, so that one Query reads both as of one moment.
pub(super) fn standing_partition<R: Record>() -> String {
    format!("head#{}#0", R::STREAM)
}

pub(super) const HEAD: &str = "head";
pub(super) const MANIFEST: &str = "manifest";
pub(super) const LEASE: &str = "lease";

pub(super) fn head<R: Record>() -> Row {
    place(standing_partition::<R>(), HEAD.to_owned())
}

pub(super) fn manifest<R: Record>() -> Row {
    place(standing_partition::<R>(), MANIFEST.to_owned())
}

pub(super) fn lease<R: Record>() -> Row {
    place(standing_partition::<R>(), LEASE.to_owned())
}

pub(super) fn rebuild<R: Record>() -> Row {
    place(format!("rebuild#{}#0", R::STREAM), "rebuild".to_owned())
}

pub(super) fn log_partition<R: Record>() -> String {
    format!("log#{}#0", R::STREAM)
}

/// Writes a sequence number in a fixed width, so that text order is number order.
pub(super) fn log_position(seq: u64) -> String {
    format!("{seq:020}")
}

pub(super) fn log_entry<R: Record>(seq: u64) -> Row {
    place(log_partition::<R>(), log_position(seq))
}

pub(super) const MARKETPLACES: &str = "marketplaces";

pub(super) fn marketplace(key: &MarketplaceKey) -> Row {
    place(MARKETPLACES.to_owned(), key.to_string())
}

pub(super) fn quotes_partition(variant: VariantId) -> String {
    format!("quotes#{variant}")
}

pub(super) fn quote(variant: VariantId, marketplace: &MarketplaceKey) -> Row {
    place(quotes_partition(variant), marketplace.to_string())
}

fn place(pk: String, sk: String) -> Row {
    Row::from([(PK.to_owned(), s(pk)), (SK.to_owned(), s(sk))])
}
