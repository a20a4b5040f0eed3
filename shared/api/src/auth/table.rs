//! The keys table: key shapes, attribute names, layouts, and a key's row in its parsed form.
//!
//! A key has three rows, written in one transaction. The key row lies under the key's hash, and only this row changes
//! afterwards, apart from when the others are removed. The other two find it by key id and by user. One more row of each
//! user orders those who make keys.

use aws_sdk_dynamodb::types::AttributeValue;
use common::closed_enum;
use common::ids::{KeyId, UserId};
use common::layout::Format;
use common::scope::{Scopes, Tier};
use common::store::{Attributes, Row, StoreError, n, s};
use common::timestamp::Timestamp;
use serde::Serialize;

use crate::auth::text::KeyHash;

pub const PK: &str = "pk";
pub const SK: &str = "sk";
pub const STATUS: &str = "status";
pub const EXPIRES_AT: &str = "expires_at";
pub(super) const SCOPES: &str = "scopes";
pub const LIMIT_OVERRIDE: &str = "limit_override";
pub const TIER: &str = "tier";
pub const NAME: &str = "name";
/// Followed by the letter of a budget.
pub(super) const LAST_REQUEST: &str = "lr";
pub(super) const LAST_USED_AT: &str = "last_used_at";
pub const HASH: &str = "hash";
/// In the three rows of a key that a rotation made: the hash of the key that it replaced.
pub const REPLACES: &str = "replaces";
/// In the row of a key that a rotation replaced: the hash of the key that replaced it. The key is revoked, or it is
/// accepted until the rotation's overlap ends.
pub const REPLACED_BY: &str = "replaced_by";
/// Beside [`REPLACED_BY`]: that key's id.
pub const SUCCESSOR_ID: &str = "successor_id";
pub const REVOKED_AT: &str = "revoked_at";
pub const KEY_ID: &str = "key_id";
pub const USER_ID: &str = "user_id";
const CREATED_AT: &str = "created_at";
const LAST4: &str = "last4";

/// Of the row that orders those who make keys for a user: how many have, the day of the last, how many there were on that
/// day, and the id of the last key.
pub const TURN: &str = "turn";
pub const DAY: &str = "day";
pub const MADE: &str = "made";
pub const NEWEST: &str = "newest";

const KEY_PARTITION: &str = "key#";
const ID_PARTITION: &str = "id#";
const USER_PARTITION: &str = "user#";
const TURN_PARTITION: &str = "turn#";

pub const KEY_FORMAT: Format = Format::first("key");
/// The two rows that hold a key's hash.
pub const FINDER_FORMAT: Format = Format::first("finder of a key");

closed_enum! {
    /// Whether a key was revoked.
    pub enum KeyStatus {
        /// It is accepted, until it expires.
        Active = "active",
        /// It is never accepted again.
        Revoked = "revoked",
    }
}

/// Everything that is stored of a key, except its hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeyRecord {
    /// Public. Logs and commands name the key by this id.
    pub key_id: KeyId,
    pub user_id: UserId,
    /// The owner's name for the key, at most 128 bytes.
    pub name: Option<String>,
    pub tier: Tier,
    pub scopes: Scopes,
    /// Tokens per minute and scope: the key's own limit, or its tier's.
    #[serde(rename = "rate_limit_per_minute")]
    pub limit: u32,
    /// The key's own limit, if it does not follow its tier.
    #[serde(skip)]
    pub limit_override: Option<u32>,
    pub status: KeyStatus,
    pub created_at: Timestamp,
    /// From when on the key is refused, or `None` if it never expires.
    pub expires_at: Option<Timestamp>,
    /// When a request with this key was last admitted.
    pub last_used_at: Option<Timestamp>,
    /// The last four characters of the key's text, by which an owner tells keys apart.
    pub last4: String,
    /// The key that replaced it in a rotation.
    pub replaced_by: Option<KeyId>,
    /// When it was revoked or replaced at once.
    pub revoked_at: Option<Timestamp>,
}

