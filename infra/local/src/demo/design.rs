//! A design, and the variants in which it is traded.

use super::price::scaled;
use super::random::Random;

/// Stands before the name of a variant with a kill counter.
pub(super) const STATTRAK_PREFIX: &str = "StatTrak™ ";
/// Stands before the names of knives and gloves, and before [`STATTRAK_PREFIX`].
pub(super) const STAR_PREFIX: &str = "★ ";
/// The price with a kill counter, in percent of the price without.
const STATTRAK_PRICE_PERCENT: u64 = 190;

/// A degree of wear. `price_percent` is its price in percent of the field-tested variant's.
#[derive(Clone, Copy)]
pub(super) struct Wear {
    pub(super) name: &'static str,
    price_percent: u64,
}

const WEARS: [Wear; 5] = [
    Wear { name: "Factory New", price_percent: 178 },
    Wear { name: "Minimal Wear", price_percent: 126 },
    Wear { name: "Field-Tested", price_percent: 100 },
    Wear { name: "Well-Worn", price_percent: 91 },
    Wear { name: "Battle-Scarred", price_percent: 84 },
];

/// The ranges of [`WEARS`] that a design may come in; the ends are exclusive. Most designs come in all degrees.
const WEAR_RANGES: [(usize, usize); 10] =
    [(0, 5), (0, 5), (0, 5), (0, 5), (0, 5), (0, 5), (0, 4), (0, 3), (0, 2), (1, 5)];

/// The forms in which a design is traded.
pub(super) enum Forms {
    /// In one form.
    One,
    /// In one form, which has a kill counter.
    OneStatTrak,
    /// In these degrees of wear. If the flag is set, each degree also comes with a kill counter.
    Worn(&'static [Wear], bool),
}

impl Forms {
    /// Picks the degrees of wear at random.
    pub(super) fn worn(random: &mut Random, stattrak: bool) -> Self {
        let (from, to) = random.pick(&WEAR_RANGES).copied().unwrap_or((0, WEARS.len()));
        Self::Worn(WEARS.get(from..to).unwrap_or(&WEARS), stattrak)
    }
}

/// A design, which becomes an item of the catalog.
pub(super) struct Design {
    pub(super) kind: &'static str,
    pub(super) name: String,
    /// The price of its only form or, if it wears, of a field-tested one without a kill counter.
    pub(super) cents: u64,
    pub(super) forms: Forms,
}

/// One form of a design.
pub(super) struct DesignForm {
    pub(super) wear: Option<&'static str>,
    pub(super) stattrak: bool,
    pub(super) market_hash_name: String,
    pub(super) cents: u64,
}

impl Design {
    /// Makes a design that is traded in one form.
    pub(super) fn single(kind: &'static str, name: String, cents: u64) -> Self {
        Self { kind, name, cents, forms: Forms::One }
    }

    /// Returns the variants, those without a kill counter first.
    pub(super) fn variants(&self) -> Vec<DesignForm> {
        let (wears, counted) = match self.forms {
            Forms::One => return vec![self.unworn(false)],
            Forms::OneStatTrak => return vec![self.unworn(true)],
            Forms::Worn(wears, counted) => (wears, counted),
        };
        let counters = if counted { [false, true].as_slice() } else { &[false] };
        let worn = |&stattrak| wears.iter().map(move |&wear| self.worn(wear, stattrak));
        counters.iter().flat_map(worn).collect()
    }

    /// Returns the index of the most traded variant: the middle degree of wear, without a kill counter.
    pub(super) const fn most_traded(&self) -> usize {
        match self.forms {
            Forms::One | Forms::OneStatTrak => 0,
            Forms::Worn(wears, _) => wears.len() / 2,
        }
    }

    fn unworn(&self, stattrak: bool) -> DesignForm {
        DesignForm { wear: None, stattrak, market_hash_name: self.name.clone(), cents: self.cents }
    }

    fn worn(&self, wear: Wear, stattrak: bool) -> DesignForm {
        let name = &self.name;
        let name = match (stattrak, name.strip_prefix(STAR_PREFIX)) {
            (false, _) => name.clone(),
            (true, None) => format!("{STATTRAK_PREFIX}{name}"),
            (true, Some(rest)) => format!("{STAR_PREFIX}{STATTRAK_PREFIX}{rest}"),
        };
        let cents = scaled(self.cents, wear.price_percent);
        DesignForm {
            wear: Some(wear.name),
            stattrak,
            market_hash_name: format!("{name} ({})", wear.name),
            cents: if stattrak { scaled(cents, STATTRAK_PRICE_PERCENT) } else { cents },
        }
    }
}
