//! Keeps the latest deliveries and lets readers follow them.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::watch;

use super::delivery::ReceivedDelivery;

/// The most deliveries that are kept.
const MAX_DELIVERIES: usize = 200;

/// The kept deliveries. Followers wake at each change.
#[derive(Debug, Default)]
pub(super) struct Store(watch::Sender<KeptDeliveries>);

/// The state between two changes. Each delivery has a number, one more than the one before it.
#[derive(Debug, Default)]
pub(super) struct KeptDeliveries {
    emptied_times: u64,
    latest: u64,
    newest_first: VecDeque<(u64, Arc<ReceivedDelivery>)>,
}

/// How far a follower has read: how often the inbox was emptied before, and the number of a delivery. `None` is before
/// the beginning.
pub(super) type Cursor = Option<(u64, u64)>;

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
            kept.latest += 1;
            kept.newest_first.push_front((kept.latest, Arc::new(delivery)));
            kept.newest_first.truncate(MAX_DELIVERIES);
        });
    }

    /// Forgets all deliveries.
    pub(super) fn clear(&self) {
        self.0.send_modify(|kept| {
            kept.newest_first.clear();
            kept.emptied_times += 1;
        });
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
    pub(super) fn after(&self, cursor: Cursor) -> Option<(Cursor, Update)> {
        let at = |number| Some((self.emptied_times, number));
        let Some((_, read)) = cursor.filter(|(emptied_times, _)| *emptied_times == self.emptied_times) else {
            return Some((at(0), Update::Emptied));
        };
        let (number, delivery) = self.newest_first.iter().rfind(|(number, _)| *number > read)?;
        Some((at(*number), Update::Arrived(Arc::clone(delivery))))
    }
}
