//! Finds the newest of several messages about one entity, so that only that one is written.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use market::{Record, Write};

/// The newest write of an entity, with the tag of its message and those of the messages that are not newer.
#[derive(Debug)]
pub(super) struct NewestWrite<T, R: Record> {
    pub(super) write: Write<R>,
    pub(super) tag: T,
    /// The tags of the other messages about the entity.
    pub(super) superseded: Vec<T>,
}

/// Returns the newest write of each entity, in the order in which the entities came first. Of two writes with the same
/// version, the first one counts, as it does if they come one after the other.
pub(super) fn newest<T, R: Record>(writes: impl IntoIterator<Item = (T, Write<R>)>) -> Vec<NewestWrite<T, R>> {
    let mut places = BTreeMap::new();
    let mut found: Vec<NewestWrite<T, R>> = Vec::new();
    for (tag, write) in writes {
        match places.entry(write.id()) {
            Entry::Vacant(place) => {
                place.insert(found.len());
                found.push(NewestWrite { write, tag, superseded: Vec::new() });
            }
            Entry::Occupied(place) => found[*place.get()].meet(tag, write),
        }
    }
    found
}

impl<T, R: Record> NewestWrite<T, R> {
    /// Puts another write in this one's place if it is newer, and otherwise only notes its tag.
    fn meet(&mut self, tag: T, write: Write<R>) {
        let is_newer = write.version > self.write.version;
        let superseded = if is_newer { std::mem::replace(&mut self.tag, tag) } else { tag };
        if is_newer {
            self.write = write;
        }
        self.superseded.push(superseded);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use common::records::PublicListing;
    use uuid::Uuid;

    #[test]
    fn the_newest_write_of_each_entity_stands_for_the_others_and_the_first_of_equals() {
        let removal = |id, version| Write::<PublicListing>::removal(Uuid::from_u128(id).into(), version);
        let messages = [('a', 1, 2), ('b', 2, 7), ('c', 1, 3), ('d', 1, 1), ('e', 1, 3)];
        let found = newest(messages.map(|(tag, id, version)| (tag, removal(id, version))));
        let found: Vec<_> = found.into_iter().map(|one| (one.write.version, one.tag, one.superseded)).collect();
        assert_eq!(found, [(3, 'c', vec!['a', 'd', 'e']), (7, 'b', vec![])]);
    }
}
