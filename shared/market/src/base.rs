//! The rows of a stream's base: its manifest beside the head, the lease of the run that makes it anew, and how far that
//! has come.
//!
//! Several runs share the work of making a base: each continues what the row says, and writes into it what it has done.
//! That row has a partition of its own. Beside the manifest, every start would read it too.

use aws_sdk_dynamodb::operation::put_item::builders::PutItemFluentBuilder;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use super::log::{Log, LogPosition, position};
use super::{Record, table};
use common::store::{Attributes, Row, StoreError, changed, get_row, n, s};
use common::timestamp::Timestamp;

/// To a reader, this many records of a base are as much work as one change in the log. A record takes a quarter of a
/// change's bytes, and parts are read at the same time while pages of the log are read one after the other.
const RECORDS_PER_CHANGE: u64 = 10;

/// How long a run has the lease if it dies.
const LEASE_MILLIS: i64 = 2 * 60 * 1_000;
/// A run that has not renewed its lease for this long is dead to readers. It renews it each second.
const ALIVE_MILLIS: i64 = 5_000;

/// SHA-256 of an object.
pub type Hash = [u8; 32];

/// Describes a base that was written completely, and the deltas that continue it.
///
/// It is stored as JSON, so a later release may add members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The run that wrote this manifest.
    pub generation: Uuid,
    /// The parts hold every change up to this position. Parts that were just made from the entities may also hold some
    /// of the changes up to `end`. The deltas have these too.
    pub base: LogPosition,
    /// Parts and deltas together hold every change up to this position, and none after it.
    pub end: LogPosition,
    /// How many records the parts hold.
    pub records: u64,
    /// When the parts were written.
    pub written_at: Timestamp,
    /// When the entities were last read for the base. A base that was folded from another one takes over its time.
    pub scanned_at: Timestamp,
    /// The parts of the base, in its order.
    pub parts: Vec<ObjectRef>,
    /// The deltas, oldest first. Each continues what is before it. It may also repeat a part of that.
    pub deltas: Vec<DeltaRef>,
}

/// A delta. Several may hold the same stretch of the log together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeltaRef {
    pub object: ObjectRef,
    /// Where the delta's stretch of the log ends.
    pub end: LogPosition,
}

/// An object of the bucket, whose content never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectRef {
    pub key: String,
    /// Of the whole object.
    #[serde(serialize_with = "hash_to_hex", deserialize_with = "hash_from_hex")]
    pub hash: Hash,
}

impl Manifest {
    /// Returns the objects of the parts, and those of the deltas.
    pub fn objects(&self) -> impl Iterator<Item = &ObjectRef> {
        self.parts.iter().chain(self.deltas.iter().map(|delta| &delta.object))
    }

    pub(super) fn row<R: Record>(&self) -> Result<Row, StoreError> {
        let mut row = table::manifest::<R>();
        row.insert(table::GENERATION.to_owned(), s(self.generation.to_string()));
        row.insert(table::DATA.to_owned(), s(serde_json::to_string(self)?));
        Ok(row)
    }

    fn from_row(row: &Row) -> Result<Self, StoreError> {
        table::MANIFEST_FORMAT.of_row(row)?;
        let data = Attributes(row).text(table::DATA).unwrap_or_default();
        serde_json::from_str(data).map_err(|error| table::MANIFEST_FORMAT.corrupt(&error))
    }
}

fn hash_to_hex<S: Serializer>(hash: &Hash, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&hex::encode(hash))
}

fn hash_from_hex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Hash, D::Error> {
    let text = String::deserialize(deserializer)?;
    let mut hash = Hash::default();
    hex::decode_to_slice(text, &mut hash).map_err(D::Error::custom)?;
    Ok(hash)
}

/// A stream's head and manifest, as of one moment.
pub struct Standing {
    pub head: LogPosition,
    /// The manifest, if there is one. It is an error if it cannot be read.
    pub manifest: Option<Result<Manifest, StoreError>>,
    /// The generation of the manifest, even if the rest of it cannot be read.
    pub(super) generation: Option<String>,
    /// Until when a run that makes the base anew has the lease, or had it.
    leased_until: Option<Timestamp>,
}

impl Standing {
    /// Returns whether a run is making the base anew, and has not died.
    pub fn is_being_made(&self, now: Timestamp) -> bool {
        self.leased_until.is_some_and(|until| until > now.plus_millis(LEASE_MILLIS - ALIVE_MILLIS))
    }

    /// Returns how many changes have come after the base and its deltas. If no base can be read, these are all changes.
    pub fn behind(&self) -> u64 {
        self.head.changes.saturating_sub(self.base().map_or(0, |base| base.end.changes))
    }

    /// Returns the manifest, if it can be read.
    fn base(&self) -> Option<&Manifest> {
        self.manifest.as_ref()?.as_ref().ok()
    }

    /// Returns the sequence number up to which base and deltas hold the stream; 0 if no base can be read.
    pub fn base_seq(&self) -> u64 {
        self.base().map_or(0, |base| base.end.seq)
    }

    /// Returns whether a reader at `position` has more work with the log up to its end than with the base and the log
    /// behind that. Without a base that can be read, it never has.
    pub fn is_base_nearer_than_end(&self, position: LogPosition) -> bool {
        let Some(base) = self.base() else { return false };
        let left = self.head.changes.saturating_sub(position.changes);
        left > self.behind() + base.records / RECORDS_PER_CHANGE
    }
}

