//! The things that wear: skins of weapons, knives and gloves.

use super::design::{Design, Forms, STAR_PREFIX};
use super::price::{Band, price};
use super::random::Random;
use super::words;

const RANDOM_PART: u64 = 1;

/// Weapons, the most traded first, each with its best-known design.
const WEAPONS: [(&str, &str); 26] = [
    ("AK-47", "Redline"),
    ("AWP", "Sky Serpent"),
    ("M4A4", "Night Shift"),
    ("Glock-18", "Paper Crane"),
    ("Desert Eagle", "Brass Monk"),
    ("FAMAS", "Blue Hour"),
    ("P90", "Koi Pond"),
    ("AUG", "Wasp Nest"),
    ("MP5-SD", "Undertow"),
    ("Halden 12", "Last Orders"),
    ("Kestrel .45", "Tin Soldier"),
    ("VR-9 Carbine", "Ghost Signal"),
    ("Galt SMG", "Arcade"),
    ("SR-27", "White Noise"),
    ("Tarn Revolver", "Snake Oil"),
    ("Moss-20", "Kitchen Knife"),
    ("PX-5", "Ladybird"),
    ("Vektor-S", "Dead Reckoning"),
    ("Brenner LMG", "Freight Train"),
    ("Corvid-9", "Magpie"),
    ("Twin Falks", "Mirror Mirror"),
    ("DMR-7", "Long Division"),
    ("Pike Shotgun", "Lucky Strike"),
    ("Lynx Scout", "Snow Day"),
    ("Ural-74", "Samovar"),
    ("Stubby 8", "Bubblegum"),
];

/// Plain designs that come on many weapons. Each weapon has [`PLAIN_DESIGNS_PER_WEAPON`] of them.
const PLAIN_DESIGNS: [&str; 14] = [
    "Desert Mesh",
    "Pine Camo",
    "Night Stripe",
    "Hazard Line",
    "Carbon Weave",
    "Scrapyard",
    "Blue Tempered",
    "Harlequin",
    "Tidal Camo",
    "Urban Grid",
    "Rosewood",
    "Graphite",
    "Sandstone",
    "Topographic",
];
const PLAIN_DESIGNS_PER_WEAPON: usize = 8;
/// The number of designs of its own that each weapon has besides its best-known one.
const OWN_DESIGNS_PER_WEAPON: usize = 27;

const KNIVES: [&str; 10] = [
    "Karambit",
    "Balisong",
    "Tanto",
    "Stiletto",
    "Kukri",
    "Hook Knife",
    "Trench Knife",
    "Fillet Knife",
    "Push Dagger",
    "Pocket Knife",
];
const KNIFE_DESIGNS: [&str; 16] = [
    "Doppler",
    "Slow Burn",
    "Heat Tint",
    "Tiger Maple",
    "Damascene",
    "Ultraviolet Haze",
    "Oil Slick",
    "Emerald Vein",
    "Bone White",
    "Ripple",
    "Night Stripe",
    "Rust Bloom",
    "Scorch Mark",
    "Pine Camo",
    "Desert Mesh",
    "Blue Tempered",
];

const GLOVES: [&str; 5] = ["Courier Gloves", "Climbing Gloves", "Fencing Gloves", "Rigger Gloves", "Hand Wraps"];
const GLOVE_DESIGNS: [&str; 12] = [
    "Red Ledger",
    "Polar Night",
    "Overpass",
    "Lime Zest",
    "Swallowtail",
    "Ox Blood",
    "Chalk Dust",
    "Checkpoint",
    "Mangrove",
    "Rain Delay",
    "Duct Tape",
    "Sun Bleached",
];

const PLAIN_SKIN_PRICES: [Band; 2] = [Band::new(4, 4, 35), Band::new(1, 35, 240)];
const OWN_SKIN_PRICES: [Band; 4] =
    [Band::new(9, 30, 250), Band::new(6, 250, 1_200), Band::new(4, 1_200, 4_500), Band::new(1, 4_500, 38_000)];
const KNOWN_SKIN_PRICES: [Band; 1] = [Band::new(1, 1_400, 9_500)];
const KNIFE_PRICES: [Band; 3] =
    [Band::new(5, 8_500, 22_000), Band::new(3, 22_000, 70_000), Band::new(1, 70_000, 240_000)];
const GLOVE_PRICES: [Band; 2] = [Band::new(3, 6_000, 18_000), Band::new(1, 18_000, 90_000)];

/// Returns all designs: skins weapon by weapon, then knives, then gloves.
pub(super) fn designs() -> Vec<Design> {
    let mut random = Random::from_part(RANDOM_PART);
    let mut designs = Vec::with_capacity(WEAPONS.len() * (1 + OWN_DESIGNS_PER_WEAPON + PLAIN_DESIGNS_PER_WEAPON) + 220);
    for (index, (weapon, known)) in WEAPONS.into_iter().enumerate() {
        designs.push(skin(&mut random, weapon, known, &KNOWN_SKIN_PRICES, 100));
        for own in 0..OWN_DESIGNS_PER_WEAPON {
            let design = words::name(index * OWN_DESIGNS_PER_WEAPON + own);
            designs.push(skin(&mut random, weapon, &design, &OWN_SKIN_PRICES, 35));
        }
        for design in PLAIN_DESIGNS.iter().cycle().skip(index * PLAIN_DESIGNS_PER_WEAPON).take(PLAIN_DESIGNS_PER_WEAPON)
        {
            designs.push(skin(&mut random, weapon, design, &PLAIN_SKIN_PRICES, 0));
        }
    }
    for knife in KNIVES {
        designs.extend(KNIFE_DESIGNS.map(|design| starred(&mut random, "knife", knife, design, &KNIFE_PRICES, true)));
    }
    for glove in GLOVES {
        designs.extend(GLOVE_DESIGNS.map(|design| starred(&mut random, "glove", glove, design, &GLOVE_PRICES, false)));
    }
    designs
}

fn skin(random: &mut Random, weapon: &str, design: &str, bands: &[Band], stattrak_chance: u64) -> Design {
    let (cents, stattrak) = (price(random, bands), random.percent(stattrak_chance));
    Design { kind: "skin", name: format!("{weapon} | {design}"), cents, forms: Forms::worn(random, stattrak) }
}

fn starred(
    random: &mut Random,
    kind: &'static str,
    thing: &str,
    design: &str,
    bands: &[Band],
    stattrak: bool,
) -> Design {
    let cents = price(random, bands);
    Design { kind, name: format!("{STAR_PREFIX}{thing} | {design}"), cents, forms: Forms::worn(random, stattrak) }
}

#[cfg(test)]
mod tests {
    use super::{OWN_DESIGNS_PER_WEAPON, WEAPONS, words};

    #[test]
    fn there_are_names_for_all_designs() {
        assert!(WEAPONS.len() * OWN_DESIGNS_PER_WEAPON <= words::NAME_COUNT);
    }
}
