//! Which addresses are public (specification 6.12.4), according to IANA's special-purpose registries (RFC 6890 and its
//! successors).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns whether an address is an ordinary address of the public internet.
///
/// No block of the registries counts as public, not even a globally reachable one. Those are anycast services, which
/// the nearest network answers. No endpoint has such an address, and the nearest network may be our own.
///
/// Of IPv6, only global unicast counts as public. Addresses that embed an IPv4 address (mapped, compatible,
/// translated, NAT64, 6to4, Teredo, ISATAP) never do, whatever they embed.
///
/// For NAT64 this is stricter than RFC 6052, whose well-known prefix `64:ff9b::/96` stands only for public IPv4
/// addresses (section 3.1). A NAT gateway of AWS translates private ones too. The prefix for local use,
/// `64:ff9b:1::/48` (RFC 8215), may embed an address at four places, and only its network knows at which. A network's
/// own prefix looks like any other address, so no translator with such a prefix may be where deliveries are sent from.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !SPECIAL_V4.iter().any(|block| block.contains(address)),
        IpAddr::V6(address) => {
            GLOBAL_UNICAST.contains(address)
                && !SPECIAL_V6.iter().any(|block| block.contains(address))
                && !is_isatap(address)
        }
    }
}

/// A block of addresses, all of which begin with the same bits: an address of the block, and the number of these bits,
/// which is at least 1.
struct AddressBlock<A>(A, u32);

impl AddressBlock<Ipv4Addr> {
    const fn contains(&self, address: Ipv4Addr) -> bool {
        (address.to_bits() ^ self.0.to_bits()) >> (32 - self.1) == 0
    }
}

impl AddressBlock<Ipv6Addr> {
    const fn contains(&self, address: Ipv6Addr) -> bool {
        (address.to_bits() ^ self.0.to_bits()) >> (128 - self.1) == 0
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u32) -> AddressBlock<Ipv4Addr> {
    AddressBlock(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(a: u16, b: u16, c: u16, prefix: u32) -> AddressBlock<Ipv6Addr> {
    AddressBlock(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), prefix)
}

const SPECIAL_V4: [AddressBlock<Ipv4Addr>; 18] = [
    v4(0, 0, 0, 0, 8),       // this network
    v4(10, 0, 0, 0, 8),      // private use
    v4(100, 64, 0, 0, 10),   // shared by carriers' NAT
    v4(127, 0, 0, 0, 8),     // loopback
    v4(169, 254, 0, 0, 16),  // link-local; cloud metadata
    v4(172, 16, 0, 0, 12),   // private use
    v4(192, 0, 0, 0, 24),    // IETF protocols
    v4(192, 0, 2, 0, 24),    // documentation
    v4(192, 31, 196, 0, 24), // AS112
    v4(192, 52, 193, 0, 24), // AMT
    v4(192, 88, 99, 0, 24),  // 6to4 relays
    v4(192, 168, 0, 0, 16),  // private use
    v4(192, 175, 48, 0, 24), // AS112
    v4(198, 18, 0, 0, 15),   // benchmarks
    v4(198, 51, 100, 0, 24), // documentation
    v4(203, 0, 113, 0, 24),  // documentation
    v4(224, 0, 0, 0, 4),     // multicast
    v4(240, 0, 0, 0, 4),     // reserved; broadcast
];

/// The only IPv6 block with public addresses. Outside it are `::/96` (unspecified, loopback, compatible), mapped and
/// translated addresses, both NAT64 prefixes, and discard-only, segment-routing, unique-local, link-local, site-local
/// and multicast addresses.
const GLOBAL_UNICAST: AddressBlock<Ipv6Addr> = v6(0x2000, 0, 0, 3);

const SPECIAL_V6: [AddressBlock<Ipv6Addr>; 5] = [
    v6(0x2001, 0, 0, 23),         // IETF protocols: Teredo, benchmarks, ORCHID and others
    v6(0x2001, 0xdb8, 0, 32),     // documentation
    v6(0x2002, 0, 0, 16),         // 6to4
    v6(0x2620, 0x4f, 0x8000, 48), // AS112
    v6(0x3fff, 0, 0, 20),         // documentation
];

/// Returns whether the interface identifier is `0:5efe:a.b.c.d` or `200:5efe:a.b.c.d` (RFC 5214, section 6.1).
const fn is_isatap(address: Ipv6Addr) -> bool {
    let [.., high, low, _, _] = address.segments();
    high & !0x0200 == 0 && low == 0x5efe
}

#[cfg(test)]
#[path = "public_tests.rs"]
mod tests;
