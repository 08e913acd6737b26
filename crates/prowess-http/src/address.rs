//! Classification of addresses: the only place that distinguishes the internet from everything
//! else.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kind of network that an address belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NetworkKind {
    /// The internet.
    Public,
    /// This machine or a private network; with a description.
    Internal(&'static str),
    /// A special-purpose network that no name should resolve to; with a description.
    Special(&'static str),
}

/// A block of addresses with the same leading bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AddressBlock {
    pub(crate) base: IpAddr,
    pub(crate) bits: u32,
}

impl NetworkKind {
    /// Classifies an address. An IPv4 address written as IPv6 counts as IPv4.
    pub(crate) fn of(address: IpAddr) -> Self {
        let address = address.to_canonical();
        if let Some((_, kind)) = NETWORKS.iter().find(|it| it.0.contains(address)) {
            return *kind;
        }
        match address {
            IpAddr::V4(_) => Self::Public,
            IpAddr::V6(address) if is_isatap(address) => Self::Special(TRANSITION),
            IpAddr::V6(_) if GLOBAL.contains(address) => Self::Public,
            IpAddr::V6(_) => Self::Special("a reserved address"),
        }
    }
}

impl AddressBlock {
    /// Parses a network such as `10.0.0.0/8`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (base, bits) = text.split_once('/')?;
        let single = Self::single(base.parse().ok()?);
        let bits = bits.parse().ok().filter(|it| *it <= single.bits)?;
        Some(Self { bits, ..single })
    }

    /// Returns the block of one address.
    pub(crate) fn single(base: IpAddr) -> Self {
        Self { base, bits: if base.is_ipv4() { 32 } else { 128 } }
    }

    /// Whether every address in it is on the internet.
    pub(crate) fn is_public(self) -> bool {
        let is_special = NETWORKS.iter().any(|(it, _)| {
            self.contains(it.base) && self.bits <= it.bits || it.contains(self.base)
        });
        let is_allocated =
            self.base.is_ipv4() || (GLOBAL.contains(self.base) && self.bits >= GLOBAL.bits);
        NetworkKind::of(self.base) == NetworkKind::Public && is_allocated && !is_special
    }

    pub(crate) fn contains(self, address: IpAddr) -> bool {
        match (self.base, address) {
            (IpAddr::V4(base), IpAddr::V4(address)) => {
                (base.to_bits() ^ address.to_bits()).leading_zeros() >= self.bits
            }
            (IpAddr::V6(base), IpAddr::V6(address)) => {
                (base.to_bits() ^ address.to_bits()).leading_zeros() >= self.bits
            }
            _ => false,
        }
    }
}

const METADATA: &str = "a cloud metadata service";
const PRIVATE: &str = "a private network";
const LOOPBACK: &str = "this machine";
const LINK: &str = "a link-local address";
const TRANSITION: &str = "an address that embeds another";
const DOCUMENTATION: &str = "an address reserved for documentation";
const MULTICAST: &str = "a multicast address";
const RESERVED: &str = "a reserved address";

