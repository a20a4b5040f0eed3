//! Deltas: the last change to each record that a stretch of the log is about. With them beside the base, a cold start
//! reads only the end of the log, and a small change does not have to rewrite the base.
//!
//! A delta is packed like a part. Its content is, by postcard, the ids of the records that are gone, and the columns of
//! those that were put.

use std::collections::HashMap;

use common::store::StoreError;

use super::columns::{Columnar, Columns};
use super::part::{self, Packer};

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
            part::compress(R::DELTA, &postcard::to_stdvec(&content)?)
        };
        groups.into_iter().map(pack).collect()
    }

    pub(super) fn unpack(packed: &[u8]) -> Result<Self, StoreError> {
        let bytes = part::decompress(R::DELTA, packed)?;
        let (gone, put): (Vec<R::Id>, R::Columns) =
            postcard::from_bytes(&bytes).map_err(|error| R::DELTA.corrupt(&error))?;
        if put.is_sound() { Ok(Self { gone, put }) } else { Err(R::DELTA.corrupt(&"its columns do not fit together")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use common::ids::ListingId;
    use common::records::PublicListing;
    use market::Record;
    use uuid::Uuid;

    /// Layout 1, in which the listing 2 is gone, and the listing of `tests/golden/base-part-listings.json` was put.
    const GOLDEN: &[u8] =
        b"\x01w\x00\x00\x00(\xb5/\xfd w\xb9\x03\x00\x01\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\
        \x00\x00\x00\x00\x02\x01\x0dak-47-redline\x01\x1eAK-47 | Redline (Field-Tested)\x01\x10\x00\x00\
        \x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07\x01\x00\x00\x00\x00\x00\x00\x00\x00\
        \x00\x00\x00\x00\x00\x00\x00\x01\x01\x01\x01\x80\xb4\xb0\x86\xbfh\x01d\x01\x01\x01\x01\x01\x01\
        \x01\x00";

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
        let content = |packed: &[u8]| part::decompress(PublicListing::DELTA, packed).unwrap();
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
