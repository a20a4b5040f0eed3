//! Turns designs into the items of the catalog, and into the priced variants that listings, quotes and orders name.

use types::ids::{ItemId, Label, VariantId};
use types::records::{PublicItem, PublicItemDetail, PublicVariant};

use super::design::{Design, Variant};
use super::random::Random;
use super::{arms, collectibles, ids, stickers};

const PART: u64 = 3;

/// The percentage of variants that are traded every day, besides each item's most usual variant.
const TRADED_PERCENT: u64 = 10;

/// Everything that the market trades in.
pub(super) struct Stock {
    pub(super) items: Vec<PublicItemDetail>,
    pub(super) priced: Vec<Priced>,
}

/// A variant and its worth in cents.
pub(super) struct Priced {
    pub(super) item: ItemId,
    pub(super) variant: VariantId,
    pub(super) market_hash_name: Option<Label>,
    pub(super) cents: u64,
    /// Whether it is traded every day. If so, other marketplaces have it too.
    pub(super) traded: bool,
}

/// Returns every item. Each has at least one variant that is traded every day.
pub(super) fn stock() -> Stock {
    let mut random = Random::of_part(PART);
    let mut stock = Stock { items: Vec::new(), priced: Vec::new() };
    let designs = [arms::designs(), stickers::designs(), collectibles::designs()];
    for design in designs.into_iter().flatten() {
        if let Some((item, priced)) = stocked(&design, &mut random) {
            stock.items.push(item);
            stock.priced.extend(priced);
        }
    }
    stock
}

fn stocked(design: &Design, random: &mut Random) -> Option<(PublicItemDetail, Vec<Priced>)> {
    let slug = ids::slug(&design.name);
    let item = PublicItem {
        id: slug.parse().ok()?,
        kind: design.kind.parse().ok()?,
        name: Some(design.name.parse().ok()?),
        image: Some(format!("https://img.example.com/{slug}.png").parse().ok()?),
        slug: Some(slug.try_into().ok()?),
    };
    let forms = design.variants();
    let usual = design.usual();
    let (mut variants, mut priced) = (Vec::with_capacity(forms.len()), Vec::with_capacity(forms.len()));
    for (index, form) in forms.into_iter().enumerate() {
        let traded = index == usual || random.percent(TRADED_PERCENT);
        let cents = form.cents;
        let variant = variant(form)?;
        priced.push(Priced {
            item: item.id.clone(),
            variant: variant.variant_id,
            market_hash_name: variant.market_hash_name.clone(),
            cents,
            traded,
        });
        variants.push(variant);
    }
    Some((PublicItemDetail { item, variants }, priced))
}

fn variant(form: Variant) -> Option<PublicVariant> {
    Some(PublicVariant {
        variant_id: ids::uuid("variant", &form.market_hash_name),
        wear: form.wear.map(str::parse).transpose().ok()?,
        stattrak: form.stattrak,
        market_hash_name: Some(form.market_hash_name.try_into().ok()?),
    })
}
