//! Fills streams. Large markets are written as a base alone, because the embedded tables take too long to fill. A base
//! is enough for starts and questions. Its parts are each in the order of a base, but not all of them together.

use std::ops::Range;

use base::{Columnar, object_hash, pack_part};
use feed::{Applier, ApplyOutcome, Message, Stores};
use local::environment::{ACCOUNT_ID, REGION};
use market::{Log, Manifest, Market, ObjectRef};
use objects::Objects;
use platform::aws::{Environment, Patience};
use platform::resources::{Resources, Table};
use types::timestamp::Timestamp;
use uuid::Uuid;

use crate::market::GeneratedMarket;
use crate::output::text;
use crate::read_model::cold::ReplicaStream;

/// The number of records that are packed together, which is the most that a part may have.
const PART_RECORDS: usize = 131_072;

/// Where a stream is stored.
pub(super) struct StreamStore<R> {
    pub(super) log: Log<R>,
    pub(super) objects: Objects,
}

impl<R: Columnar> StreamStore<R> {
    /// Opens a stream of the default stack.
    pub(super) fn open(environment: &Environment) -> Self {
        let resources = Resources::new(Resources::DEFAULT_STACK);
        let market = Market::new(environment.dynamodb(Patience::Bulk), resources.table(Table::Market));
        let bucket = resources.base_bucket(ACCOUNT_ID, REGION);
        let objects = Objects::new(objects::client(environment, Patience::Bulk), bucket, Patience::Bulk);
        Self { log: Log::new(market), objects }
    }

    /// Writes a base of these records.
    async fn write_base(&self, mut records: impl Iterator<Item = R>, now: Timestamp) -> Result<(), String> {
        let standing = self.log.standing().await.map_err(text)?;
        let (generation, mut parts, mut count) = (Uuid::new_v4(), Vec::new(), 0);
        loop {
            let mut group: Vec<R> = records.by_ref().take(PART_RECORDS).collect();
            if group.is_empty() {
                break;
            }
            count += group.len() as u64;
            group.sort_unstable_by(R::base_order);
            for packed in pack_part(&group).map_err(text)? {
                let key = format!("{}/{generation}/{}", R::STREAM, parts.len());
                let hash = object_hash(&packed);
                self.objects.put(&key, packed.into()).await.map_err(text)?;
                parts.push(ObjectRef { key, hash });
            }
        }
        let manifest = Manifest {
            generation,
            base: standing.head,
            end: standing.head,
            records: count,
            written_at: now,
            scanned_at: now,
            parts,
            deltas: Vec::new(),
        };
        let is_put = self.log.put_manifest(&manifest, &standing).await.map_err(text)?;
        if is_put { Ok(()) } else { Err("somebody else has written a base".to_owned()) }
    }
}

/// Writes the base of a stream with all of a market's records.
pub(super) async fn write_base(
    environment: &Environment,
    market: &GeneratedMarket,
    stream: ReplicaStream,
) -> Result<(), String> {
    let (numbers, now) = (0..market.size(), market.now());
    match stream {
        ReplicaStream::Listings => {
            let listings = numbers.filter_map(|number| market.listing(number));
            StreamStore::open(environment).write_base(listings, now).await
        }
        ReplicaStream::Catalog => {
            let items = numbers.filter_map(|number| Some(market.item(number)?.item));
            StreamStore::open(environment).write_base(items, now).await
        }
    }
}

/// Applies the listings with these numbers.
pub(super) async fn apply_listings(
    stores: Stores,
    market: &GeneratedMarket,
    numbers: Range<u64>,
    now: Timestamp,
) -> Result<(), String> {
    let messages = numbers.filter_map(|number| Some(Message::Listing(market.listing(number)?, 1))).collect();
    apply(&mut Applier::new(stores), messages, now).await
}

/// Applies messages. Each of them must change something.
pub(super) async fn apply(applier: &mut Applier, messages: Vec<Message>, now: Timestamp) -> Result<(), String> {
    let messages = messages.into_iter().map(|message| ((), message)).collect();
    for ((), outcome) in applier.apply(messages, now).await {
        match outcome {
            Ok(ApplyOutcome::Changed) => {}
            other => return Err(format!("a message was not applied: {other:?}")),
        }
    }
    Ok(())
}
