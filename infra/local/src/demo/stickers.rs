//! Stickers: of each team for each event, and pictures.

use super::design::Design;
use super::price::{Band, price, scaled};
use super::random::Random;
use super::words::pairs;

const RANDOM_PART: u64 = 7;

/// Tournaments, which have souvenirs too.
pub(super) const EVENTS: [&str; 5] = ["Lisbon 2022", "Oslo 2023", "Toronto 2024", "Seoul 2025", "Prague 2026"];
const TEAMS: [&str; 24] = [
    "Ninth Wave",
    "Old Harbour",
    "Redshift",
    "Team Meridian",
    "Kite Club",
    "Northlight",
    "Zero Sum",
    "Bad Weather",
    "Iron Goats",
    "Pale Riders",
    "Low Tide",
    "Sunday League",
    "Team Ozone",
    "Paper Tigers",
    "Black Kettle",
    "Half Moon",
    "Granite",
    "Last Bus",
    "Hexagon",
    "The Lodgers",
    "Wild Geese",
    "Off By One",
    "Saltworks",
    "Volta",
];
/// The finishes of a team's sticker, and their prices in percent of a plain one.
const TEAM_FINISHES: [(&str, u64); 4] = [("", 100), (" (Glitter)", 180), (" (Holo)", 420), (" (Gold)", 1_500)];
const PICTURES: [&str; 40] = [
    "Lucky Cat",
    "Bomb Squirrel",
    "Rush Hour",
    "Empty Magazine",
    "Good Game",
    "Lost Sock",
    "Old Radio",
    "Hot Potato",
    "Silent Step",
    "Eco Round",
    "Broken Clock",
    "Toast",
    "Paper Plane",
    "Third Time",
    "Moth",
    "One Tap",
    "Night Owl",
    "Left Turn",
    "Cold Coffee",
    "Smoke Ring",
    "Pogo",
    "Sleeping Fox",
    "Traffic Cone",
    "Tea Break",
    "Blind Corner",
    "Rubber Duck",
    "Chess Horse",
    "Big Fish",
    "No Signal",
    "Sad Cactus",
    "Hourglass",
    "Match Point",
    "Anchor",
    "Snail Mail",
    "Loose Change",
    "Full Moon",
    "Jump Throw",
    "Pin Puller",
    "Spare Key",
    "Wrong Floor",
];
const PICTURE_FINISHES: [(&str, u64); 3] = [("", 100), (" (Foil)", 260), (" (Holo)", 340)];

const TEAM_PRICES: [Band; 2] = [Band::new(5, 4, 45), Band::new(1, 45, 900)];
const PICTURE_PRICES: [Band; 2] = [Band::new(4, 25, 180), Band::new(1, 180, 1_400)];

/// Returns all stickers: teams event by event, then pictures.
pub(super) fn designs() -> Vec<Design> {
    let random = &mut Random::from_part(RANDOM_PART);
    let mut stickers = Vec::new();
    for (event, team) in pairs(&EVENTS, &TEAMS) {
        let cents = price(random, &TEAM_PRICES);
        stickers.extend(TEAM_FINISHES.map(|(finish, percent)| {
            Design::single("sticker", format!("Sticker | {team}{finish} | {event}"), scaled(cents, percent))
        }));
    }
    for picture in PICTURES {
        let cents = price(random, &PICTURE_PRICES);
        stickers.extend(PICTURE_FINISHES.map(|(finish, percent)| {
            Design::single("sticker", format!("Sticker | {picture}{finish}"), scaled(cents, percent))
        }));
    }
    stickers
}
