//! Applies messages. After a crash at any point, every step may be repeated, because versions decide what changes. Of
//! several messages about one entity, only the newest is written.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use aws_sdk_dynamodb::Client;
use futures_util::{StreamExt, stream};

use super::message::Message;
use super::rejection::Rejection;
use accounts::{Accounts, OrderOutcome};
use common::clock::Clock;
use common::ids::UserId;
use common::records::{PublicItem, PublicListing, PublicOrder};
use common::resources::{Resources, Table};
use common::store::StoreError;
use market::{CatalogWrite, Log, Market, Record, Write, Writer};

/// How many users' orders are applied at the same time, and how many other messages outside the streams.
const CONCURRENCY: usize = 32;

/// The tables that messages are applied to.
#[derive(Clone)]
pub struct Stores {
    /// Public data.
    pub market: Market,
    /// Orders and balances.
    pub accounts: Accounts,
}

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyOutcome {
    /// Something changed.
    Changed,
    /// The stored data is as new as the message, or newer.
    Unchanged,
    /// The message contradicts the stored data.
    Rejected(Rejection),
}

impl ApplyOutcome {
    /// Returns the outcome of a message that changed something, or nothing.
    pub const fn from_changed(changed: bool) -> Self {
        if changed { Self::Changed } else { Self::Unchanged }
    }
}

/// The tag that a message was handed in with, such as a line number, and what became of the message.
pub type TaggedOutcome<T> = (T, Result<ApplyOutcome, StoreError>);

/// Applies messages in bulk. Between batches it remembers the heads of the streams, and when its turn to write is.
pub struct Applier {
    stores: Stores,
    catalog: Log<PublicItem>,
    listings: Log<PublicListing>,
    catalog_writer: Writer,
    listings_writer: Writer,
}

impl Applier {
    pub fn new(stores: Stores) -> Self {
        let (catalog, listings) = (Log::new(stores.market.clone()), Log::new(stores.market.clone()));
        Self { stores, catalog, listings, catalog_writer: Writer::default(), listings_writer: Writer::default() }
    }

    /// Reads the heads of the streams before the first messages arrive.
    pub async fn warm_up(&mut self) -> Result<(), StoreError> {
        let (catalog, listings) = tokio::try_join!(self.catalog.head(), self.listings.head())?;
        (self.catalog_writer, self.listings_writer) = (Writer::with_head(catalog), Writer::with_head(listings));
        Ok(())
    }

    /// Applies messages. Each comes with a tag, which is returned with its outcome. Outcomes come in no particular
    /// order.
    ///
    /// Messages about one entity may come in any order: the newest version wins. Of several messages about an item or a
    /// listing, only the newest is written, and an error of it is an error of the others too. Any other error concerns
    /// only its own message. A message with an error may be handed in again.
    pub async fn apply<T: Copy + Send>(
        &mut self,
        messages: Vec<(T, Message)>,
        clock: &dyn Clock,
    ) -> Vec<TaggedOutcome<T>> {
        let (mut items, mut listings, mut others) = (Vec::new(), Vec::new(), Vec::new());
        // New orders of one user all change the same summary, so they are applied together instead of racing each other.
        let mut orders = BTreeMap::<UserId, (Vec<T>, Vec<(PublicOrder, u64)>)>::new();
        for (tag, message) in messages {
            match message {
                Message::Item(item, version) => items.push((tag, CatalogWrite::item(&item, version))),
                Message::ItemRemoved(id, version) => items.push((tag, Ok(Write::removal(id, version)))),
                Message::Listing(listing, version) => listings.push((tag, Write::listing(listing, version))),
                Message::ListingEnded(id, version) => listings.push((tag, Ok(Write::removal(id, version)))),
                Message::Order(user, order, version) => {
                    let (tags, orders) = orders.entry(user).or_default();
                    tags.push(tag);
                    orders.push((order, version));
                }
                other => others.push((tag, other)),
            }
        }
        let stores = &self.stores;
        let others = stream::iter(others)
            .map(|(tag, message)| stores.apply(tag, message))
            .buffer_unordered(CONCURRENCY)
            .collect::<Vec<_>>();
        let orders = stream::iter(orders)
            .map(|(user, (tags, orders))| stores.apply_orders(user, tags, orders))
            .buffer_unordered(CONCURRENCY)
            .collect::<Vec<_>>();
        let (others, orders, changed, listed) = tokio::join!(
            others,
            orders,
            Box::pin(commit(&self.catalog, items, &mut self.catalog_writer, clock)),
            Box::pin(commit(&self.listings, listings, &mut self.listings_writer, clock)),
        );
        others.into_iter().chain(orders.into_iter().flatten()).chain(changed).chain(listed).collect()
    }
}

