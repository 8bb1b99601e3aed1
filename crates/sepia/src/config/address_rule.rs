//! Which addresses a forward proxy may be sent to: a page in somebody's browser must not reach
//! the machines behind the proxy by a name that it controls (DNS rebinding).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use wire::Authority;

use super::Forward;
use super::settings::contains;

/// What of a resolved name may be connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AddressRule {
    /// Every address: the administrator named it (a gateway's origin), or the client is on this
    /// machine and wrote the address itself.
    Any,
    /// No loopback or private address, except in these networks.
    Public(Vec<IpNet>),
}

impl AddressRule {
    /// The rule for a target that the client chose.
    pub(crate) fn of_forward(
        forward: &Forward,
        authority: Authority<'_>,
        peer: Option<IpAddr>,
    ) -> Self {
        let written = is_literal(authority.host) || is_localhost(authority.host);
        if written && is_on_this_machine(peer) {
            return AddressRule::Any;
        }
        AddressRule::Public(forward.allow_private.clone())
    }

    /// Whether a target is refused as it is written, before any name is resolved or response
    /// looked up: what the store holds for a client of this machine is not for others.
    pub(crate) fn refuses_written(
        forward: &Forward,
        authority: Authority<'_>,
        peer: Option<IpAddr>,
    ) -> bool {
        const LOCALHOST: [IpAddr; 2] =
            [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        if is_on_this_machine(peer) {
            return false;
        }
        let networks = &forward.allow_private;
        match literal(authority.host) {
            Some(address) => !is_public_or_in(networks, address),
            None => {
                is_localhost(authority.host)
                    && !LOCALHOST.iter().any(|address| is_public_or_in(networks, *address))
            }
        }
    }

    /// Whether a connection to `address` is allowed.
    pub(crate) fn allows(&self, address: IpAddr) -> bool {
        match self {
            AddressRule::Any => true,
            AddressRule::Public(networks) => is_public_or_in(networks, address),
        }
    }
}

fn is_public_or_in(networks: &[IpNet], address: IpAddr) -> bool {
    !is_private(address.to_canonical()) || contains(networks, address)
}

/// A client on this machine: a loopback address, or none at all.
fn is_on_this_machine(peer: Option<IpAddr>) -> bool {
    peer.is_none_or(|address| address.to_canonical().is_loopback())
}

fn is_localhost(host: &[u8]) -> bool {
    let host = host.strip_suffix(b".").unwrap_or(host);
    host.eq_ignore_ascii_case(b"localhost")
}

fn is_literal(host: &[u8]) -> bool {
    literal(host).is_some()
}

/// The address that a host literally is.
pub(crate) fn literal(host: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(host).ok()?;
    match text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        Some(inner) => inner.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => text.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
    }
}

/// Loopback, private, link-local, shared, unspecified and multicast addresses: nothing that a
/// public name has any business to resolve to.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [first, second, ..] = v4.octets();
            v4.is_loopback()
                || v4.is_private()
                || v4.is_link_local()
                || v4.is_multicast()
                || v4.is_broadcast()
                || first == 0
                || (first == 100 && (64..128).contains(&second))
                || (first == 198 && (18..20).contains(&second))
                || first >= 240
        }
        IpAddr::V6(v6) => {
            v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_multicast()
                || v6.is_unique_local()
                || v6.is_unicast_link_local()
                || embedded_v4(v6).is_some_and(|v4| is_private(IpAddr::V4(v4)))
        }
    }
}

/// The IPv4 address inside 6to4 (RFC 3056) and NAT64 (RFC 6052) addresses.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let octets = address.octets();
    let at = match octets {
        [0x20, 0x02, ..] => 2,
        [0x00, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, ..] => 12,
        _ => return None,
    };
    Some(Ipv4Addr::new(octets[at], octets[at + 1], octets[at + 2], octets[at + 3]))
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use wire::Authority;

    use super::AddressRule;
    use crate::config::Forward;

    fn rule(host: &str, peer: &str, allowed: &[&str]) -> AddressRule {
        let networks = allowed.iter().map(|net| net.parse().expect("a network")).collect();
        let forward = Forward { connect_ports: Vec::new(), allow_private: networks };
        let authority = Authority { host: host.as_bytes(), port: None };
        AddressRule::of_forward(&forward, authority, Some(peer.parse().expect("an address")))
    }

    fn allows(rule: &AddressRule, address: &str) -> bool {
        rule.allows(address.parse::<IpAddr>().expect("an address"))
    }

    #[test]
    fn a_name_never_leads_to_a_private_address() {
        let rule = rule("rebind.example", "127.0.0.1", &[]);
        let private = [
            "127.0.0.1",
            "10.1.2.3",
            "192.168.0.1",
            "172.16.9.9",
            "169.254.1.1",
            "0.0.0.0",
            "100.64.0.1",
            "::1",
            "::",
            "fd00::1",
            "fe80::1",
            "::ffff:127.0.0.1",
            "2002:7f00:1::",
            "64:ff9b::a00:1",
            "224.0.0.1",
            "255.255.255.255",
        ];
        for address in private {
            assert!(!allows(&rule, address), "{address}");
        }
        for address in ["93.184.216.34", "2606:2800:220:1::1", "172.32.0.1"] {
            assert!(allows(&rule, address), "{address}");
        }
    }

    #[test]
    fn a_literal_address_is_for_clients_on_this_machine() {
        for host in ["127.0.0.1", "10.0.0.7", "[::1]", "localhost", "LOCALHOST."] {
            assert_eq!(rule(host, "127.0.0.1", &[]), AddressRule::Any, "{host}");
            assert!(!allows(&rule(host, "192.0.2.1", &[]), "127.0.0.1"), "{host}");
        }
    }

    #[test]
    fn what_others_may_not_reach_is_refused_before_the_store_is_asked() {
        let rows = [
            ("127.0.0.1", "127.0.0.1", "", false),
            ("localhost", "::1", "", false),
            ("127.0.0.1", "192.0.2.1", "", true),
            ("[::1]", "192.0.2.1", "", true),
            ("localhost.", "192.0.2.1", "", true),
            ("localhost", "192.0.2.1", "127.0.0.0/8", false),
            ("10.0.0.7", "192.0.2.1", "10.0.0.0/8", false),
            ("10.0.0.7", "192.0.2.1", "127.0.0.0/8", true),
            ("93.184.216.34", "192.0.2.1", "", false),
            ("example.org", "192.0.2.1", "", false),
        ];
        for (host, peer, allowed, refuses) in rows {
            let allow_private = allowed.parse().into_iter().collect();
            let forward = Forward { connect_ports: Vec::new(), allow_private };
            let authority = Authority { host: host.as_bytes(), port: None };
            let peer = Some(peer.parse().expect("an address"));
            let is_refused = AddressRule::refuses_written(&forward, authority, peer);
            assert_eq!(is_refused, refuses, "{host} for {peer:?} with {allowed:?}");
        }
    }

    #[test]
    fn an_administrator_may_name_networks() {
        let rule = rule("intranet.example", "192.0.2.1", &["10.0.0.0/8"]);
        assert!(allows(&rule, "10.1.1.1"));
        assert!(allows(&rule, "::ffff:10.1.1.1"));
        assert!(!allows(&rule, "192.168.1.1"));
    }
}
