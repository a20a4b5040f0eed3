//! The rows of keys as a repair reads them, and what it finds wrong with them. It needs only what ties the rows
//! together, so the rest need not be readable.

use std::collections::{BTreeMap, BTreeSet};

use api::auth::KeyStatus;
use api::auth::table::{self, HASH, KEY_ID, PK, REPLACED_BY, REPLACES, SK, STATUS, USER_ID};
use common::ids::{KeyId, UserId};
use common::resources::TTL;
use common::rows::{Unreadable, get_rows};
use common::store::{Attributes, Row, StoreError};

use crate::keys::{KeyAdmin, finders};

/// The largest number of keys in a `BatchGetItem` (DynamoDB's limit).
const ROWS_PER_READ: usize = 100;

/// A key whose rows were brought in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangedKey {
    pub key_id: KeyId,
    /// Its owner, if a row that is left tells.
    pub user_id: Option<UserId>,
}

/// A key's own row.
pub(super) struct StoredKey {
    pub(super) hash: String,
    key_id: KeyId,
    user_id: UserId,
    /// The hash of the key that it replaced.
    pub(super) replaces: Option<String>,
    /// Whether its row will be removed.
    is_ending: bool,
}

/// A row that finds a key.
pub(super) struct StoredFinder {
    /// Its place in the table.
    pub(super) place: Row,
    /// The hash of the key that it finds.
    pub(super) hash: String,
    pub(super) key_id: KeyId,
    pub(super) user_id: Option<UserId>,
    /// The hash of the key which that key replaced.
    pub(super) replaces: Option<String>,
}

#[derive(Default)]
pub(super) struct StoredRows {
    pub(super) keys: Vec<StoredKey>,
    pub(super) finders: Vec<StoredFinder>,
    pub(super) unreadable: Vec<Unreadable>,
}

/// The rows that the rows of a page name, as far as they are there.
pub(super) struct Named {
    /// The rows of keys by their hashes.
    keys: BTreeMap<String, Row>,
    /// Whether each row that finds a key will be removed, by partition key and sort key.
    finders: BTreeMap<(String, String), bool>,
}

impl StoredRows {
    pub(super) fn from_rows(rows: &[Row]) -> Self {
        let mut stored = Self::default();
        for row in rows {
            let pk = Attributes(row).text(PK).unwrap_or_default();
            if table::is_turn(pk) {
                continue;
            }
            let read = match table::hash_of_partition(pk) {
                Some(hash) => StoredKey::from_row(hash, row).map(|key| stored.keys.push(key)),
                None => StoredFinder::from_row(pk, row).map(|finder| stored.finders.push(finder)),
            };
            stored.unreadable.extend(read.err().map(|error| unreadable(row, error)));
        }
        stored
    }
}

impl StoredKey {
    pub(super) fn from_row(hash: &str, row: &Row) -> Result<Self, StoreError> {
        table::KEY_FORMAT.of_row(row)?;
        let read = Attributes(row);
        Ok(Self {
            hash: hash.to_owned(),
            key_id: read.parsed(KEY_ID)?,
            user_id: read.parsed(USER_ID)?,
            replaces: read.text(REPLACES).map(str::to_owned),
            is_ending: row.contains_key(TTL),
        })
    }

    /// Returns the rows that should find it.
    pub(super) fn finders(&self) -> [Row; 2] {
        finders(&self.hash, self.key_id, self.user_id, self.replaces.as_deref())
    }

    pub(super) fn changed(&self) -> ChangedKey {
        ChangedKey { key_id: self.key_id, user_id: Some(self.user_id) }
    }
}

