//! The form in which the market table stores listings. It is private to the table's crate. So it is learnt from rows of
//! listings that came through the feed, and other rows are made after them.

use std::collections::BTreeSet;
use std::ops::Range;

use dynoxide::{AttributeValue, Item};
use market::ENTITY_PARTITIONS;
use platform::resources::{PARTITION_KEY, SORT_KEY};
use types::records::PublicListing;

use crate::output::text;

/// A listing that came through the feed.
pub(super) struct Sample {
    pub(super) listing: PublicListing,
    /// Whether it was not removed again.
    pub(super) is_live: bool,
}

/// The texts of a row that belong to its listing alone.
#[derive(Clone)]
pub(super) struct EntityTexts {
    pub(super) partition: String,
    pub(super) id: String,
    /// Empty for a removed listing.
    pub(super) data: String,
}

/// The rows of live and removed listings.
pub(super) struct EntityFormat {
    live: StoredRow,
    removed: StoredRow,
    /// The partition keys in their order in the table.
    partitions: Vec<String>,
}

/// A row as it was stored.
#[derive(Clone)]
struct StoredRow {
    row: Item,
    texts: EntityTexts,
    is_live: bool,
}

impl EntityFormat {
    /// Learns from the rows of these listings. Each of them must be as this would make it.
    pub(super) fn learn(rows: &[Item], samples: &[Sample]) -> Result<Self, String> {
        let stored = samples.iter().map(|sample| StoredRow::find(rows, sample)).collect::<Result<Vec<_>, String>>()?;
        let first = |is_live: bool| {
            let first = stored.iter().find(|stored| stored.is_live == is_live).cloned();
            first.ok_or_else(|| "live and removed listings are needed to learn from".to_owned())
        };
        let partitions: BTreeSet<String> = stored.iter().map(|stored| stored.texts.partition.clone()).collect();
        let format = Self { live: first(true)?, removed: first(false)?, partitions: partitions.into_iter().collect() };
        let differs = |stored: &&StoredRow| format.row(&stored.texts, stored.is_live) != stored.row;
        if let Some(other) = stored.iter().find(differs) {
            return Err(format!("the row of listing {} has more of its own than can be made", other.texts.id));
        }
        Ok(format)
    }

    /// Makes the row of a listing.
    pub(super) fn row(&self, texts: &EntityTexts, is_live: bool) -> Item {
        if is_live { self.live.with(texts) } else { self.removed.with(texts) }
    }

    /// Returns rows of both kinds, first a live one.
    pub(super) fn examples(&self) -> [&Item; 2] {
        [&self.live.row, &self.removed.row]
    }

    /// Divides the numbers of rows evenly among the partitions. There must be as many partitions as the table has.
    pub(super) fn shares(&self, rows: u64) -> Result<Vec<(&str, Range<u64>)>, String> {
        let count = self.partitions.len() as u64;
        if count != u64::from(ENTITY_PARTITIONS) {
            return Err(format!("the entities are in {ENTITY_PARTITIONS} partitions, but {count} were learnt"));
        }
        let begin = |number: u64| rows * number / count;
        let shares = self.partitions.iter().zip(0..);
        Ok(shares.map(|(partition, number)| (partition.as_str(), begin(number)..begin(number + 1))).collect())
    }
}

impl StoredRow {
    /// Finds the row of a listing.
    fn find(rows: &[Item], sample: &Sample) -> Result<Self, String> {
        let id = sample.listing.id.to_string();
        let row = rows.iter().find(|row| text_of(row, SORT_KEY) == Some(&id));
        let row = row.ok_or_else(|| format!("listing {id} has no row of its own"))?;
        let partition = text_of(row, PARTITION_KEY).cloned().unwrap_or_default();
        let data = if sample.is_live { data(&sample.listing)? } else { String::new() };
        Ok(Self { row: row.clone(), texts: EntityTexts { partition, id, data }, is_live: sample.is_live })
    }

    /// Returns the row with texts of another listing.
    fn with(&self, texts: &EntityTexts) -> Item {
        let own = [&self.texts.partition, &self.texts.id, &self.texts.data];
        let other = [&texts.partition, &texts.id, &texts.data];
        let value = |stored: &AttributeValue| {
            let AttributeValue::S(stored_text) = stored else { return stored.clone() };
            let place = own.iter().position(|own| *own == stored_text);
            AttributeValue::S(place.map_or(stored_text, |place| other[place]).clone())
        };
        self.row.iter().map(|(name, stored)| (name.clone(), value(stored))).collect()
    }
}

/// Returns what a row holds of a listing.
pub(super) fn data(listing: &PublicListing) -> Result<String, String> {
    serde_json::to_string(listing).map_err(text)
}

fn text_of<'r>(row: &'r Item, name: &str) -> Option<&'r String> {
    match row.get(name) {
        Some(AttributeValue::S(text)) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use types::timestamp::Timestamp;

    use super::*;
    use crate::market::GeneratedMarket;

    fn samples(count: u64) -> Vec<Sample> {
        let market = GeneratedMarket::new(100, Timestamp::from_millis(1_795_176_000_000));
        let sample =
            |number: u64| Sample { listing: market.listing(number).unwrap(), is_live: number.is_multiple_of(2) };
        (0..count).map(sample).collect()
    }

    /// Stores samples in this number of partitions.
    fn stored(samples: &[Sample], partitions: usize) -> Vec<Item> {
        let stored = |(number, sample): (usize, &Sample)| {
            let text = |text: &str| AttributeValue::S(text.to_owned());
            let mut row = Item::from([
                (PARTITION_KEY.to_owned(), text(&format!("listings {:02}", number % partitions))),
                (SORT_KEY.to_owned(), text(&sample.listing.id.to_string())),
                ("version".to_owned(), AttributeValue::N("1".to_owned())),
            ]);
            if sample.is_live {
                row.insert("data".to_owned(), text(&data(&sample.listing).unwrap()));
            }
            row
        };
        samples.iter().enumerate().map(stored).collect()
    }

    #[test]
    fn rows_are_made_as_they_were_stored() {
        let samples = samples(40);
        let (learnt, all) = (stored(&samples[..2], 1), stored(&samples, 40));
        let format = EntityFormat::learn(&learnt, &samples[..2]).unwrap();
        for (sample, row) in samples.iter().zip(&all) {
            let StoredRow { texts, is_live, .. } = StoredRow::find(&all, sample).unwrap();
            assert_eq!(format.row(&texts, is_live), *row);
        }
    }

    #[test]
    fn a_row_with_more_of_its_own_is_not_learnt() {
        let samples = samples(4);
        let mut rows = stored(&samples, 1);
        rows[2].insert("version".to_owned(), AttributeValue::N("2".to_owned()));
        let id = samples[2].listing.id.to_string();
        assert!(EntityFormat::learn(&rows, &samples).is_err_and(|error| error.contains(&id)));
    }

    #[test]
    fn every_partition_has_its_share() {
        let samples = samples(64);
        let format = EntityFormat::learn(&stored(&samples, 16), &samples).unwrap();
        let shares = format.shares(1_000).unwrap();
        assert_eq!((shares.len(), shares[0].0, shares[15].1.end), (16, "listings 00", 1_000));
        assert!(shares.windows(2).all(|pair| pair[0].1.end == pair[1].1.start));
        assert!(shares.iter().all(|(_, share)| (62..=63).contains(&(share.end - share.start))));
        let few = EntityFormat::learn(&stored(&samples, 15), &samples).unwrap();
        assert!(few.shares(1_000).is_err());
    }
}
