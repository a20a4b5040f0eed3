//! Deltas: the last change to each record that a stretch of the log is about. With them beside the base, a cold start
//! reads only the end of the log, and a small change does not have to rewrite the base.
//!
//! A delta is packed like a part. Its content is, by postcard, the ids of the records that are gone, and the columns of
//! those that were put.

use platform::store::StoreError;

use super::chunk;
use super::columns::{Columnar, Columns};

/// What changed between two positions of the log. No id is in it twice.
pub(super) struct Delta<R: Columnar> {
    pub(super) gone: Vec<R::Id>,
    pub(super) put: R::Columns,
}

impl<R: Columnar> Delta<R> {
    pub(super) fn unpack(packed: &[u8]) -> Result<Self, StoreError> {
        let bytes = chunk::decompress(R::DELTA, packed)?;
        let (gone, put): (Vec<R::Id>, R::Columns) =
            postcard::from_bytes(&bytes).map_err(|error| R::DELTA.corrupt(&error))?;
        if put.is_sound() { Ok(Self { gone, put }) } else { Err(R::DELTA.corrupt(&"its columns do not fit together")) }
    }
}