impl StoredFinder {
    fn from_row(pk: &str, row: &Row) -> Result<Self, StoreError> {
        table::FINDER_FORMAT.of_row(row)?;
        let read = Attributes(row);
        let user_id = table::user_of_partition(pk);
        let (key_id, place) = match (table::id_of_partition(pk), user_id) {
            (Some(key_id), _) => (key_id, table::id_row(key_id)),
            (None, Some(user)) => {
                let key_id = read.parsed(SK)?;
                (key_id, table::user_row(user, key_id))
            }
            (None, None) => return Err(StoreError::corrupt(PK)),
        };
        let hash = read.text(HASH).ok_or_else(|| StoreError::corrupt(HASH))?.to_owned();
        let replaces = read.text(REPLACES).map(str::to_owned);
        Ok(Self { place, hash, key_id, user_id, replaces })
    }
}

impl Named {
    pub(super) fn has_key(&self, hash: &str) -> bool {
        self.keys.contains_key(hash)
    }

    /// Returns whether a row that finds a key is there, and stays for as long as the key's own.
    pub(super) fn has_finder(&self, key: &StoredKey, finder: &Row) -> bool {
        let is_ending = place(finder).and_then(|place| self.finders.get(&place));
        is_ending.is_some_and(|is_ending| key.is_ending || !is_ending)
    }

    /// Returns the row of a key that is there and was ended neither by a revocation nor by a rotation to `successor`.
    pub(super) fn not_ended(&self, hash: &str, successor: &str) -> Option<&Row> {
        self.keys.get(hash).filter(|row| is_unrevoked(row) && !is_replaced_by(row, successor))
    }
}

impl KeyAdmin {
    /// Reads the rows that these rows name.
    pub(super) async fn named(&self, keys: &[StoredKey], finders: &[StoredFinder]) -> Result<Named, StoreError> {
        let by_keys = keys.iter().filter_map(|key| key.replaces.as_ref());
        let by_finders = finders.iter().flat_map(|finder| [Some(&finder.hash), finder.replaces.as_ref()]).flatten();
        let hashes: BTreeSet<&String> = by_keys.chain(by_finders).collect();
        let named_keys = self.rows_at(hashes.into_iter().map(|hash| table::hash_row(hash)).collect()).await?;
        let named_finders = self.rows_at(keys.iter().flat_map(StoredKey::finders).map(only_place).collect()).await?;
        let hash = |row: &Row| table::hash_of_partition(Attributes(row).text(PK)?).map(str::to_owned);
        Ok(Named {
            keys: named_keys.into_iter().filter_map(|row| Some((hash(&row)?, row))).collect(),
            finders: named_finders.iter().filter_map(|row| Some((place(row)?, row.contains_key(TTL)))).collect(),
        })
    }

    /// Reads the rows at these different places.
    pub(super) async fn rows_at(&self, places: Vec<Row>) -> Result<Vec<Row>, StoreError> {
        let mut rows = Vec::with_capacity(places.len());
        for places in places.chunks(ROWS_PER_READ) {
            rows.append(&mut get_rows(&self.client, &self.table, places.to_vec()).await?);
        }
        Ok(rows)
    }
}

/// Says why a row cannot be read. A key's own row is named by the key's id if it has one, because it lies under a hash
/// that nobody knows.
pub(in crate::keys) fn unreadable(row: &Row, error: StoreError) -> Unreadable {
    match Attributes(row).parsed(KEY_ID) {
        Ok(key_id) => Unreadable::new(&table::id_row(key_id), error),
        Err(_) => Unreadable::new(row, error),
    }
}

/// Returns whether a key's row does not say that the key is revoked. The rest of the row need not be readable.
pub(super) fn is_unrevoked(row: &Row) -> bool {
    Attributes(row).text(STATUS) != Some(KeyStatus::Revoked.as_str())
}

/// Returns whether a key's row says that the key with this hash replaced it.
pub(super) fn is_replaced_by(row: &Row, successor: &str) -> bool {
    Attributes(row).text(REPLACED_BY) == Some(successor)
}

fn place(row: &Row) -> Option<(String, String)> {
    let part = |name| Attributes(row).text(name).map(str::to_owned);
    Some((part(PK)?, part(SK)?))
}

/// Leaves of a row what makes up its table key.
fn only_place(mut row: Row) -> Row {
    row.retain(|name, _| name == PK || name == SK);
    row
}
