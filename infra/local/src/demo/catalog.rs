//! What the demo market trades in: designs, and the items of the catalog that they become.

use common::ids::{ItemId, Label, VariantId};
use common::records::{PublicItem, PublicItemDetail, PublicVariant};

use super::random::{Random, scaled, slug, uuid};

/// Names, under a heading for each list. Weapons, the most traded first, stand with their best-known designs. Plain
/// designs come on many weapons. Events have stickers and souvenirs.
const NAMES: &str = include_str!("names.txt");

/// Stands before the name of a variant with a kill counter.
const STATTRAK_PREFIX: &str = "StatTrak™ ";
/// Stands before the names of knives and gloves, and before [`STATTRAK_PREFIX`].
const STAR_PREFIX: &str = "★ ";
/// The price with a kill counter, in percent of the price without.
const STATTRAK_PRICE_PERCENT: u64 = 190;
/// Degrees of wear, and their prices in percent of a field-tested one.
const WEARS: [Wear; 5] =
    [("Factory New", 178), ("Minimal Wear", 126), ("Field-Tested", 100), ("Well-Worn", 91), ("Battle-Scarred", 84)];
/// The ranges of [`WEARS`] that a design may come in; the ends are exclusive. Most designs come in all degrees.
const WEAR_RANGES: [(usize, usize); 10] =
    [(0, 5), (0, 5), (0, 5), (0, 5), (0, 5), (0, 5), (0, 4), (0, 3), (0, 2), (1, 5)];

/// The number of designs of its own that each weapon has besides its best-known one, and of plain designs.
const OWN_DESIGNS_PER_WEAPON: usize = 27;
const PLAIN_DESIGNS_PER_WEAPON: usize = 8;
/// Shares no factor with the number of pairs of words, so every pair names a design before any comes again, and
/// neighbours are unlike each other.
const WORDS_STRIDE: usize = 577;
/// The percentage of variants that are traded every day, besides each item's most traded variant.
const DAILY_TRADED_PERCENT: u64 = 10;

/// The finishes of stickers, and their prices in percent of a plain one.
const TEAM_FINISHES: [(&str, u64); 4] = [("", 100), (" (Glitter)", 180), (" (Holo)", 420), (" (Gold)", 1_500)];
const PICTURE_FINISHES: [(&str, u64); 3] = [("", 100), (" (Foil)", 260), (" (Holo)", 340)];

