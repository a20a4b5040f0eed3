//! Packs records into the objects of a base, and unpacks them: the parts, and the deltas beside them.
//!
//! A part holds columns, packed by postcard and compressed by zstd. Its first byte is the number of its layout. In
//! layout 1 the next four bytes are the unpacked length.
//!
//! A delta is packed like a part. Its content is, by postcard, the ids of the records that are gone, and the columns of
//! those that were put. With deltas beside the base, a cold start reads only the end of the log, and a small change does
//! not have to rewrite the base.

use std::collections::HashMap;
use std::fmt::Display;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::columns::{Columnar, Columns};
use crate::objects::Objects;
use common::layout::Format;
use common::store::StoreError;
use market::{Hash, ObjectRef};

/// The most bytes of a packed part. Larger objects would hardly save requests, and smaller ones arrive sooner when many
/// are read side by side.
const MAX_BYTES: usize = 4 * 1_024 * 1_024;
/// The most records in a part.
const MAX_RECORDS: usize = 131_072;
/// Records are packed together up to this many bytes, before they are compressed.
const MAX_GROUP_BYTES: usize = 32 * 1_024 * 1_024;
/// The most bytes of a part once unpacked: four times as many as this release packs.
const MAX_UNPACKED_BYTES: usize = 128 * 1_024 * 1_024;
/// The compression level. Higher levels take several times as long and save a few percent.
const COMPRESSION_LEVEL: i32 = 3;

/// Gathers records, in their order, into groups that are packed together.
pub(super) struct Packer<R> {
    records: Vec<R>,
    bytes: usize,
}

impl<R> Default for Packer<R> {
    fn default() -> Self {
        Self { records: Vec::new(), bytes: 0 }
    }
}

impl<R: Columnar> Packer<R> {
    /// Adds a record. Returns the group that was full before.
    pub(super) fn push(&mut self, record: R) -> Option<Vec<R>> {
        let bytes = postcard::experimental::serialized_size(&record).unwrap_or_default();
        let is_full = self.records.len() == MAX_RECORDS || self.bytes + bytes > MAX_GROUP_BYTES;
        let full = is_full.then(|| std::mem::take(self).records);
        self.bytes += bytes;
        self.records.push(record);
        full
    }

    /// Returns the last group, which may be empty.
    pub(super) fn rest(self) -> Vec<R> {
        self.records
    }
}

/// Packs a group of records into one part. If it would be too large, packs each half of the records on its own, and so
/// on.
pub fn pack<R: Columnar>(records: &[R]) -> Result<Vec<Vec<u8>>, StoreError> {
    let packed = compress(R::PART, &postcard::to_stdvec(&R::Columns::from_records(records))?)?;
    if packed.len() <= MAX_BYTES || records.len() <= 1 {
        return Ok(vec![packed]);
    }
    let (lower, upper) = records.split_at(records.len() / 2);
    let mut parts = pack(lower)?;
    parts.append(&mut pack(upper)?);
    Ok(parts)
}

/// Compresses bytes, and puts layout and length before them.
fn compress(format: Format, bytes: &[u8]) -> Result<Vec<u8>, StoreError> {
    let defect = |error: &dyn Display| StoreError::Defect(error.to_string());
    let length = u32::try_from(bytes.len()).map_err(|error| defect(&error))?;
    let compressed = zstd::bulk::compress(bytes, COMPRESSION_LEVEL).map_err(|error| defect(&error))?;
    Ok([&[format.writes], &length.to_le_bytes()[..], &compressed].concat())
}

/// Returns the hash that the manifest has of an object, so that a reader notices if it was damaged.
pub fn hash(packed: &[u8]) -> Hash {
    Sha256::digest(packed).into()
}

/// Reads an object that the manifest names, and compares it with its hash.
pub(super) async fn read(object: &ObjectRef, objects: &Objects) -> Result<Bytes, StoreError> {
    let packed = get(object, objects).await?;
    verify(object, &packed)?;
    Ok(packed)
}

/// Reads an object that the manifest names.
pub(super) async fn get(object: &ObjectRef, objects: &Objects) -> Result<Bytes, StoreError> {
    let key = &object.key;
    objects.get(key).await?.ok_or_else(|| StoreError::corrupt(format!("{key} is missing")))
}

/// Compares what was read with the hash that the manifest has of it.
pub(super) fn verify(object: &ObjectRef, packed: &[u8]) -> Result<(), StoreError> {
    let is_whole = hash(packed) == object.hash;
    is_whole.then_some(()).ok_or_else(|| StoreError::corrupt(format!("{} is not what was written", object.key)))
}

/// Unpacks the columns of a part.
pub(super) fn unpack<R: Columnar>(packed: &[u8]) -> Result<R::Columns, StoreError> {
    let columns = decompress(R::PART, packed)?;
    let columns: R::Columns = postcard::from_bytes(&columns).map_err(|error| R::PART.corrupt(&error))?;
    if columns.is_sound() { Ok(columns) } else { Err(R::PART.corrupt(&"its columns do not fit together")) }
}

/// Takes the layout and the length off packed bytes, and decompresses the rest.
fn decompress(format: Format, packed: &[u8]) -> Result<Vec<u8>, StoreError> {
    let (_, rest) = format.split(packed)?;
    let Some((length, compressed)) = rest.split_first_chunk() else { return Err(format.corrupt(&"it is cut off")) };
    let length = (u32::from_le_bytes(*length) as usize).min(MAX_UNPACKED_BYTES);
    zstd::bulk::decompress(compressed, length).map_err(|error| format.corrupt(&error))
}

