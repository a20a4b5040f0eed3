//! The things that do not wear, apart from stickers: cases, agents, charms and music kits.

use super::design::{Design, Forms, STATTRAK_PREFIX};
use super::price::{Band, price, scaled};
use super::random::Random;
use super::stickers::EVENTS;
use super::words::pairs;

const RANDOM_PART: u64 = 2;

const CASES: [&str; 30] = [
    "Harbour",
    "Lantern",
    "Breakwater",
    "Sawmill",
    "Copperhead",
    "Monsoon",
    "Quarry",
    "Northern Line",
    "Parallax",
    "Foundry",
    "Tidewater",
    "Aurora",
    "Switchback",
    "Juniper",
    "Cinder",
    "Outrider",
    "Lighthouse",
    "Basalt",
    "Skylark",
    "Clockwork",
    "Ravine",
    "Mistral",
    "Semaphore",
    "Cathedral",
    "Windfall",
    "Backdraft",
    "Solstice",
    "Ironbark",
    "Rooftop",
    "Undercity",
];
const MAPS: [&str; 6] = ["Old Mill", "Ferry", "Observatory", "Salt Mine", "Terrace", "Depot"];

const FACTIONS: [&str; 8] = [
    "Tidewatch",
    "Grey Company",
    "Mountain Rescue",
    "The Syndicate",
    "Coastal Guard",
    "Dune Runners",
    "Night Market",
    "Customs Bureau",
];
const PEOPLE: [&str; 10] = [
    "Sergeant Brandt",
    "'Doc' Okafor",
    "Lt. Marlowe",
    "The Accountant",
    "Ilse Varga",
    "Chief Tamm",
    "'Fuse' Moreau",
    "Corporal Lindqvist",
    "Big Sal",
    "Agent Petrov",
];

const CHARM_SIZES: [&str; 6] = ["Tiny", "Pocket", "Lucky", "Chrome", "Wooden", "Glass"];
const CHARM_SHAPES: [&str; 20] = [
    "Anvil",
    "Lighthouse",
    "Dice",
    "Toaster",
    "Owl",
    "Skull",
    "Padlock",
    "Rocket",
    "Teapot",
    "Whale",
    "Grenade",
    "Chicken",
    "Compass",
    "Bell",
    "Acorn",
    "Robot",
    "Mushroom",
    "Horseshoe",
    "Piano",
    "Lemon",
];

/// Artists and titles of music kits.
const MUSIC_KITS: [&str; 30] = [
    "Alma Reyes, Warm Static",
    "Bent Pins, Overtime",
    "Cold Ferry, Last Boat Out",
    "Dial Tone, Busy Line",
    "Emil Vance, Ten Seconds",
    "Fjordlys, Polar Day",
    "Glass Ox, Stampede",
    "Hanna Qvist, Undertow",
    "Idle Hands, Machinery",
    "Juno Park, High Noon",
    "Kilo Watt, Blackout",
    "Lo Fi Lo, Rain Check",
    "Mira Solis, Golden Age",
    "Night Clerk, Room 12",
    "Oto Brandt, Stairwell",
    "Pale Blue, Orbit",
    "Quarter Past, Alarm",
    "Rusty Nail, Saloon",
    "Sable, Quiet Riot Gear",
    "Tall Order, Bigger Boat",
    "Umber, Clay",
    "Vera Lund, Wolfsong",
    "White Elephant, Parade",
    "Xylo, Bone Dance",
    "Yuki Arai, Snowblind",
    "Zed Minor, Final Boss",
    "The Ushers, Curtain Call",
    "Low Ceiling, Crawlspace",
    "Pine Street, Porchlight",
    "Two Left Feet, Waltz",
];

const CASE_PRICES: [Band; 3] = [Band::new(5, 25, 180), Band::new(3, 180, 900), Band::new(1, 900, 6_500)];
const AGENT_PRICES: [Band; 3] = [Band::new(5, 90, 400), Band::new(3, 400, 1_500), Band::new(1, 1_500, 6_000)];
const CHARM_PRICES: [Band; 2] = [Band::new(5, 20, 250), Band::new(1, 250, 3_000)];
const MUSIC_KIT_PRICES: [Band; 1] = [Band::new(1, 180, 900)];

/// Returns all designs, kind by kind.
pub(super) fn designs() -> Vec<Design> {
    let random = &mut Random::from_part(RANDOM_PART);
    let mut designs = cases(random);
    designs.extend(pairs(&PEOPLE, &FACTIONS).map(|(person, faction)| {
        Design::single("agent", format!("{person} | {faction}"), price(random, &AGENT_PRICES))
    }));
    designs.extend(
        pairs(&CHARM_SIZES, &CHARM_SHAPES).map(|(size, shape)| {
            Design::single("charm", format!("Charm | {size} {shape}"), price(random, &CHARM_PRICES))
        }),
    );
    designs.extend(MUSIC_KITS.iter().flat_map(|music| music_kits(random, music)));
    designs
}

fn cases(random: &mut Random) -> Vec<Design> {
    let ordinary = CASES.iter().map(|case| format!("{case} Case"));
    let souvenirs = pairs(&EVENTS, &MAPS).map(|(event, map)| format!("{event} {map} Souvenir Package"));
    ordinary.chain(souvenirs).map(|name| Design::single("case", name, price(random, &CASE_PRICES))).collect()
}

/// Returns a kit without and with a kill counter. They are two items, because an item that does not wear has only one
/// variant.
fn music_kits(random: &mut Random, music: &str) -> [Design; 2] {
    let (cents, name) = (price(random, &MUSIC_KIT_PRICES), format!("Music Kit | {music}"));
    let counting = format!("{STATTRAK_PREFIX}{name}");
    [
        Design::single("music_kit", name, cents),
        Design { kind: "music_kit", name: counting, cents: scaled(cents, 170), forms: Forms::OneStatTrak },
    ]
}
