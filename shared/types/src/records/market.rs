//! Items, marketplaces and prices.

use serde::{Deserialize, Serialize};

use crate::ids::{ItemId, ItemKind, Label, Link, MarketplaceKey, MarketplaceKind, VariantId};
use crate::money::Usd;

/// An item of the catalog.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PublicItem {
    /// The item's id: 1 to 128 letters, digits, `.`, `_`, `~` or `-`.
    #[cfg_attr(feature = "schema", schema(value_type = String, max_length = 128, examples("ak-47-redline")))]
    pub id: ItemId,
    /// The item's kind. Known values include `skin`, `sticker`, `case` and `agent`; the list is open-ended.
    #[cfg_attr(feature = "schema", schema(value_type = String, pattern = "^[a-z0-9_]{1,32}$", examples("skin")))]
    pub kind: ItemKind,
    /// The item's name, or null if it is unknown.
    #[cfg_attr(feature = "schema", schema(required, value_type = Option<String>, examples("AK-47 | Redline")))]
    pub name: Option<Label>,
    /// The item's name in a form for URLs, or null if it is unknown.
    #[cfg_attr(feature = "schema", schema(required, value_type = Option<String>, examples("ak-47-redline")))]
    pub slug: Option<Label>,
    /// The `http` or `https` URL of a picture, or null if it is unknown.
    #[cfg_attr(feature = "schema", schema(required, value_type = Option<String>, format = "uri", examples("https://img.example.com/ak-47-redline.png")))]
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
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PublicItemDetail {
    /// The item, as in the catalog.
    #[serde(flatten)]
    pub item: PublicItem,
    /// The item's variants, at most 500.
    #[cfg_attr(feature = "schema", schema(max_items = 500))]
    pub variants: Vec<PublicVariant>,
}

/// A variant of an item: the item combined with a wear and a StatTrak flag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PublicVariant {
    /// The variant's id.
    #[cfg_attr(feature = "schema", schema(value_type = uuid::Uuid, examples("4f2c1f4e-6a57-5c0e-9d3a-0f6f0a3c7a11")))]
    pub variant_id: VariantId,
    /// The variant's wear, or null for items that do not wear.
    #[cfg_attr(feature = "schema", schema(required, value_type = Option<String>, examples("Field-Tested")))]
    pub wear: Option<Label>,
    /// Whether the variant is StatTrak: it counts kills.
    #[cfg_attr(feature = "schema", schema(examples(false)))]
    pub stattrak: bool,
    /// The name that external marketplaces use, or null if it is unknown.
    #[cfg_attr(feature = "schema", schema(required, value_type = Option<String>, examples("AK-47 | Redline (Field-Tested)")))]
    pub market_hash_name: Option<Label>,
}

/// A marketplace that prices can come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PublicMarketplace {
    /// The marketplace's key, as in the `source_keys` of prices.
    #[cfg_attr(feature = "schema", schema(value_type = String, examples("skinport")))]
    pub key: MarketplaceKey,
    /// The marketplace's name, for people to read.
    #[cfg_attr(feature = "schema", schema(value_type = String, examples("Skinport")))]
    pub name: Label,
    /// The marketplace's `http` or `https` URL.
    #[cfg_attr(feature = "schema", schema(value_type = String, format = "uri", examples("https://skinport.example.com")))]
    pub link: Link,
    /// How the marketplace sells. The list is open-ended.
    #[cfg_attr(feature = "schema", schema(value_type = String, pattern = "^[a-z0-9_]{1,32}$", examples("p2p")))]
    pub kind: MarketplaceKind,
    /// Whether the marketplace's asks count in the prices.
    #[cfg_attr(feature = "schema", schema(examples(true)))]
    pub enabled: bool,
}

/// Figures over all asks of enabled marketplaces in the last 24 hours. If there are no asks, the response is a 404, so
/// only `recommended_list_usd` can be null.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct VariantPrices {
    /// The variant's id.
    #[cfg_attr(feature = "schema", schema(value_type = uuid::Uuid, examples("4f2c1f4e-6a57-5c0e-9d3a-0f6f0a3c7a11")))]
    pub variant_id: VariantId,
    /// The number of asks that the figures come from.
    #[cfg_attr(feature = "schema", schema(minimum = 1, examples(42)))]
    pub sample_size: i32,
    /// The keys of the marketplaces that the figures come from, sorted.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<String>, examples("buff", "skinport")))]
    pub source_keys: Vec<MarketplaceKey>,
    /// The lowest ask in US dollars.
    #[cfg_attr(feature = "schema", schema(required, value_type = Option<String>, pattern = "^[0-9]{1,12}\\.[0-9]{2}$", examples("11.90")))]
    pub lowest_usd: Option<Usd>,
    /// The mean ask in US dollars, rounded half to even to whole cents.
    #[cfg_attr(feature = "schema", schema(required, value_type = Option<String>, pattern = "^[0-9]{1,12}\\.[0-9]{2}$", examples("12.46")))]
    pub mean_usd: Option<Usd>,
    /// The median ask in US dollars, rounded half to even to whole cents.
    #[cfg_attr(feature = "schema", schema(required, value_type = Option<String>, pattern = "^[0-9]{1,12}\\.[0-9]{2}$", examples("12.40")))]
    pub median_usd: Option<Usd>,
    /// A suggested price in US dollars: one cent below the lowest ask that lies between half and twice the median, but
    /// at least 0.01. Null if there are fewer than three asks.
    #[cfg_attr(feature = "schema", schema(required, value_type = Option<String>, pattern = "^[0-9]{1,12}\\.[0-9]{2}$", examples("11.89")))]
    pub recommended_list_usd: Option<Usd>,
}
