//! Turns designs into the items of the catalog, and into the priced variants that listings, quotes and orders name.

use types::ids::{ItemId, Label, VariantId};
use types::records::{PublicItem, PublicItemDetail, PublicVariant};

use super::design::{Design, DesignForm};
use super::random::Random;
use super::{arms, collectibles, ids, stickers};

const RANDOM_PART: u64 = 3;

/// The percentage of variants that are traded every day, besides each item's most traded variant.
const DAILY_TRADED_PERCENT: u64 = 10;

/// Everything that the market trades in.
pub(super) struct Stock {
    pub(super) items: Vec<PublicItemDetail>,
    pub(super) priced: Vec<PricedVariant>,
}

/// A variant and its worth in cents.
pub(super) struct PricedVariant {
    pub(super) item: ItemId,
    pub(super) variant: VariantId,
    pub(super) market_hash_name: Option<Label>,
    pub(super) cents: u64,
    /// Whether it is traded every day. If so, other marketplaces have it too.
    pub(super) traded: bool,
}

/// Returns every item. Each has at least one variant that is traded every day.
pub(super) fn stock() -> Stock {
    let mut random = Random::from_part(RANDOM_PART);
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

fn stocked(design: &Design, random: &mut Random) -> Option<(PublicItemDetail, Vec<PricedVariant>)> {
    let slug = ids::slug(&design.name);
    let item = PublicItem {
        id: slug.parse().ok()?,
        kind: design.kind.parse().ok()?,
        name: Some(design.name.parse().ok()?),
        image: Some(format!("https://img.example.com/{slug}.png").parse().ok()?),
        slug: Some(slug.try_into().ok()?),
    };
    let forms = design.variants();
    let most_traded = design.most_traded();
    let (mut variants, mut priced) = (Vec::with_capacity(forms.len()), Vec::with_capacity(forms.len()));
    for (index, form) in forms.into_iter().enumerate() {
        let traded = index == most_traded || random.percent(DAILY_TRADED_PERCENT);
        let cents = form.cents;
        let variant = variant(form)?;
        priced.push(PricedVariant {
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

fn variant(form: DesignForm) -> Option<PublicVariant> {
    Some(PublicVariant {
        variant_id: ids::uuid("variant", &form.market_hash_name),
        wear: form.wear.map(str::parse).transpose().ok()?,
        stattrak: form.stattrak,
        market_hash_name: Some(form.market_hash_name.try_into().ok()?),
        prices: None,
    })
}