/// The IPv6 addresses of the internet that were allocated so far.
const GLOBAL: AddressBlock = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// Networks that are not the internet; the first that contains an address applies.
const NETWORKS: &[(AddressBlock, NetworkKind)] = {
    use NetworkKind::{Internal, Special};
    &[
        (v4([169, 254, 169, 254], 32), Special(METADATA)),
        (v4([169, 254, 170, 2], 32), Special(METADATA)),
        (v4([100, 100, 100, 200], 32), Special(METADATA)),
        (v4([168, 63, 129, 16], 32), Special(METADATA)),
        (v4([192, 0, 0, 192], 32), Special(METADATA)),
        (v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0], 32), Special(METADATA)),
        (v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128), Special(METADATA)),
        (v4([10, 0, 0, 0], 8), Internal(PRIVATE)),
        (v4([172, 16, 0, 0], 12), Internal(PRIVATE)),
        (v4([192, 168, 0, 0], 16), Internal(PRIVATE)),
        (v4([100, 64, 0, 0], 10), Internal("a provider's shared network")),
        (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), Internal(PRIVATE)),
        (v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), Internal(PRIVATE)),
        (v4([127, 0, 0, 0], 8), Internal(LOOPBACK)),
        (v6([0, 0, 0, 0, 0, 0, 0, 1], 128), Internal(LOOPBACK)),
        // Connecting to the unspecified address connects to this machine.
        (v4([0, 0, 0, 0], 8), Special(LOOPBACK)),
        (v6([0, 0, 0, 0, 0, 0, 0, 0], 128), Special(LOOPBACK)),
        (v4([169, 254, 0, 0], 16), Special(LINK)),
        (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), Special(LINK)),
        (v4([192, 0, 2, 0], 24), Special(DOCUMENTATION)),
        (v4([198, 51, 100, 0], 24), Special(DOCUMENTATION)),
        (v4([203, 0, 113, 0], 24), Special(DOCUMENTATION)),
        (v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), Special(DOCUMENTATION)),
        (v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), Special(DOCUMENTATION)),
        (v4([198, 18, 0, 0], 15), Special("an address reserved for benchmarks")),
        (v4([192, 0, 0, 0], 24), Special(RESERVED)),
        (v4([192, 88, 99, 0], 24), Special(TRANSITION)),
        (v4([224, 0, 0, 0], 4), Special(MULTICAST)),
        (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), Special(MULTICAST)),
        (v4([240, 0, 0, 0], 4), Special(RESERVED)),
        // NAT64 (both), 6to4; Teredo and benchmarks are among the blocks reserved by the IETF.
        (v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96), Special(TRANSITION)),
        (v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48), Special(TRANSITION)),
        (v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16), Special(TRANSITION)),
        (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32), Special(TRANSITION)),
        (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), Special(RESERVED)),
        // An IPv4-compatible IPv6 address, with zeros before it.
        (v6([0, 0, 0, 0, 0, 0, 0, 0], 96), Special(TRANSITION)),
    ]
};

const fn v4(base: [u8; 4], bits: u32) -> AddressBlock {
    let [a, b, c, d] = base;
    AddressBlock { base: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits }
}

const fn v6(base: [u16; 8], bits: u32) -> AddressBlock {
    let [a, b, c, d, e, f, g, h] = base;
    AddressBlock { base: IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)), bits }
}

/// Whether it is an ISATAP address: IPv4 after `0:5efe` or `200:5efe`, in any network.
fn is_isatap(address: Ipv6Addr) -> bool {
    let [_, _, _, _, kind, mark, _, _] = address.segments();
    mark == 0x5efe && matches!(kind, 0 | 0x200)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(address: &str) -> NetworkKind {
        NetworkKind::of(address.parse().unwrap())
    }

    #[test]
    fn the_internet_is_public() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "93.184.216.34",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.255.255",
            "172.32.0.1",
            "192.0.1.1",
            "192.167.255.255",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2001:4860:4860::8888",
            "2001:200::1",
            "2a00:1450:4001:82b::200e",
            "::ffff:8.8.8.8",
        ] {
            assert_eq!(kind(address), NetworkKind::Public, "{address}");
        }
    }

    #[test]
    fn what_a_host_of_ones_own_can_have_is_internal() {
        for address in [
            "127.0.0.1",
            "127.255.255.254",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "100.127.255.255",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "fc00::1",
            "fd12:3456::1",
            "fec0::1",
        ] {
            assert!(
                matches!(kind(address), NetworkKind::Internal(_)),
                "{address}: {:?}",
                kind(address)
            );
        }
    }

    #[test]
    fn everything_else_is_special() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "169.254.1.1",
            "169.254.169.254",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::7f00:1",
            "::ffff:169.254.169.254",
            "::ffff:0:127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "3fff::1",
            "4000::1",
            "5f00::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "fe80::1",
            "fe80::5efe:10.0.0.1",
            "::5efe:10.0.0.1",
            "2606:4700::5efe:7f00:1",
            "2606:4700::200:5efe:7f00:1",
            "ff02::1",
        ] {
            assert!(
                matches!(kind(address), NetworkKind::Special(_)),
                "{address}: {:?}",
                kind(address)
            );
        }
    }
}
