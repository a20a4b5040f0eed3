//! Ids that are the same on every machine: UUIDs made from names, and shuffled numbers.

use types::ids::Id8;
use uuid::Uuid;

/// See `demo_user`.
pub(super) const DEMO_USER: Uuid = Uuid::from_u128(0x3e0b_1a8c_1f7a_4b58_8f0b_6c3d_2a1e_9f00);

const NAMESPACE: Uuid = Uuid::from_u128(0xd2a6_1f0b_77c4_4e0e_9b1d_5a0c_3e8f_4411);

/// Returns the version 5 UUID of the thing of this kind and name.
pub(super) fn uuid<T: From<Uuid>>(kind: &str, name: &str) -> T {
    Uuid::new_v5(&NAMESPACE, format!("{kind}/{name}").as_bytes()).into()
}

/// Returns the short id of the listing with this number. The odd factor makes this a permutation of all short ids, so
/// no two numbers share one.
pub(super) const fn id8(number: u32) -> Id8 {
    Id8::from_bits(number.wrapping_mul(0x9E37_79B1).wrapping_add(0x7F4A_7C15))
}

/// Turns a name into part of a URL: lower-case letters and digits, with one hyphen for whatever lies between them.
/// Apostrophes and characters outside ASCII are left out.
pub(super) fn slug(name: &str) -> String {
    let mut slug = String::with_capacity(name.len());
    for symbol in name.chars() {
        if symbol.is_ascii_alphanumeric() {
            slug.push(symbol.to_ascii_lowercase());
        } else if symbol.is_ascii() && symbol != '\'' && !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.truncate(slug.trim_end_matches('-').len());
    slug
}

#[cfg(test)]
mod tests {
    use super::slug;

    #[test]
    fn a_slug_holds_nothing_to_escape() {
        assert_eq!(slug("★ StatTrak™ Karambit | Doppler"), "stattrak-karambit-doppler");
        assert_eq!(slug("Charm | Li'l Anvil (Holo)"), "charm-lil-anvil-holo");
    }
}
