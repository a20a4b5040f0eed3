//! What the demo market trades in: items, their variants, and what these are worth.

use fastrand::Rng;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{scaled, uuid};

/// Lists of names, one on each line, after what the list has. Weapons, the most traded first, stand with their best-known
/// designs. Plain designs come on many weapons. Events have stickers and souvenirs.
const NAMES: &str = include_str!("names.txt");

/// Stands before the name of a variant with a kill counter.
const STATTRAK: &str = "StatTrak™ ";
/// Stands before the names of knives and gloves, and before [`STATTRAK`].
const STAR: &str = "★ ";
/// The price with a kill counter, in percent of the price without.
const STATTRAK_PRICE_PERCENT: u64 = 190;
/// Degrees of wear, and their prices in percent of a field-tested one.
const WEARS: [(&str, u64); 5] =
    [("Factory New", 178), ("Minimal Wear", 126), ("Field-Tested", 100), ("Well-Worn", 91), ("Battle-Scarred", 84)];
/// The ranges of [`WEARS`] that a design may come in; the ends are exclusive. Most designs come in all degrees.
const WEAR_RANGES: [(usize, usize); 9] = [(0, 5), (0, 5), (0, 5), (0, 5), (0, 5), (0, 4), (0, 3), (0, 2), (1, 5)];

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

/// The lowest and the highest price of things of a kind, in cents.
type Prices = (u64, u64);

/// Everything that the market trades in.
pub(super) struct Stock {
    /// The messages about the items.
    pub(super) items: Vec<Value>,
    pub(super) priced: Vec<PricedVariant>,
    random: Rng,
}

/// A variant and its worth in cents.
pub(super) struct PricedVariant {
    /// The item's id.
    pub(super) item: String,
    pub(super) id: Uuid,
    pub(super) market_hash_name: String,
    pub(super) cents: u64,
    /// Whether it is traded every day. If so, other marketplaces have it too.
    pub(super) traded: bool,
}