impl KeyRecord {
    /// Returns whether the key is accepted at `now`.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.status == KeyStatus::Active && self.expires_at.is_none_or(|at| at > now)
    }

    /// Returns whether the key of a row is revoked. Nothing else of the row needs to be readable.
    pub(super) fn is_revoked(row: &Row) -> bool {
        Attributes(row).text(STATUS) == Some(KeyStatus::Revoked.as_str())
    }

    pub fn to_row(&self, hash: &KeyHash) -> Row {
        let scopes = self.scopes.iter().map(ToString::to_string).collect();
        let mut row = key_row(hash);
        row.extend([
            (KEY_ID.to_owned(), s(self.key_id.to_string())),
            (USER_ID.to_owned(), s(self.user_id.to_string())),
            (TIER.to_owned(), s(self.tier.as_str())),
            (SCOPES.to_owned(), AttributeValue::Ss(scopes)),
            (STATUS.to_owned(), s(self.status.as_str())),
            (CREATED_AT.to_owned(), n(self.created_at.millis())),
            (LAST4.to_owned(), s(&self.last4)),
        ]);
        row.extend(self.name.as_ref().map(|name| (NAME.to_owned(), s(name))));
        row.extend(self.limit_override.map(|limit| (LIMIT_OVERRIDE.to_owned(), n(limit))));
        row.extend(self.expires_at.map(|at| (EXPIRES_AT.to_owned(), n(at.millis()))));
        row.extend(self.replaced_by.map(|id| (SUCCESSOR_ID.to_owned(), s(id.to_string()))));
        row.extend(self.revoked_at.map(|at| (REVOKED_AT.to_owned(), n(at.millis()))));
        row
    }

    pub fn from_row(row: &Row) -> Result<Self, StoreError> {
        KEY_FORMAT.of_row(row)?;
        let read = Attributes(row);
        let time = |name| Ok::<_, StoreError>(read.optional_number(name)?.map(Timestamp::from_millis));
        let scopes = row.get(SCOPES).and_then(|value| value.as_ss().ok());
        let scopes = scopes.ok_or_else(|| StoreError::corrupt(SCOPES))?;
        let (tier, limit_override) = (read.parsed::<Tier>(TIER)?, read.optional_number(LIMIT_OVERRIDE)?);
        Ok(Self {
            key_id: read.parsed(KEY_ID)?,
            user_id: read.parsed(USER_ID)?,
            name: read.text(NAME).map(str::to_owned),
            tier,
            scopes: scopes.iter().filter_map(|scope| scope.parse().ok()).collect(),
            limit: limit_override.unwrap_or(tier.limit()),
            limit_override,
            status: read.parsed(STATUS)?,
            created_at: Timestamp::from_millis(read.required_number(CREATED_AT)?),
            expires_at: time(EXPIRES_AT)?,
            last_used_at: time(LAST_USED_AT)?,
            last4: read.parsed(LAST4)?,
            replaced_by: read.parsed(SUCCESSOR_ID).ok(),
            revoked_at: read.number(REVOKED_AT).map(Timestamp::from_millis),
        })
    }
}

/// Returns the table key of the key row.
pub(super) fn key_row(hash: &KeyHash) -> Row {
    hash_row(&hash.hex())
}

/// Returns the table key of the key row, from the hash in hex.
pub fn hash_row(hex: &str) -> Row {
    place(format!("{KEY_PARTITION}{hex}"), "key")
}

/// Returns the hash in hex of the key whose row has this partition key, or `None` if it is another row.
pub fn hash_of_partition(pk: &str) -> Option<&str> {
    pk.strip_prefix(KEY_PARTITION)
}

/// Returns the table key of the row that holds the hash of the key with this id.
pub fn id_row(key_id: KeyId) -> Row {
    place(format!("{ID_PARTITION}{key_id}"), "hash")
}

/// Returns the id of the key that the row with this partition key finds by its id, or `None` if it is another row.
pub fn id_of_partition(pk: &str) -> Option<KeyId> {
    pk.strip_prefix(ID_PARTITION)?.parse().ok()
}

/// Returns the partition key under which a user's keys are listed.
pub fn user_partition(user: UserId) -> String {
    format!("{USER_PARTITION}{user}")
}

/// Returns the user whose keys are listed under this partition key, or `None` if it is that of another row.
pub fn user_of_partition(pk: &str) -> Option<UserId> {
    pk.strip_prefix(USER_PARTITION)?.parse().ok()
}

/// Returns the table key of a key's row in its user's list.
pub fn user_row(user: UserId, key_id: KeyId) -> Row {
    place(user_partition(user), &key_id.to_string())
}

/// Returns the table key of the row that orders those who make keys for a user.
pub fn turn_row(user: UserId) -> Row {
    place(format!("{TURN_PARTITION}{user}"), "keys")
}

/// Returns whether the row with this partition key orders those who make keys.
pub fn is_turn(pk: &str) -> bool {
    pk.starts_with(TURN_PARTITION)
}

fn place(pk: String, sk: &str) -> Row {
    Row::from([(PK.to_owned(), s(pk)), (SK.to_owned(), s(sk))])
}
