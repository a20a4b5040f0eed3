//! Items, marketplaces and prices.

use serde::{Deserialize, Serialize};

use crate::ids::{ItemId, ItemKind, Label, Link, MarketplaceKey, MarketplaceKind, VariantId};
use crate::money::Usd;

/// An item of the catalog.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicItem {
    /// The item's id: 1 to 128 letters, digits, `.`, `_`, `~` or `-`.
    pub id: ItemId,
    /// The item's kind. Known values include `skin`, `sticker`, `case` and `agent`; the list is open-ended.
    pub kind: ItemKind,
    /// The item's name, or null if it is unknown.
    pub name: Option<Label>,
    /// The item's name in a form for URLs, or null if it is unknown.
    pub slug: Option<Label>,
    /// The `http` or `https` URL of a picture, or null if it is unknown.
    pub image: Option<Link>,
}

impl PublicItem {
    /// Returns the key that the catalog is ordered by: name, then id. Items without a name come last.
    pub fn catalog_key(&self) -> (bool, &str, &str) {
        let name = self.name.as_ref();
        (name.is_none(), name.map_or("", |name| name.as_str()), self.id.as_str())
    }
}

/// An item with its variants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicItemDetail {
    /// The item, as in the catalog.
    #[serde(flatten)]
    pub item: PublicItem,
    /// The item's variants, at most 500.
    pub variants: Vec<PublicVariant>,
}

/// A variant of an item: the item combined with a wear and a StatTrak flag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicVariant {
    /// The variant's id.
    pub variant_id: VariantId,
    /// The variant's wear, or null for items that do not wear.
    pub wear: Option<Label>,
    /// Whether the variant is StatTrak: it counts kills.
    pub stattrak: bool,
    /// The name that external marketplaces use, or null if it is unknown.
    pub market_hash_name: Option<Label>,
    /// The same figures as from `/v1/public/prices/{variant_id}`, or null if there are none. Present only if the
    /// request has `include=prices`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices: Option<IncludedPrices>,
}

/// The prices of a variant in a response that includes them, or `None` if no ask counts. What is stored never has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IncludedPrices(pub Option<VariantPrices>);

/// A marketplace that prices can come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicMarketplace {
    /// The marketplace's key, as in the `source_keys` of prices.
    pub key: MarketplaceKey,
    /// The marketplace's name, for people to read.
    pub name: Label,
    /// The marketplace's `http` or `https` URL.
    pub link: Link,
    /// How the marketplace sells. The list is open-ended.
    pub kind: MarketplaceKind,
    /// Whether the marketplace's asks count in the prices.
    pub enabled: bool,
}

/// Figures over all asks of enabled marketplaces in the last 24 hours. If there are no asks, the response is a 404, so
/// only `recommended_list_usd` can be null.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariantPrices {
    /// The variant's id.
    pub variant_id: VariantId,
    /// The number of asks that the figures come from.
    pub sample_size: i32,
    /// The keys of the marketplaces that the figures come from, sorted.
    pub source_keys: Vec<MarketplaceKey>,
    /// The lowest ask in US dollars.
    pub lowest_usd: Option<Usd>,
    /// The mean ask in US dollars, rounded half to even to whole cents.
    pub mean_usd: Option<Usd>,
    /// The median ask in US dollars, rounded half to even to whole cents.
    pub median_usd: Option<Usd>,
    /// A suggested price in US dollars: one cent below the lowest ask that lies between half and twice the median, but
    /// at least 0.01. Null if there are fewer than three asks.
    pub recommended_list_usd: Option<Usd>,
}