/// A degree of wear, and its price in percent.
type Wear = (&'static str, u64);
/// A range of prices in cents with its weight, which is its share of the things of a kind.
type Band = (u64, u64, u64);

const PLAIN_SKIN_PRICES: [Band; 2] = [(4, 4, 35), (1, 35, 240)];
const OWN_SKIN_PRICES: [Band; 4] = [(9, 30, 250), (6, 250, 1_200), (4, 1_200, 4_500), (1, 4_500, 38_000)];
const KNOWN_SKIN_PRICES: [Band; 1] = [(1, 1_400, 9_500)];
const KNIFE_PRICES: [Band; 3] = [(5, 8_500, 22_000), (3, 22_000, 70_000), (1, 70_000, 240_000)];
const GLOVE_PRICES: [Band; 2] = [(3, 6_000, 18_000), (1, 18_000, 90_000)];
const TEAM_PRICES: [Band; 2] = [(5, 4, 45), (1, 45, 900)];
const PICTURE_PRICES: [Band; 2] = [(4, 25, 180), (1, 180, 1_400)];
const CASE_PRICES: [Band; 3] = [(5, 25, 180), (3, 180, 900), (1, 900, 6_500)];
const AGENT_PRICES: [Band; 3] = [(5, 90, 400), (3, 400, 1_500), (1, 1_500, 6_000)];
const CHARM_PRICES: [Band; 2] = [(5, 20, 250), (1, 250, 3_000)];
const MUSIC_KIT_PRICES: [Band; 1] = [(1, 180, 900)];

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

/// A design, which becomes an item of the catalog.
struct Design {
    kind: &'static str,
    name: String,
    /// The price of its only form or, if it wears, of a field-tested one without a kill counter.
    cents: u64,
    forms: Forms,
}

/// The forms in which a design is traded.
enum Forms {
    /// In one form, which has a kill counter if the flag is set.
    One(bool),
    /// In these degrees of wear. If the flag is set, each degree also comes with a kill counter.
    Worn(&'static [Wear], bool),
}

/// One form of a design.
struct Form {
    wear: Option<&'static str>,
    stattrak: bool,
    market_hash_name: String,
    cents: u64,
}

/// Returns every item. Each has at least one variant that is traded every day.
pub(super) fn stock() -> Stock {
    let mut random = Random::from_part(3);
    let mut stock = Stock { items: Vec::new(), priced: Vec::new() };
    for design in [arms(), stickers(), collectibles()].into_iter().flatten() {
        if let Some((item, priced)) = design.stocked(&mut random) {
            stock.items.push(item);
            stock.priced.extend(priced);
        }
    }
    stock
}

/// Returns what wears: skins weapon by weapon, then knives, then gloves.
fn arms() -> Vec<Design> {
    let random = &mut Random::from_part(1);
    let (weapons, plain) = (names("weapons"), names("plain designs"));
    let words = pairs("first words of designs", "second words of designs");
    let mut designs = Vec::new();
    for (index, known) in weapons.into_iter().enumerate() {
        let weapon = known.split_once(" | ").map_or(known, |(weapon, _)| weapon);
        designs.push(Design::worn(random, "skin", known.to_owned(), &KNOWN_SKIN_PRICES, 100));
        for own in 0..OWN_DESIGNS_PER_WEAPON {
            let (first, second) = words[(index * OWN_DESIGNS_PER_WEAPON + own) * WORDS_STRIDE % words.len()];
            designs.push(Design::worn(random, "skin", format!("{weapon} | {first} {second}"), &OWN_SKIN_PRICES, 35));
        }
        let plain = plain.iter().cycle().skip(index * PLAIN_DESIGNS_PER_WEAPON).take(PLAIN_DESIGNS_PER_WEAPON);
        designs.extend(
            plain.map(|design| Design::worn(random, "skin", format!("{weapon} | {design}"), &PLAIN_SKIN_PRICES, 0)),
        );
    }
    let mut starred = |kind: &'static str, (thing, design): (&str, &str), bands: &[Band], stattrak: bool| Design {
        kind,
        name: format!("{STAR_PREFIX}{thing} | {design}"),
        cents: price(random, bands),
        forms: Forms::worn(random, stattrak),
    };
    let knives = pairs("knives", "designs of knives").into_iter();
    designs.extend(knives.map(|knife| starred("knife", knife, &KNIFE_PRICES, true)));
    let gloves = pairs("gloves", "designs of gloves").into_iter();
    designs.extend(gloves.map(|glove| starred("glove", glove, &GLOVE_PRICES, false)));
    designs
}

/// Returns all stickers: teams event by event, then pictures.
fn stickers() -> Vec<Design> {
    let random = &mut Random::from_part(7);
    let mut stickers = Vec::new();
    for (event, team) in pairs("events", "teams") {
        let cents = price(random, &TEAM_PRICES);
        stickers.extend(TEAM_FINISHES.map(|(finish, percent)| {
            Design::single("sticker", format!("Sticker | {team}{finish} | {event}"), scaled(cents, percent))
        }));
    }
    for picture in names("pictures") {
        let cents = price(random, &PICTURE_PRICES);
        stickers.extend(PICTURE_FINISHES.map(|(finish, percent)| {
            Design::single("sticker", format!("Sticker | {picture}{finish}"), scaled(cents, percent))
        }));
    }
    stickers
}

/// Returns what else does not wear: cases, agents, charms and music kits.
fn collectibles() -> Vec<Design> {
    let random = &mut Random::from_part(2);
    let mut designs = Vec::new();
    let mut add = |kind, name, bands: &[Band]| designs.push(Design::single(kind, name, price(random, bands)));
    for case in names("cases") {
        add("case", format!("{case} Case"), &CASE_PRICES);
    }
    for (event, map) in pairs("events", "maps") {
        add("case", format!("{event} {map} Souvenir Package"), &CASE_PRICES);
    }
    for (person, faction) in pairs("people", "factions") {
        add("agent", format!("{person} | {faction}"), &AGENT_PRICES);
    }
    for (size, shape) in pairs("sizes of charms", "shapes of charms") {
        add("charm", format!("Charm | {size} {shape}"), &CHARM_PRICES);
    }
    // A kit without a kill counter and one with it are two items, because an item that does not wear has one variant.
    for music in names("music kits") {
        let (kind, cents, name) = ("music_kit", price(random, &MUSIC_KIT_PRICES), format!("Music Kit | {music}"));
        let counting = format!("{STATTRAK_PREFIX}{name}");
        designs.push(Design::single(kind, name, cents));
        designs.push(Design { kind, name: counting, cents: scaled(cents, 170), forms: Forms::One(true) });
    }
    designs
}

/// Returns the lines below a heading of the file of names.
fn names(heading: &str) -> Vec<&'static str> {
    let below = NAMES.lines().skip_while(|line| line.strip_prefix("# ") != Some(heading)).skip(1);
    below.take_while(|line| !line.is_empty()).collect()
}

