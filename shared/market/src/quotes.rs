//! Quotes: one marketplace's current asks for a variant.

use super::{Market, table};
use common::ids::{MarketplaceKey, VariantId};
use common::money::Usd;
use common::rows::{Rows, Unreadable};
use common::store::{Attributes, Row, StoreError, b, n, put_newer};
use common::timestamp::Timestamp;

/// How long a quote is kept after it was observed: a week. It enters no figure after a day. If an even older quote is
/// delivered again once this one is gone, it enters no figure for the same reason.
const KEEP_SECONDS: i64 = 7 * 24 * 3_600;

/// One marketplace's current asks for a variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote {
    pub marketplace: MarketplaceKey,
    /// The prices asked. Empty if the variant is no longer on sale there.
    pub asks: Vec<Usd>,
    /// When the asks were observed.
    pub observed_at: Timestamp,
}

impl Market {
    /// Reads the latest quote of each marketplace for a variant.
    pub async fn quotes(&self, variant: VariantId) -> Result<Rows<Quote>, StoreError> {
        let rows = self.partition(table::quotes_partition(variant)).await?;
        Ok(rows.iter().map(|row| quote(row).map_err(|error| Unreadable::new(row, error))).collect())
    }

    /// Stores a quote, unless the stored one was observed at the same time or later. Returns whether anything changed.
    pub async fn put_quote(&self, variant: VariantId, quote: &Quote) -> Result<bool, StoreError> {
        // These bytes have no layout of their own. If the asks ever need another form, it gets an attribute of its own.
        let cents: Vec<u64> = quote.asks.iter().map(|ask| ask.cents()).collect();
        let packed = postcard::to_stdvec(&cents)?;
        let mut row = table::quote(variant, &quote.marketplace);
        row.insert(table::ASKS.to_owned(), b(packed));
        row.insert(table::TTL.to_owned(), n(quote.observed_at.seconds() + KEEP_SECONDS));
        put_newer(&self.client, &self.table, row, table::OBSERVED_AT, n(quote.observed_at.millis())).await
    }
}

fn quote(row: &Row) -> Result<Quote, StoreError> {
    table::QUOTE_FORMAT.of_row(row)?;
    let read = Attributes(row);
    let packed = read.bytes(table::ASKS).unwrap_or_default();
    let cents: Vec<u64> = postcard::from_bytes(packed).map_err(|_| StoreError::corrupt(table::ASKS))?;
    Ok(Quote {
        marketplace: read.parsed(table::SK)?,
        asks: cents.into_iter().map(Usd::from_cents).collect(),
        observed_at: Timestamp::from_millis(read.required_number(table::OBSERVED_AT)?),
    })
}
