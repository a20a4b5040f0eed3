//! Applies messages. After a crash at any point, every step may be repeated, because versions decide what changes.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::Client;
use futures_util::StreamExt;
use futures_util::stream;

use super::message::Message;
use super::rejection::Rejection;
use accounts::{Accounts, OrderOutcome};
use market::{CatalogWrite, Log, Market, Record, Write};
use platform::resources::{Resources, Table};
use platform::store::StoreError;
use types::ids::UserId;
use types::records::{PublicItem, PublicListing};
use types::timestamp::Timestamp;

/// How many messages outside the streams are applied at the same time.
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

/// Applies messages in bulk. Between batches it remembers the heads of the streams.
pub struct Applier {
    stores: Stores,
    catalog: Log<PublicItem>,
    listings: Log<PublicListing>,
    catalog_head: Option<u64>,
    listings_head: Option<u64>,
}

impl Applier {
    pub fn new(stores: Stores) -> Self {
        let (catalog, listings) = (Log::new(stores.market.clone()), Log::new(stores.market.clone()));
        Self { stores, catalog, listings, catalog_head: None, listings_head: None }
    }

    /// Reads the heads of the streams before the first messages arrive.
    pub async fn warm_up(&mut self) -> Result<(), StoreError> {
        let (catalog, listings) = tokio::try_join!(self.catalog.head(), self.listings.head())?;
        (self.catalog_head, self.listings_head) = (Some(catalog), Some(listings));
        Ok(())
    }

    /// Applies messages. Each comes with a tag, which is returned with its outcome. Outcomes come in no particular
    /// order.
    ///
    /// Messages about one entity may come in any order: the newest version wins. An error concerns only its own
    /// message, which may be handed in again.
    pub async fn apply<T: Copy + Send>(
        &mut self,
        messages: Vec<(T, Message)>,
        now: Timestamp,
    ) -> Vec<TaggedOutcome<T>> {
        let (mut items, mut listings, mut others) = (Vec::new(), Vec::new(), Vec::new());
        // New orders of one user all change the same summary, so they are applied in turn instead of racing each other.
        let mut orders = BTreeMap::<UserId, Vec<(T, Message)>>::new();
        for (tag, message) in messages {
            match message {
                Message::Item(item, version) => items.push((tag, CatalogWrite::item(&item, version))),
                Message::ItemRemoved(id, version) => items.push((tag, Ok(Write::removal(id, version)))),
                Message::Listing(listing, version) => listings.push((tag, Write::listing(listing, version))),
                Message::ListingEnded(id, version) => listings.push((tag, Ok(Write::removal(id, version)))),
                Message::Order(user, ..) => orders.entry(user).or_default().push((tag, message)),
                other => others.push(vec![(tag, other)]),
            }
        }
        others.extend(orders.into_values());
        let stores = &self.stores;
        let singles = stream::iter(others)
            .map(|messages| stores.apply_in_turn(messages))
            .buffer_unordered(CONCURRENCY)
            .collect::<Vec<_>>();
        let (singles, changed, listed) = tokio::join!(
            singles,
            commit(&self.catalog, items, &mut self.catalog_head, now),
            commit(&self.listings, listings, &mut self.listings_head, now),
        );
        singles.into_iter().flatten().chain(changed).chain(listed).collect()
    }
}

/// Commits writes in as few transactions as possible. If the store takes a transaction for invalid, its halves are tried
/// by themselves, so that in the end only the invalid writes fail.
async fn commit<T: Copy, R: Record>(
    log: &Log<R>,
    tagged: Vec<(T, Result<Write<R>, StoreError>)>,
    head: &mut Option<u64>,
    now: Timestamp,
) -> Vec<TaggedOutcome<T>> {
    let (mut tags, mut writes, mut outcomes) = (Vec::new(), Vec::new(), Vec::new());
    for (tag, write) in tagged {
        match write {
            Ok(write) => {
                tags.push(tag);
                writes.push(write);
            }
            Err(error) => outcomes.push((tag, Err(error))),
        }
    }
    let mut tags = tags.into_iter();
    let mut batches: Vec<_> = Log::batches(writes).into_iter().rev().collect();
    while let Some(mut batch) = batches.pop() {
        let committed = log.commit(&batch, head, now).await;
        let batch_tags = tags.by_ref().take(batch.len());
        match committed {
            Ok(changed) => {
                let applied = changed.into_iter().map(|changed| Ok(ApplyOutcome::from_changed(changed)));
                outcomes.extend(batch_tags.zip(applied));
            }
            Err(StoreError::InvalidRequest(_)) if batch.len() > 1 => {
                let upper = batch.split_off(batch.len() / 2);
                batches.extend([upper, batch]);
            }
            Err(error) => outcomes.extend(batch_tags.map(|tag| (tag, Err(error.clone())))),
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

    async fn apply_in_turn<T>(&self, messages: Vec<(T, Message)>) -> Vec<TaggedOutcome<T>> {
        let mut outcomes = Vec::with_capacity(messages.len());
        for (tag, message) in messages {
            outcomes.push((tag, self.apply(message).await));
        }
        outcomes
    }

    /// Applies a message that belongs to no stream.
    async fn apply(&self, message: Message) -> Result<ApplyOutcome, StoreError> {
        match message {
            Message::Marketplace(marketplace, version) => {
                self.market.put_marketplace(&marketplace, version).await.map(ApplyOutcome::from_changed)
            }
            Message::Quote(variant, quote) => {
                self.market.put_quote(variant, &quote).await.map(ApplyOutcome::from_changed)
            }
            Message::Balance(user, balance, version) => {
                self.accounts.put_balance(user, balance, version).await.map(ApplyOutcome::from_changed)
            }
            Message::Order(user, order, version) => {
                let outcome = self.accounts.put_order(user, &order, version).await?;
                Ok(match outcome {
                    OrderOutcome::Applied => ApplyOutcome::Changed,
                    OrderOutcome::Unchanged => ApplyOutcome::Unchanged,
                    OrderOutcome::OtherAccount => rejected("account_id", "the order belongs to another account"),
                    OrderOutcome::OtherCreation => rejected("created_at", "the order was created at another time"),
                })
            }
            Message::Event(_) => Ok(rejected("type", "events go through the feed queue: use `marketctl feed send`")),
            Message::Item(..) | Message::ItemRemoved(..) | Message::Listing(..) | Message::ListingEnded(..) => {
                Err(StoreError::Defect("a message of a stream was applied outside its stream".to_owned()))
            }
        }
    }
}

fn rejected(field: &str, reason: &str) -> ApplyOutcome {
    ApplyOutcome::Rejected(Rejection::new(field, reason))
}
