//! What a base consists of: objects of the bucket that the manifest names; or, where there is no manifest yet, rows of
//! the market table that the pointer of an earlier release names.

use bytes::Bytes;
use market::{DeltaRef, Hash, Log, LogPosition, Manifest, ObjectRef, Pointer, Record, Standing};
use objects::Objects;
use platform::store::StoreError;
use types::timestamp::Timestamp;
use uuid::Uuid;

use super::chunk;

/// A base and its deltas, as they are stored.
pub(super) struct Base {
    pub(super) generation: Uuid,
    /// Parts and deltas together hold every change up to this position, and none after it.
    pub(super) end: LogPosition,
    pub(super) scanned_at: Timestamp,
    pub(super) parts: Vec<Piece>,
    /// Oldest first.
    pub(super) deltas: Vec<Piece>,
    /// The same deltas, as the manifest names them.
    pub(super) delta_refs: Vec<DeltaRef>,
}

/// A part of a base, or a delta. It never changes.
pub(super) struct Piece {
    place: Place,
    /// Of the packed bytes.
    pub(super) hash: Hash,
}

enum Place {
    Object(String),
    Chunk { generation: Uuid, number: usize },
}

impl Base {
    /// Finds the base of a stream. Returns `None` if there is none, and an error if the row that describes it
    /// cannot be read.
    pub(super) fn find(standing: &Standing) -> Option<Result<Self, StoreError>> {
        if let Some(manifest) = &standing.manifest {
            return Some(manifest.as_ref().map(Self::from_manifest).map_err(Clone::clone));
        }
        let pointer = standing.base.as_ref()?;
        Some(pointer.as_ref().map(Self::from_pointer).map_err(Clone::clone))
    }

    pub(super) fn from_manifest(manifest: &Manifest) -> Self {
        Self {
            generation: manifest.generation,
            end: manifest.end,
            scanned_at: manifest.scanned_at,
            parts: manifest.parts.iter().map(Piece::from_object).collect(),
            deltas: manifest.deltas.iter().map(|delta| Piece::from_object(&delta.object)).collect(),
            delta_refs: manifest.deltas.clone(),
        }
    }

    pub(super) fn from_pointer(pointer: &Pointer) -> Self {
        let place = |number| Place::Chunk { generation: pointer.generation, number };
        let pieces = pointer.hashes.iter().enumerate();
        Self {
            generation: pointer.generation,
            end: pointer.position,
            scanned_at: pointer.scanned_at,
            parts: pieces.map(|(number, hash)| Piece { place: place(number), hash: *hash }).collect(),
            deltas: Vec::new(),
            delta_refs: Vec::new(),
        }
    }

    /// Returns whether only the deltas of two bases differ.
    pub(super) fn has_parts_of(&self, other: &Self) -> bool {
        let (own, others) = (self.parts.iter(), other.parts.iter());
        self.scanned_at == other.scanned_at && own.map(|piece| piece.hash).eq(others.map(|piece| piece.hash))
    }
}

impl Piece {
    pub(super) fn from_object(object: &ObjectRef) -> Self {
        Self { place: Place::Object(object.key.clone()), hash: object.hash }
    }

    /// Reads the packed bytes and compares them with their hash.
    pub(super) async fn read<R: Record>(&self, log: &Log<R>, objects: &Objects) -> Result<Bytes, StoreError> {
        let (name, packed) = match &self.place {
            Place::Object(key) => (key.clone(), objects.get(key).await?),
            Place::Chunk { generation, number } => {
                (format!("chunk {number}"), log.base_chunk(*generation, *number).await?.map(Bytes::from))
            }
        };
        let packed = packed.ok_or_else(|| StoreError::corrupt(format!("{name} is missing")))?;
        if chunk::hash(&packed) != self.hash {
            return Err(StoreError::corrupt(format!("{name} is not what was written")));
        }
        Ok(packed)
    }
}