/// A variant of an item: its wear, whether it has a kill counter, its name and its worth in cents.
type Form = (Option<&'static str>, bool, String, u64);

impl Stock {
    /// Returns every item. Each has at least one variant that is traded every day.
    pub(super) fn new() -> Self {
        let mut stock = Self { items: Vec::new(), priced: Vec::new(), random: Rng::with_seed(1) };
        stock.add_arms();
        stock.add_stickers();
        stock.add_collectibles();
        stock
    }

    /// Adds what wears: skins weapon by weapon, then knives, then gloves.
    fn add_arms(&mut self) {
        let plain = names("plain designs");
        let words = pairs("first words of designs", "second words of designs");
        for (index, known) in names("weapons").into_iter().enumerate() {
            let weapon = known.split(" | ").next().unwrap_or(known);
            self.add_worn("skin", known, (1_400, 9_500), 100);
            for own in 0..OWN_DESIGNS_PER_WEAPON {
                let (first, second) = words[(index * OWN_DESIGNS_PER_WEAPON + own) * WORDS_STRIDE % words.len()];
                self.add_worn("skin", &format!("{weapon} | {first} {second}"), (30, 38_000), 35);
            }
            let plain = plain.iter().cycle().skip(index * PLAIN_DESIGNS_PER_WEAPON).take(PLAIN_DESIGNS_PER_WEAPON);
            for design in plain {
                self.add_worn("skin", &format!("{weapon} | {design}"), (4, 240), 0);
            }
        }
        for (knife, design) in pairs("knives", "designs of knives") {
            self.add_worn("knife", &format!("{STAR}{knife} | {design}"), (8_500, 240_000), 100);
        }
        for (glove, design) in pairs("gloves", "designs of gloves") {
            self.add_worn("glove", &format!("{STAR}{glove} | {design}"), (6_000, 90_000), 0);
        }
    }

    /// Adds all stickers: teams event by event, then pictures.
    fn add_stickers(&mut self) {
        for (event, team) in pairs("events", "teams") {
            let cents = self.price((4, 900));
            for (finish, percent) in TEAM_FINISHES {
                self.add_single("sticker", format!("Sticker | {team}{finish} | {event}"), scaled(cents, percent));
            }
        }
        for picture in names("pictures") {
            let cents = self.price((25, 1_400));
            for (finish, percent) in PICTURE_FINISHES {
                self.add_single("sticker", format!("Sticker | {picture}{finish}"), scaled(cents, percent));
            }
        }
    }

    /// Adds what else does not wear: cases, agents, charms and music kits.
    fn add_collectibles(&mut self) {
        let cases = names("cases").into_iter().map(|case| format!("{case} Case"));
        let souvenirs =
            pairs("events", "maps").into_iter().map(|(event, map)| format!("{event} {map} Souvenir Package"));
        let agents = pairs("people", "factions").into_iter().map(|(person, faction)| format!("{person} | {faction}"));
        let charms = pairs("sizes of charms", "shapes of charms").into_iter();
        let charms = charms.map(|(size, shape)| format!("Charm | {size} {shape}"));
        let named = |kind: &'static str, prices: Prices| move |name: String| (kind, name, prices);
        let all = cases.chain(souvenirs).map(named("case", (25, 6_500)));
        let all = all.chain(agents.map(named("agent", (90, 6_000)))).chain(charms.map(named("charm", (20, 3_000))));
        for (kind, name, prices) in all {
            let cents = self.price(prices);
            self.add_single(kind, name, cents);
        }
        // A kit without a kill counter and one with it are two items, because an item that does not wear has one variant.
        for music in names("music kits") {
            let (cents, name) = (self.price((180, 900)), format!("Music Kit | {music}"));
            let counting = format!("{STATTRAK}{name}");
            self.add_single("music_kit", name, cents);
            self.add("music_kit", &counting.clone(), vec![(None, true, counting, scaled(cents, 170))], 0);
        }
    }

    /// Adds an item that wears. `stattrak_percent` is the chance that it also comes with a kill counter.
    fn add_worn(&mut self, kind: &str, name: &str, prices: Prices, stattrak_percent: u64) {
        let cents = self.price(prices);
        let (from, to) = self.random.choice(WEAR_RANGES).unwrap_or((0, WEARS.len()));
        let has_counter = self.random.u64(..100) < stattrak_percent;
        let (star, rest) = name.strip_prefix(STAR).map_or(("", name), |rest| (STAR, rest));
        let counters = [("", 100), (STATTRAK, STATTRAK_PRICE_PERCENT)].into_iter().take(1 + usize::from(has_counter));
        let forms = counters.flat_map(|(counter, counter_percent)| {
            WEARS[from..to].iter().map(move |(wear, percent)| {
                let name = format!("{star}{counter}{rest} ({wear})");
                (Some(*wear), !counter.is_empty(), name, scaled(scaled(cents, *percent), counter_percent))
            })
        });
        self.add(kind, name, forms.collect(), (to - from) / 2);
    }

    /// Adds an item with one variant.
    fn add_single(&mut self, kind: &str, name: String, cents: u64) {
        self.add(kind, &name.clone(), vec![(None, false, name, cents)], 0);
    }

    /// Adds an item with these variants. The one at `most_traded` is traded every day, and so are some of the others.
    fn add(&mut self, kind: &str, name: &str, forms: Vec<Form>, most_traded: usize) {
        let (slug, mut variants) = (slug(name), Vec::new());
        for (index, (wear, stattrak, market_hash_name, cents)) in forms.into_iter().enumerate() {
            let id = uuid("variant", &market_hash_name);
            variants.push(json!({
                "variant_id": id, "wear": wear, "stattrak": stattrak, "market_hash_name": market_hash_name,
            }));
            let traded = index == most_traded || self.random.u64(..100) < DAILY_TRADED_PERCENT;
            self.priced.push(PricedVariant { item: slug.clone(), id, market_hash_name, cents, traded });
        }
        self.items.push(json!({
            "type": "item", "id": slug, "kind": kind, "name": name, "slug": slug,
            "image": format!("https://img.example.com/{slug}.png"), "variants": variants, "version": 1,
        }));
    }

    /// Returns a price in cents. Low ones are more frequent.
    fn price(&mut self, (low, high): Prices) -> u64 {
        let octaves = (high / low).ilog2();
        let octave = low << self.random.u32(0..=octaves).min(self.random.u32(0..=octaves));
        self.random.u64(octave..=2 * octave).min(high)
    }
}

/// Returns a list of the file of names.
fn names(list: &str) -> Vec<&'static str> {
    let line = NAMES.lines().find_map(|line| line.strip_prefix(list)?.strip_prefix(": "));
    line.unwrap_or_default().split("; ").collect()
}

/// Combines each name on the left with each on the right.
fn pairs(left: &str, right: &str) -> Vec<(&'static str, &'static str)> {
    let right = names(right);
    names(left).into_iter().flat_map(|left| right.iter().map(move |right| (left, *right))).collect()
}

/// Turns a name into part of a URL: lower-case letters and digits, with one hyphen for whatever lies between them.
/// Apostrophes and characters outside ASCII are left out.
fn slug(name: &str) -> String {
    let kept = name.to_ascii_lowercase().replace(|c: char| c == '\'' || !c.is_ascii(), "");
    let words = kept.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}