/// Combines each name on the left with each on the right.
fn pairs(left: &str, right: &str) -> Vec<(&'static str, &'static str)> {
    let (left, right) = (names(left), names(right));
    left.into_iter().flat_map(|left| right.iter().map(move |right| (left, *right))).collect()
}

/// Returns a price in cents from one of the bands, which is picked by weight.
fn price(random: &mut Random, bands: &[Band]) -> u64 {
    let mut roll = random.below(bands.iter().map(|(weight, ..)| weight).sum());
    for &(weight, low, high) in bands {
        if roll < weight {
            return random.between(low, high);
        }
        roll -= weight;
    }
    1
}

impl Forms {
    /// Picks the degrees of wear at random.
    fn worn(random: &mut Random, stattrak: bool) -> Self {
        let (from, to) = random.pick(&WEAR_RANGES).copied().unwrap_or((0, WEARS.len()));
        Self::Worn(WEARS.get(from..to).unwrap_or(&WEARS), stattrak)
    }
}

impl Design {
    /// Makes a design that is traded in one form.
    fn single(kind: &'static str, name: String, cents: u64) -> Self {
        Self { kind, name, cents, forms: Forms::One(false) }
    }

    /// Makes a design that wears. `stattrak_percent` is the chance that it also comes with a kill counter.
    fn worn(random: &mut Random, kind: &'static str, name: String, bands: &[Band], stattrak_percent: u64) -> Self {
        let (cents, stattrak) = (price(random, bands), random.percent(stattrak_percent));
        Self { kind, name, cents, forms: Forms::worn(random, stattrak) }
    }

    /// Returns the item, and its variants with their prices.
    fn stocked(&self, random: &mut Random) -> Option<(PublicItemDetail, Vec<PricedVariant>)> {
        let slug = slug(&self.name);
        let item = PublicItem {
            id: slug.parse().ok()?,
            kind: self.kind.parse().ok()?,
            name: Some(self.name.parse().ok()?),
            image: Some(format!("https://img.example.com/{slug}.png").parse().ok()?),
            slug: Some(slug.try_into().ok()?),
        };
        let (forms, most_traded) = self.variants();
        let (mut variants, mut priced) = (Vec::new(), Vec::new());
        for (index, Form { wear, stattrak, market_hash_name, cents }) in forms.into_iter().enumerate() {
            let variant = PublicVariant {
                variant_id: uuid("variant", &market_hash_name),
                wear: wear.map(str::parse).transpose().ok()?,
                stattrak,
                market_hash_name: Some(market_hash_name.try_into().ok()?),
                prices: None,
            };
            priced.push(PricedVariant {
                item: item.id.clone(),
                variant: variant.variant_id,
                market_hash_name: variant.market_hash_name.clone(),
                cents,
                traded: index == most_traded || random.percent(DAILY_TRADED_PERCENT),
            });
            variants.push(variant);
        }
        Some((PublicItemDetail { item, variants }, priced))
    }

    /// Returns the variants, those without a kill counter first, and the index of the most traded one: the middle degree
    /// of wear, without a kill counter.
    fn variants(&self) -> (Vec<Form>, usize) {
        let (wears, has_counter) = match self.forms {
            Forms::One(stattrak) => {
                let market_hash_name = self.name.clone();
                return (vec![Form { wear: None, stattrak, market_hash_name, cents: self.cents }], 0);
            }
            Forms::Worn(wears, has_counter) => (wears, has_counter),
        };
        let (star, rest) =
            self.name.strip_prefix(STAR_PREFIX).map_or(("", self.name.as_str()), |rest| (STAR_PREFIX, rest));
        let form = |stattrak: bool, (wear, percent): Wear| {
            let cents = scaled(self.cents, percent);
            Form {
                wear: Some(wear),
                stattrak,
                market_hash_name: format!("{star}{}{rest} ({wear})", if stattrak { STATTRAK_PREFIX } else { "" }),
                cents: if stattrak { scaled(cents, STATTRAK_PRICE_PERCENT) } else { cents },
            }
        };
        let counters = if has_counter { &[false, true][..] } else { &[false] };
        let forms = counters.iter().flat_map(|&stattrak| wears.iter().map(move |&wear| (stattrak, wear)));
        (forms.map(|(stattrak, wear)| form(stattrak, wear)).collect(), wears.len() / 2)
    }
}
