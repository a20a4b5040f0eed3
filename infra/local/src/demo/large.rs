//! A market of any size, for benchmarks. Its names are those of the demo market with numbers behind them, and its
//! popular items have very many listings.
//!
//! Everything is a function of its number, so a benchmark can ask for what was stored without keeping a copy.

use common::ids::{Id8, ItemId, ItemKind, VariantId};
use common::money::Usd;
use common::records::{ListingKind, PublicItem, PublicItemDetail, PublicListing, PublicVariant};
use common::timestamp::Timestamp;
use uuid::Uuid;

use super::catalog::stock;
use super::random::Random;

const WEARS: [&str; 5] = ["Factory New", "Minimal Wear", "Field-Tested", "Well-Worn", "Battle-Scarred"];
/// The number of variants of each item that wears.
const VARIANTS_PER_ITEM: u64 = WEARS.len() as u64;
/// Listings were created within this many milliseconds before the market's time.
const MAX_LISTING_AGE_MILLIS: u64 = 30 * 24 * 3_600 * 1_000;
/// Listings are of the items with numbers below two to this power, and every octave of these numbers is equally likely:
/// one listing in fourteen is of the first item. All other items do not wear and have one variant each.
const LISTED_OCTAVES: u64 = 14;
/// Prices in cents lie between two to these powers, and every octave is equally likely: from 0.04 to 5,242.87 dollars.
const PRICE_OCTAVES: (u64, u64) = (2, 19);

/// A market at one point in time.
pub struct LargeMarket {
    /// Kind, name and slug of the items that all names are made from.
    designs: Vec<(ItemKind, String, String)>,
    size: u64,
    now: Timestamp,
}

impl LargeMarket {
    /// Creates a market with `size` items and `size` listings.
    pub fn new(size: u64, now: Timestamp) -> Self {
        let designs = stock().items.into_iter().filter_map(|PublicItemDetail { item, .. }| {
            Some((item.kind, item.name?.to_string(), item.slug?.to_string()))
        });
        Self { designs: designs.collect(), size, now }
    }

    /// Returns the number of items, which is also the number of listings.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the market's time.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Returns the id of the item with this number.
    pub fn item_id(&self, number: u64) -> Option<ItemId> {
        self.numbered(number)?.2.parse().ok()
    }

    /// Returns the item with this number.
    pub fn item(&self, number: u64) -> Option<PublicItemDetail> {
        let (kind, name, slug) = self.numbered(number)?;
        let item = PublicItem {
            id: slug.parse().ok()?,
            kind: kind.clone(),
            name: name.parse().ok(),
            slug: slug.parse().ok(),
            image: format!("https://img.example.com/items/large/{slug}.png").parse().ok(),
        };
        let variant = |wear: Option<&str>, variant, market_hash_name: String| {
            Some(PublicVariant {
                variant_id: variant_id(number, variant),
                wear: wear.and_then(|wear| wear.parse().ok()),
                stattrak: false,
                market_hash_name: Some(market_hash_name.parse().ok()?),
                prices: None,
            })
        };
        let variants = if number < 1 << LISTED_OCTAVES {
            let worn = |(wear, place): (&&str, _)| variant(Some(wear), place, format!("{name} ({wear})"));
            WEARS.iter().zip(0..).map(worn).collect::<Option<_>>()?
        } else {
            vec![variant(None, 0, name)?]
        };
        Some(PublicItemDetail { item, variants })
    }

    /// Returns the listing with this number.
    pub fn listing(&self, number: u64) -> Option<PublicListing> {
        let mut random = Random::from_seed(number);
        let item = (random.in_octaves(0, LISTED_OCTAVES) - 1) % self.size;
        let variant = random.below(VARIANTS_PER_ITEM);
        let (_, name, slug) = self.numbered(item)?;
        let id = uuid(&mut random);
        Some(PublicListing {
            id: id.into(),
            id8: Id8::from_bits(id.as_fields().0),
            price_usd: Usd::from_cents(random.in_octaves(PRICE_OCTAVES.0, PRICE_OCTAVES.1)),
            kind: if random.below(3) == 0 { ListingKind::Bot } else { ListingKind::P2p },
            is_auction: random.below(20) == 0,
            created_at: self.now.plus_millis(-random.below(MAX_LISTING_AGE_MILLIS).cast_signed()),
            item_id: slug.parse().ok(),
            variant_id: Some(variant_id(item, variant)),
            market_hash_name: format!("{name} ({})", WEARS.get(variant as usize)?).parse().ok(),
        })
    }

    /// Returns the kind, name and slug of an item: those of a design, with a number behind them from the second item of
    /// that design on.
    fn numbered(&self, number: u64) -> Option<(&ItemKind, String, String)> {
        let designs = self.designs.len() as u64;
        let (kind, name, slug) = self.designs.get(number.checked_rem(designs)? as usize)?;
        Some(match number / designs {
            0 => (kind, name.clone(), slug.clone()),
            edition => (kind, format!("{name} {}", edition + 1), format!("{slug}-{}", edition + 1)),
        })
    }
}

/// Returns the id of an item's variant. The items with the lowest numbers have the most listings.
pub fn variant_id(item: u64, variant: u64) -> VariantId {
    uuid(&mut Random::from_seed(!(item * VARIANTS_PER_ITEM + variant))).into()
}

fn uuid(random: &mut Random) -> Uuid {
    uuid::Builder::from_random_bytes((u128::from(random.bits()) << 64 | u128::from(random.bits())).to_be_bytes())
        .into_uuid()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn market(size: u64) -> LargeMarket {
        LargeMarket::new(size, Timestamp::from_millis(1_795_176_000_000))
    }

    #[test]
    fn every_record_can_be_made_and_none_comes_twice() {
        let market = market(20_000);
        let items: HashSet<_> = (0..20_000).map(|number| market.item(number).unwrap().item.id).collect();
        let listings: HashSet<_> = (0..20_000).map(|number| market.listing(number).unwrap().id).collect();
        assert_eq!((items.len(), listings.len()), (20_000, 20_000));
    }

    #[test]
    fn a_listing_names_a_variant_of_its_item() {
        let market = market(500);
        let items: Vec<_> = (0..500).map(|number| market.item(number).unwrap()).collect();
        for listing in (0..2_000).map(|number| market.listing(number).unwrap()) {
            let item = items.iter().find(|item| Some(&item.item.id) == listing.item_id.as_ref()).unwrap();
            let variant = item.variants.iter().find(|variant| Some(variant.variant_id) == listing.variant_id).unwrap();
            assert_eq!(variant.market_hash_name, listing.market_hash_name);
        }
    }

    #[test]
    fn the_first_item_has_very_many_listings() {
        let (market, first) = (market(20_000), market(1).item_id(0));
        let listings = (0..14_000).filter(|number| market.listing(*number).unwrap().item_id == first).count();
        assert!((900..1_100).contains(&listings), "{listings}");
    }
}