impl<R: Record> Log<R> {
    /// Reads head and manifest by one Query, so that both are as of one moment.
    pub async fn standing(&self) -> Result<Standing, StoreError> {
        let rows = self.market.partition(table::standing_partition::<R>()).await?;
        let find = |name: &str| rows.iter().find(|row| Attributes(row).text(table::SK) == Some(name));
        let manifest = find(table::MANIFEST);
        let generation = manifest.and_then(|row| Attributes(row).text(table::GENERATION)).map(ToOwned::to_owned);
        let until = find(table::LEASE).and_then(|row| Attributes(row).number(table::UNTIL));
        let leased_until = until.map(Timestamp::from_millis);
        let head = position(find(table::HEAD))?;
        Ok(Standing { head, manifest: manifest.map(Manifest::from_row), generation, leased_until })
    }

    /// Puts the manifest, on condition that the stored one is still the one that `seen` has. Returns whether it was.
    pub async fn put_manifest(&self, manifest: &Manifest, seen: &Standing) -> Result<bool, StoreError> {
        let put = self.market.client.put_item().table_name(&self.market.table);
        let put = put.set_item(Some(manifest.row::<R>()?)).expression_attribute_names("#generation", table::GENERATION);
        let put = match &seen.generation {
            None => put.condition_expression("attribute_not_exists(#generation)"),
            Some(seen) => put.condition_expression("#generation = :seen").expression_attribute_values(":seen", s(seen)),
        };
        changed(put.send().await)
    }

    /// Takes the lease for a run, or renews it. Returns whether nobody else has it. The call may be repeated if its answer
    /// is lost.
    pub async fn take_lease(&self, run: Uuid, now: Timestamp) -> Result<bool, StoreError> {
        let mut lease = table::lease::<R>();
        lease.insert(table::UNTIL.to_owned(), n(now.plus_millis(LEASE_MILLIS).millis()));
        lease.insert(table::RUN.to_owned(), s(run.to_string()));
        let condition = "attribute_not_exists(#until) OR #until <= :now OR #run = :run";
        let put = self.put_lease(lease, condition, run).expression_attribute_names("#until", table::UNTIL);
        changed(put.expression_attribute_values(":now", n(now.millis())).send().await)
    }

    /// Ends the lease of a run, unless another run has taken it since.
    pub async fn end_lease(&self, run: Uuid, now: Timestamp) -> Result<(), StoreError> {
        let mut lease = table::lease::<R>();
        lease.insert(table::UNTIL.to_owned(), n(now.millis()));
        changed(self.put_lease(lease, "#run = :run", run).send().await).map(drop)
    }

    fn put_lease(&self, lease: Row, condition: &str, run: Uuid) -> PutItemFluentBuilder {
        let put = self.market.client.put_item().table_name(&self.market.table).set_item(Some(lease));
        let put = put.condition_expression(condition).expression_attribute_names("#run", table::RUN);
        put.expression_attribute_values(":run", s(run.to_string()))
    }
}

/// What was done for a base that is being made.
///
/// It is stored as JSON, so a later release may add members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rebuild {
    /// When the first run began with it.
    pub began_at: Timestamp,
    /// Where the log is read from once the entities were read. All entities were read later.
    pub start: LogPosition,
    /// Which entities are read next. `None` once all were read.
    pub next: Option<EntityCursor>,
    /// How many records were read.
    pub records: u64,
    /// The records, packed like parts, in the order in which they were read.
    pub slices: Vec<ObjectRef>,
}

/// A place among the entities of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntityCursor {
    pub partition: u32,
    /// The last id before the place. `None` at the beginning of the partition.
    pub behind: Option<String>,
}

/// The row as a run has last seen it.
#[derive(Clone, Debug, Default)]
pub struct StoredRebuild {
    /// What is under way. `None` if nothing is, or if it cannot be read: then the entities are read from the beginning.
    pub rebuild: Option<Rebuild>,
    /// Changes with every write of the row.
    generation: Option<String>,
}

impl<R: Record> Log<R> {
    /// Reads which base is being made.
    pub async fn rebuild(&self) -> Result<StoredRebuild, StoreError> {
        let row = get_row(&self.market.client, &self.market.table, table::rebuild::<R>()).await?;
        Ok(row.as_ref().map(StoredRebuild::from_row).unwrap_or_default())
    }

    /// Writes what was done, on condition that the row is still the one that `stored` is. Returns whether it was.
    pub async fn put_rebuild(
        &self,
        stored: &mut StoredRebuild,
        generation: Uuid,
        rebuild: Option<&Rebuild>,
    ) -> Result<bool, StoreError> {
        let (mut row, generation) = (table::rebuild::<R>(), generation.to_string());
        row.insert(table::GENERATION.to_owned(), s(&generation));
        if let Some(rebuild) = rebuild {
            row.insert(table::DATA.to_owned(), s(serde_json::to_string(rebuild)?));
        }
        let put = self.market.client.put_item().table_name(&self.market.table);
        let put = put.set_item(Some(row)).expression_attribute_names("#generation", table::GENERATION);
        let put = match &stored.generation {
            None => put.condition_expression("attribute_not_exists(#generation)"),
            Some(seen) => put.condition_expression("#generation = :seen").expression_attribute_values(":seen", s(seen)),
        };
        let is_put = changed(put.send().await)?;
        if is_put {
            *stored = StoredRebuild { rebuild: rebuild.cloned(), generation: Some(generation) };
        }
        Ok(is_put)
    }
}

impl StoredRebuild {
    fn from_row(row: &Row) -> Self {
        let read = Attributes(row);
        let is_known = table::REBUILD_FORMAT.of_row(row).is_ok();
        let data = read.text(table::DATA).filter(|_| is_known);
        Self {
            rebuild: data.and_then(|data| serde_json::from_str(data).ok()),
            generation: read.text(table::GENERATION).map(ToOwned::to_owned),
        }
    }
}