/// What changed between two positions of the log. No id is in it twice.
pub(super) struct Delta<R: Columnar> {
    pub(super) gone: Vec<R::Id>,
    pub(super) put: R::Columns,
}

impl<R: Columnar> Delta<R> {
    /// Packs the last change to each record. Large ones become several deltas, which may be read in any order.
    pub(super) fn pack(last: HashMap<R::Id, Option<R>>) -> Result<Vec<Vec<u8>>, StoreError> {
        let (mut gone, mut put) = (Vec::new(), Vec::new());
        for (id, record) in last {
            match record {
                Some(record) => put.push(record),
                None => gone.push(id),
            }
        }
        gone.sort_unstable();
        put.sort_unstable_by(R::base_order);
        let mut packer = Packer::default();
        let mut groups: Vec<Vec<R>> = put.into_iter().filter_map(|record| packer.push(record)).collect();
        groups.push(packer.rest());
        let pack = |group: Vec<R>| {
            let content = (std::mem::take(&mut gone), R::Columns::from_records(&group));
            compress(R::DELTA, &postcard::to_stdvec(&content)?)
        };
        groups.into_iter().map(pack).collect()
    }

    pub(super) fn unpack(packed: &[u8]) -> Result<Self, StoreError> {
        let bytes = decompress(R::DELTA, packed)?;
        let (gone, put): (Vec<R::Id>, R::Columns) =
            postcard::from_bytes(&bytes).map_err(|error| R::DELTA.corrupt(&error))?;
        if put.is_sound() { Ok(Self { gone, put }) } else { Err(R::DELTA.corrupt(&"its columns do not fit together")) }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use common::ids::ListingId;
    use common::records::{PublicItem, PublicListing};
    use market::Record;

    fn items(count: u32, image_bytes: usize) -> Vec<PublicItem> {
        let mut noise = 1_u64;
        let mut random = move || {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'a' + (noise >> 60) as u8)
        };
        let item = |number: u32| PublicItem {
            id: format!("item-{number}").parse().unwrap(),
            kind: "skin".parse().unwrap(),
            name: None,
            slug: None,
            image: format!("https://{}", (0..image_bytes).map(|_| random()).collect::<String>()).parse().ok(),
        };
        (0..count).map(item).collect()
    }

    fn parts(items: &[PublicItem]) -> Vec<Vec<u8>> {
        let mut packer = Packer::default();
        let mut groups: Vec<_> = items.iter().filter_map(|item| packer.push(item.clone())).collect();
        groups.push(packer.rest());
        groups.iter().flat_map(|group| pack(group).unwrap()).collect()
    }

    #[test]
    fn parts_stay_below_their_size_and_hold_everything_in_order() {
        // The second has more than the most records, the third more than the most bytes, packed and unpacked.
        for (count, image_bytes) in [(1, 2_000), (140_000, 0), (20_000, 2_000)] {
            let items = items(count, image_bytes);
            let parts = parts(&items);
            assert!(parts.iter().all(|packed| packed.len() <= MAX_BYTES));
            assert_eq!(parts.len() > 1, count > 1);
            let back = parts.iter().flat_map(|packed| unpack::<PublicItem>(packed).unwrap().records().unwrap());
            assert!(back.eq(items), "{count} items");
        }
    }

    #[test]
    fn a_broken_part_is_an_error_wherever_it_is_broken() {
        let packed = parts(&items(40, 5)).remove(0);
        for length in 0..packed.len() {
            assert!(unpack::<PublicItem>(&packed[..length]).is_err(), "cut off after {length} bytes");
        }
        let mut other_layout = packed;
        other_layout[0] += 1;
        assert!(matches!(unpack::<PublicItem>(&other_layout), Err(StoreError::Corrupt { .. })));
    }

    /// Layout 1, in which the listing 2 is gone, and one was put.
    const GOLDEN: &[u8] = b"\x01w\x00\x00\x00(\xb5/\xfd w\xb9\x03\x00\x01\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\
    \x00\x00\x00\x00\x00\x02\x01\x0dak-47-redline\x01\x1eAK-47 | Redline (Field-Tested)\x01\
    \x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07\x01\x01\x01\x01\x10\
    \x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x01\x01\x01\x80\xb4\xb0\
    \x86\xbfh\x01d\x01\x00\x01\x00";

    fn id(number: u128) -> ListingId {
        Uuid::from_u128(number).into()
    }

    #[test]
    fn a_delta_is_written_and_read_as_the_golden_one() {
        let Delta { gone, put } = Delta::<PublicListing>::unpack(GOLDEN).unwrap();
        let records = put.records().unwrap();
        assert_eq!((&gone[..], records.iter().map(Record::id).collect::<Vec<_>>()), (&[id(2)][..], vec![id(1)]));
        let put = records.into_iter().map(|record| (record.id(), Some(record)));
        let last = gone.into_iter().map(|id| (id, None)).chain(put).collect();
        let packed = Delta::<PublicListing>::pack(last).unwrap();
        let content = |packed: &[u8]| decompress(PublicListing::DELTA, packed).unwrap();
        assert_eq!(packed.iter().map(|packed| content(packed)).collect::<Vec<_>>(), [content(GOLDEN)]);
    }

    #[test]
    fn a_broken_delta_is_an_error_wherever_it_is_broken() {
        for length in 0..GOLDEN.len() {
            assert!(Delta::<PublicListing>::unpack(&GOLDEN[..length]).is_err(), "cut off after {length} bytes");
        }
        let newer = [&[2], &GOLDEN[1..]].concat();
        assert!(matches!(Delta::<PublicListing>::unpack(&newer), Err(StoreError::Corrupt { .. })));
    }
}
