//! Packs records into the chunks of a base, and unpacks them. A chunk holds columns, packed by postcard and compressed
//! by zstd, and stays below the 400 KB that DynamoDB allows for a row. Its first byte is the number of its layout. In
//! layout 1 the next four bytes are the unpacked length.

use super::columns::{Columnar, Columns};
use market::Hash;
use platform::layout::Format;
use platform::store::StoreError;
use sha2::{Digest, Sha256};

/// The most bytes of a chunk. This leaves room for keys and attribute names in DynamoDB's 400 KB for a row.
const MAX_BYTES: usize = 390_000;
/// The most records in a chunk.
const MAX_RECORDS: usize = 16_384;
/// The most bytes of a chunk once unpacked: enough for 16,384 records of the largest size that the feed accepts.
const MAX_UNPACKED_BYTES: usize = 128 * 1_024 * 1_024;
/// The compression level. Higher levels take several times as long and save a few percent.
const COMPRESSION_LEVEL: i32 = 3;

/// Packs records, in their order, into chunks.
pub(super) fn pack<R: Columnar>(records: &[R]) -> Result<Vec<Vec<u8>>, StoreError> {
    let mut chunks = Vec::new();
    for records in records.chunks(MAX_RECORDS) {
        pack_halves(records, &mut chunks)?;
    }
    Ok(chunks)
}

/// Packs records into one chunk. If it would be too large, packs each half of the records on its own, and so on.
fn pack_halves<R: Columnar>(records: &[R], chunks: &mut Vec<Vec<u8>>) -> Result<(), StoreError> {
    let columns = postcard::to_stdvec(&R::Columns::from_records(records))?;
    let compressed =
        zstd::bulk::compress(&columns, COMPRESSION_LEVEL).map_err(|error| StoreError::Defect(error.to_string()))?;
    let length = u32::try_from(columns.len()).map_err(|error| StoreError::Defect(error.to_string()))?;
    let packed = [&[R::CHUNK.writes], &length.to_le_bytes()[..], &compressed].concat();
    if packed.len() > MAX_BYTES && records.len() > 1 {
        let (lower, upper) = records.split_at(records.len() / 2);
        pack_halves(lower, chunks)?;
        return pack_halves(upper, chunks);
    }
    chunks.push(packed);
    Ok(())
}

/// Returns the hash that the pointer has of a chunk, so that a reader notices if the chunk was damaged.
pub(super) fn hash(packed: &[u8]) -> Hash {
    Sha256::digest(packed).into()
}

/// Unpacks the columns of a chunk.
pub(super) fn unpack<R: Columnar>(packed: &[u8]) -> Result<R::Columns, StoreError> {
    let columns = decompress(R::CHUNK, packed)?;
    let columns: R::Columns = postcard::from_bytes(&columns).map_err(|error| R::CHUNK.corrupt(&error))?;
    if columns.is_sound() { Ok(columns) } else { Err(R::CHUNK.corrupt(&"its columns do not fit together")) }
}

/// Takes the layout and the length off packed bytes, and decompresses the rest.
pub(super) fn decompress(format: Format, packed: &[u8]) -> Result<Vec<u8>, StoreError> {
    let (_, rest) = format.split(packed)?;
    let Some((length, compressed)) = rest.split_first_chunk() else { return Err(format.corrupt(&"it is cut off")) };
    let length = (u32::from_le_bytes(*length) as usize).min(MAX_UNPACKED_BYTES);
    zstd::bulk::decompress(compressed, length).map_err(|error| format.corrupt(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::records::PublicItem;

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

    fn unpacked(chunks: &[Vec<u8>]) -> Vec<PublicItem> {
        chunks.iter().flat_map(|packed| unpack::<PublicItem>(packed).unwrap().records().unwrap()).collect()
    }

    #[test]
    fn chunks_stay_below_the_size_of_an_item_and_hold_everything_in_order() {
        for (count, image_bytes) in [(0, 0), (1, 2_000), (20_000, 10), (3_000, 2_000)] {
            let items = items(count, image_bytes);
            let chunks = pack(&items).unwrap();
            assert!(chunks.iter().all(|packed| packed.len() <= MAX_BYTES));
            assert_eq!(unpacked(&chunks), items);
        }
    }

    #[test]
    fn a_broken_chunk_is_an_error_wherever_it_is_broken() {
        let packed = pack(&items(40, 5)).unwrap().remove(0);
        for length in 0..packed.len() {
            assert!(unpack::<PublicItem>(&packed[..length]).is_err(), "cut off after {length} bytes");
        }
        let mut other_layout = packed;
        other_layout[0] += 1;
        assert!(matches!(unpack::<PublicItem>(&other_layout), Err(StoreError::Corrupt { .. })));
    }
}