/// Commits writes in as few transactions as possible. If the store takes a transaction for invalid, or it cannot be put
/// together, its halves are tried by themselves, so that in the end only the invalid writes fail.
async fn commit<T: Copy, R: Record>(
    log: &Log<R>,
    tagged: Vec<(T, Result<Write<R>, StoreError>)>,
    writer: &mut Writer,
    clock: &dyn Clock,
) -> Vec<TaggedOutcome<T>> {
    let (mut ready, mut outcomes) = (Vec::new(), Vec::new());
    for (tag, write) in tagged {
        match write {
            Ok(write) => ready.push((tag, write)),
            Err(error) => outcomes.push((tag, Err(error))),
        }
    }
    let (pending, tags): (Vec<_>, Vec<_>) =
        newest(ready).into_iter().map(|one| (one.write, (one.tag, one.superseded))).unzip();
    let mut tags = tags.into_iter();
    let mut batches: Vec<_> = Log::batches(pending).into_iter().rev().collect();
    while let Some(mut batch) = batches.pop() {
        let committed: Vec<_> = match log.commit(&batch, writer, clock).await {
            Ok(changed) => changed.into_iter().map(|changed| Ok(ApplyOutcome::from_changed(changed))).collect(),
            Err(StoreError::InvalidRequest(_) | StoreError::Defect(_)) if batch.len() > 1 => {
                let upper = batch.split_off(batch.len() / 2);
                batches.extend([upper, batch]);
                continue;
            }
            Err(error) => vec![Err(error); batch.len()],
        };
        for ((tag, superseded), outcome) in tags.by_ref().take(batch.len()).zip(committed) {
            // The newest is stored now, so the others are not newer than what is stored.
            let of_others = outcome.clone().map(|_| ApplyOutcome::Unchanged);
            outcomes.extend(superseded.into_iter().map(|tag| (tag, of_others.clone())));
            outcomes.push((tag, outcome));
        }
    }
    outcomes
}

impl Stores {
    /// Returns the tables of a stack.
    pub fn new(client: &Client, resources: &Resources) -> Self {
        Self {
            market: Market::new(client.clone(), resources.table(Table::Market)),
            accounts: Accounts::new(client.clone(), resources.table(Table::Accounts)),
        }
    }

    /// Applies a user's orders. Each has its version.
    async fn apply_orders<T>(
        &self,
        user: UserId,
        tags: Vec<T>,
        orders: Vec<(PublicOrder, u64)>,
    ) -> Vec<TaggedOutcome<T>> {
        let outcomes = self.accounts.put_orders(user, &orders).await;
        tags.into_iter().zip(outcomes.into_iter().map(|outcome| outcome.map(ApplyOutcome::from))).collect()
    }

    /// Applies a message that belongs to no stream and is about no order.
    async fn apply<T>(&self, tag: T, message: Message) -> TaggedOutcome<T> {
        let changed = match message {
            Message::Marketplace(marketplace, version) => self.market.put_marketplace(&marketplace, version).await,
            Message::Quote(variant, quote) => self.market.put_quote(variant, &quote).await,
            Message::Balance(user, balance, version) => self.accounts.put_balance(user, balance, version).await,
            Message::Event(_) => {
                return (tag, Ok(rejected("type", "events go through the feed queue: use `marketctl feed send`")));
            }
            Message::Item(..)
            | Message::ItemRemoved(..)
            | Message::Listing(..)
            | Message::ListingEnded(..)
            | Message::Order(..) => {
                Err(StoreError::Defect("a message was applied outside its stream or its user's orders".to_owned()))
            }
        };
        (tag, changed.map(ApplyOutcome::from_changed))
    }
}

impl From<OrderOutcome> for ApplyOutcome {
    fn from(outcome: OrderOutcome) -> Self {
        match outcome {
            OrderOutcome::Applied => Self::Changed,
            OrderOutcome::Unchanged => Self::Unchanged,
            OrderOutcome::OtherAccount => rejected("account_id", "the order belongs to another account"),
            OrderOutcome::OtherCreation => rejected("created_at", "the order was created at another time"),
        }
    }
}

fn rejected(field: &str, reason: &str) -> ApplyOutcome {
    ApplyOutcome::Rejected(Rejection::new(field, reason))
}

/// The newest write of an entity, with the tag of its message and those of the messages that are not newer.
#[derive(Debug)]
struct NewestWrite<T, R: Record> {
    write: Write<R>,
    tag: T,
    /// The tags of the other messages about the entity.
    superseded: Vec<T>,
}

/// Returns the newest write of each entity, in the order in which the entities came first. Of two writes with the same
/// version, the first one counts, as it does if they come one after the other.
fn newest<T, R: Record>(writes: impl IntoIterator<Item = (T, Write<R>)>) -> Vec<NewestWrite<T, R>> {
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
    use uuid::Uuid;

    use super::*;
    use common::records::PublicListing;

    #[test]
    fn the_newest_write_of_each_entity_stands_for_the_others_and_the_first_of_equals() {
        let removal = |id, version| Write::<PublicListing>::removal(Uuid::from_u128(id).into(), version);
        let messages = [('a', 1, 2), ('b', 2, 7), ('c', 1, 3), ('d', 1, 1), ('e', 1, 3)];
        let found = newest(messages.map(|(tag, id, version)| (tag, removal(id, version))));
        let found: Vec<_> = found.into_iter().map(|one| (one.write.version, one.tag, one.superseded)).collect();
        assert_eq!(found, [(3, 'c', vec!['a', 'd', 'e']), (7, 'b', vec![])]);
    }
}
