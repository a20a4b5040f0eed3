//! Builds names from words. A design's name has two words, and there are enough to use each name once.

const FIRST_WORDS: [&str; 40] = [
    "Amber",
    "Arctic",
    "Ashen",
    "Auric",
    "Bitter",
    "Blazing",
    "Brass",
    "Cobalt",
    "Copper",
    "Crimson",
    "Drifting",
    "Dusty",
    "Electric",
    "Emerald",
    "Fallen",
    "Feral",
    "Frosted",
    "Gilded",
    "Hollow",
    "Indigo",
    "Iron",
    "Jagged",
    "Lunar",
    "Marble",
    "Midnight",
    "Molten",
    "Neon",
    "Obsidian",
    "Paper",
    "Phantom",
    "Quiet",
    "Rusted",
    "Scarlet",
    "Silent",
    "Solar",
    "Static",
    "Toxic",
    "Turquoise",
    "Velvet",
    "Wild",
];

const SECOND_WORDS: [&str; 36] = [
    "Anthem",
    "Bloom",
    "Canyon",
    "Cascade",
    "Cipher",
    "Circuit",
    "Cobra",
    "Comet",
    "Current",
    "Dynasty",
    "Eclipse",
    "Ember",
    "Falcon",
    "Fracture",
    "Garden",
    "Grove",
    "Harvest",
    "Heron",
    "Jackal",
    "Labyrinth",
    "Lantern",
    "Mantis",
    "Mirage",
    "Monolith",
    "Oracle",
    "Orchid",
    "Pulse",
    "Raven",
    "Relic",
    "Requiem",
    "Ritual",
    "Serpent",
    "Signal",
    "Sonata",
    "Tide",
    "Vortex",
];

/// The number of names.
pub(super) const NAME_COUNT: usize = FIRST_WORDS.len() * SECOND_WORDS.len();

/// Shares no factor with the number of names, so every name comes up before any comes again.
const STRIDE: usize = 577;

/// Returns the name with this number. Numbers below [`NAME_COUNT`] have different names, and those of neighbouring
/// numbers are unlike each other.
pub(super) fn name(number: usize) -> String {
    let place = number * STRIDE % NAME_COUNT;
    format!("{} {}", FIRST_WORDS[place / SECOND_WORDS.len()], SECOND_WORDS[place % SECOND_WORDS.len()])
}

/// Combines each on the left with each on the right.
pub(super) fn pairs<'a>(left: &'a [&'a str], right: &'a [&'a str]) -> impl Iterator<Item = (&'a str, &'a str)> {
    left.iter().flat_map(move |left| right.iter().map(move |right| (*left, *right)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{NAME_COUNT, name};

    #[test]
    fn no_name_comes_twice() {
        assert_eq!((0..NAME_COUNT).map(name).collect::<HashSet<_>>().len(), NAME_COUNT);
    }
}
