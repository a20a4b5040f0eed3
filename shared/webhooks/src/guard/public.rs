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
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The registries once more, by first and last addresses. Of the space outside `2000::/3`, the blocks that have a name.
    const NOT_PUBLIC: &[(&str, &str, &str)] = &[
        ("0.0.0.0", "0.255.255.255", "this network"),
        ("10.0.0.0", "10.255.255.255", "private use"),
        ("100.64.0.0", "100.127.255.255", "carrier-grade NAT"),
        ("127.0.0.0", "127.255.255.255", "loopback"),
        ("169.254.0.0", "169.254.255.255", "link-local"),
        ("172.16.0.0", "172.31.255.255", "private use"),
        ("192.0.0.0", "192.0.0.255", "IETF protocols"),
        ("192.0.2.0", "192.0.2.255", "TEST-NET-1"),
        ("192.31.196.0", "192.31.196.255", "AS112"),
        ("192.52.193.0", "192.52.193.255", "AMT"),
        ("192.88.99.0", "192.88.99.255", "6to4 relays"),
        ("192.168.0.0", "192.168.255.255", "private use"),
        ("192.175.48.0", "192.175.48.255", "AS112"),
        ("198.18.0.0", "198.19.255.255", "benchmarks"),
        ("198.51.100.0", "198.51.100.255", "TEST-NET-2"),
        ("203.0.113.0", "203.0.113.255", "TEST-NET-3"),
        ("224.0.0.0", "239.255.255.255", "multicast"),
        ("240.0.0.0", "255.255.255.255", "reserved and broadcast"),
        ("::", "::ffff:ffff", "unspecified, loopback, IPv4-compatible"),
        ("::ffff:0.0.0.0", "::ffff:255.255.255.255", "IPv4-mapped"),
        ("::ffff:0:0.0.0.0", "::ffff:0:255.255.255.255", "IPv4-translated"),
        ("64:ff9b::", "64:ff9b::ffff:ffff", "NAT64"),
        ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "NAT64, local use"),
        ("100::", "100::ffff:ffff:ffff:ffff", "discard-only"),
        ("100:0:0:1::", "100:0:0:1:ffff:ffff:ffff:ffff", "dummy"),
        ("2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff", "Teredo"),
        ("2001:1::", "2001:1:ffff:ffff:ffff:ffff:ffff:ffff", "port control, TURN"),
        ("2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff", "benchmarks"),
        ("2001:3::", "2001:3:ffff:ffff:ffff:ffff:ffff:ffff", "AMT"),
        ("2001:4:112::", "2001:4:112:ffff:ffff:ffff:ffff:ffff", "AS112"),
        ("2001:10::", "2001:1f:ffff:ffff:ffff:ffff:ffff:ffff", "ORCHID"),
        ("2001:20::", "2001:2f:ffff:ffff:ffff:ffff:ffff:ffff", "ORCHIDv2"),
        ("2001:30::", "2001:3f:ffff:ffff:ffff:ffff:ffff:ffff", "drones"),
        ("2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "IETF protocols"),
        ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "documentation"),
        ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "6to4"),
        ("2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff", "AS112"),
        ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "documentation"),
        ("5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "segment routing"),
        ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "unique local"),
        ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "link-local"),
        ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "site-local"),
        ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "multicast"),
        ("::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "before global unicast"),
        ("4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "behind global unicast"),
    ];

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// Judges an address by the table above and by the bytes of the interface identifier.
    fn expected(address: IpAddr) -> bool {
        let listed = NOT_PUBLIC.iter().any(|(first, last, _)| {
            address.is_ipv4() == ip(first).is_ipv4() && (ip(first)..=ip(last)).contains(&address)
        });
        let isatap = match address {
            IpAddr::V4(_) => false,
            IpAddr::V6(address) => {
                [[0, 0, 0x5e, 0xfe], [2, 0, 0x5e, 0xfe]].contains(&address.octets()[8..12].try_into().unwrap())
            }
        };
        !listed && !isatap
    }

    /// Returns the address that lies `by` places further on, if there is one.
    fn moved(address: IpAddr, by: i128) -> Option<IpAddr> {
        match address {
            IpAddr::V4(v4) => {
                let bits = i128::from(v4.to_bits()) + by;
                u32::try_from(bits).ok().map(|bits| Ipv4Addr::from_bits(bits).into())
            }
            IpAddr::V6(v6) => {
                let bits = v6.to_bits().checked_add_signed(by);
                bits.map(|bits| Ipv6Addr::from_bits(bits).into())
            }
        }
    }

    fn middle(first: IpAddr, last: IpAddr) -> IpAddr {
        match (first, last) {
            (IpAddr::V4(a), IpAddr::V4(b)) => Ipv4Addr::from_bits(a.to_bits() + (b.to_bits() - a.to_bits()) / 2).into(),
            (IpAddr::V6(a), IpAddr::V6(b)) => Ipv6Addr::from_bits(a.to_bits() + (b.to_bits() - a.to_bits()) / 2).into(),
            _ => panic!("{first} {last}"),
        }
    }

    #[test]
    fn every_block_ends_where_the_registry_says() {
        for (first, last, name) in NOT_PUBLIC {
            let (first, last) = (ip(first), ip(last));
            for inside in [first, middle(first, last), last] {
                assert!(!is_public(inside), "{name}: {inside}");
            }
            for outside in [moved(first, -1), moved(last, 1)].into_iter().flatten() {
                assert_eq!(is_public(outside), expected(outside), "beside {name}: {outside}");
            }
        }
    }

    /// The neighbours of blocks, written out. Without them, a mistake made in both tables would go unnoticed.
    #[test]
    fn ordinary_addresses_are_public() {
        for address in "
        1.0.0.0 1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0
        169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.0.1.255 192.0.3.0
        192.31.195.255 192.31.197.0 192.52.192.255 192.52.194.0 192.88.98.255 192.88.100.0 192.167.255.255
        192.169.0.0 192.175.47.255 192.175.49.0 198.17.255.255 198.20.0.0 198.51.99.255 198.51.101.0
        203.0.112.255 203.0.114.0 223.255.255.255 2000:: 2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff 2001:200::
        2001:4860:4860::8888 2001:db7:ffff:ffff:ffff:ffff:ffff:ffff 2001:db9:: 2003:: 2606:4700:4700::1111
        2620:4f:7fff:ffff:ffff:ffff:ffff:ffff 2620:4f:8001:: 2a00:1450:4001:80b::200e
        3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff 3fff:1000:: 3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
        2a00:1450::100:5efe:808:808 2a00:1450::5eff:808:808
    "
        .split_whitespace()
        {
            assert!(is_public(ip(address)), "{address}");
        }
    }

    /// What a VPC adds to a function's network. Each line is one kind of route.
    #[test]
    fn nothing_that_only_a_private_network_leads_to_is_public() {
        for (addresses, route) in [
            ("10.0.0.2 172.31.0.2 192.168.255.254 100.64.0.2 169.254.169.253 fd00:ec2::253", "the VPC's resolver"),
            ("169.254.169.123 fd00:ec2::123", "the VPC's clock"),
            ("10.255.255.255 172.16.0.1 172.31.255.255 192.168.0.0 100.64.0.0 100.127.255.255", "machines, IPv4"),
            ("fc00::1 fd12:3456:789a::1 fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "machines, IPv6"),
            ("169.254.0.1 169.254.76.1 169.254.79.129 169.254.100.1 169.254.255.254", "inside Lambda"),
            ("fe80::1 fe80::a9fe:a9fe febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "link-local, IPv6"),
            ("198.18.0.1 198.19.255.254", "AWS's own networks"),
            ("224.0.0.1 239.255.255.250 255.255.255.255 ff02::1 ff05::1:3", "multicast and broadcast"),
            ("::ffff:10.0.0.2 ::ffff:169.254.169.254 ::10.0.0.2 ::ffff:0:10.0.0.2", "embedded as they are"),
            ("64:ff9b::10.0.0.2 64:ff9b::172.31.0.2 64:ff9b::169.254.169.254 64:ff9b::8.8.8.8", "NAT64"),
            // 10.0.0.2 behind a prefix of 48, 56, 64 and 96 bits, as in section 2.2 of RFC 6052.
            ("64:ff9b:1:a00:0:200:: 64:ff9b:1:a:0:2:: 64:ff9b:1:0:a:0:200:0 64:ff9b:1::10.0.0.2", "NAT64, local use"),
            ("2002:a00:2::1 2002:a9fe:a9fe::1 2002:c0a8:1::1", "6to4"),
            // The client's address is stored with all bits inverted: f5ff:fffd is 10.0.0.2.
            ("2001:0:a00:2::1 2001:0:808:808:0:0:f5ff:fffd 2001:0:808:808::5601:5601", "Teredo"),
            ("2600:1f18::5efe:10.0.0.2 2600:1f18::5efe:8.8.8.8 2600:1f18::200:5efe:169.254.169.254", "ISATAP"),
        ] {
            for address in addresses.split_whitespace() {
                assert!(!is_public(ip(address)), "{route}: {address}");
            }
        }
    }

    fn near_a_border() -> impl Strategy<Value = IpAddr> {
        let borders: Vec<IpAddr> = NOT_PUBLIC.iter().flat_map(|(first, last, _)| [ip(first), ip(last)]).collect();
        (prop::sample::select(borders), -300_i128..300).prop_filter_map("past the end", |(at, by)| moved(at, by))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_096))]

        #[test]
        fn any_ipv4_address_is_judged_by_the_registry(bits: u32) {
            let address = Ipv4Addr::from_bits(bits).into();
            prop_assert_eq!(is_public(address), expected(address));
        }

        #[test]
        fn any_ipv6_address_is_judged_by_the_registry(bits: u128, global: bool) {
            let bits = if global { bits >> 3 | 1 << 125 } else { bits };
            let address = Ipv6Addr::from_bits(bits).into();
            prop_assert_eq!(is_public(address), expected(address));
        }

        #[test]
        fn any_address_near_a_border_is_judged_by_the_registry(address in near_a_border()) {
            prop_assert_eq!(is_public(address), expected(address));
        }
    }
}
