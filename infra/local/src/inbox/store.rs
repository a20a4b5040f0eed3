//! Keeps the latest deliveries and lets readers follow them.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use tokio::sync::watch;
use uuid::Uuid;

use super::delivery::ReceivedDelivery;

/// The most deliveries that are kept.
const MAX_DELIVERIES: usize = 200;

/// The kept deliveries. Followers wake at each change.
#[derive(Debug, Default)]
pub(super) struct Store(watch::Sender<KeptDeliveries>);

/// The state between two changes.
#[derive(Debug)]
pub(super) struct KeptDeliveries {
    epoch: Uuid,
    /// The number of deliveries that arrived in this epoch. Each delivery is numbered by this count.
    count: u64,
    newest_first: VecDeque<(u64, Arc<ReceivedDelivery>)>,
}

/// How far a follower has read: the *epoch*, which ends with the process or when the inbox is emptied, and the number
/// of a delivery in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    epoch: Uuid,
    number: u64,
}

/// What a follower learns next.
#[derive(Clone, Debug)]
pub(super) enum Update {
    /// What the follower knows has been forgotten. Everything that is kept follows.
    Emptied,
    Arrived(Arc<ReceivedDelivery>),
}

impl Store {
    /// Adds a delivery, counts how often its id has arrived, and forgets the oldest delivery beyond [`MAX_DELIVERIES`].
    pub(super) fn add(&self, mut delivery: ReceivedDelivery) {
        self.0.send_modify(|kept| {
            let id = delivery.id.as_ref();
            let mut same = kept.newest_first.iter().filter(|(_, one)| id.is_some() && one.id.as_ref() == id);
            delivery.seen = same.next().map_or(1, |(_, latest)| latest.seen + 1);
            kept.count += 1;
            kept.newest_first.push_front((kept.count, Arc::new(delivery)));
            kept.newest_first.truncate(MAX_DELIVERIES);
        });
    }

    /// Forgets all deliveries.
    pub(super) fn clear(&self) {
        self.0.send_replace(KeptDeliveries::default());
    }

    /// Returns the kept deliveries.
    pub(super) fn newest_first(&self) -> Vec<Arc<ReceivedDelivery>> {
        self.0.borrow().newest_first.iter().map(|(_, delivery)| Arc::clone(delivery)).collect()
    }

    /// Returns a follower's view of what is kept.
    pub(super) fn follow(&self) -> watch::Receiver<KeptDeliveries> {
        self.0.subscribe()
    }
}

impl KeptDeliveries {
    /// Returns what comes next after a cursor, and the cursor that follows it.
    pub(super) fn after(&self, cursor: Option<Cursor>) -> Option<(Cursor, Update)> {
        let at = |number| Cursor { epoch: self.epoch, number };
        let Some(cursor) = cursor.filter(|cursor| cursor.epoch == self.epoch) else {
            return Some((at(0), Update::Emptied));
        };
        let (number, delivery) = self.newest_first.iter().rfind(|(number, _)| *number > cursor.number)?;
        Some((at(*number), Update::Arrived(Arc::clone(delivery))))
    }
}

impl Default for KeptDeliveries {
    fn default() -> Self {
        Self { epoch: Uuid::new_v4(), count: 0, newest_first: VecDeque::new() }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch.hyphenated(), self.number)
    }
}

impl FromStr for Cursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (epoch, number) = text.split_once('.').ok_or(())?;
        Ok(Self { epoch: epoch.parse().map_err(drop)?, number: number.parse().map_err(drop)? })
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
