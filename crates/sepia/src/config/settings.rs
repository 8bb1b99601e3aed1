//! The configuration as the hops use it: compiled once, immutable, swapped as a whole.

use std::net::IpAddr;

use wire::Version;

use super::{Config, HostHeader, Listener, Role};

/// What a worker needs of the configuration, in the shape that the hot path wants.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) config: Config,
    /// One per listener, in the order in which they were opened. A site keeps its place when its
    /// listener closes: sessions that it accepted go on.
    pub(crate) sites: Vec<Site>,
    /// Our name in Via.
    pub(crate) pseudonym: String,
    /// The whole Via lines that are added to what passes, for HTTP/1.0 and 1.1.
    via_lines: [String; 2],
}

/// One listener with its role.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) listener: Listener,
    /// First part of each cache key: sites with the same origins share what is stored.
    pub(crate) namespace: Vec<u8>,
    /// Whether it accepts connections.
    pub(crate) is_open: bool,
}

impl Settings {
    pub(crate) fn new(config: Config, pseudonym: &str) -> Self {
        let sites = config.listeners.iter().map(Site::new).collect();
        Settings {
            config,
            sites,
            pseudonym: pseudonym.to_owned(),
            via_lines: ["1.0", "1.1"].map(|version| format!("Via: {version} {pseudonym}\r\n")),
        }
    }

    /// The line to add to a message that came in this version (RFC 9110 section 7.6.3).
    pub(crate) fn via_line(&self, received: Version) -> &str {
        match received {
            Version::Http10 => &self.via_lines[0],
            Version::Http11 => &self.via_lines[1],
        }
    }

    /// The settings after a reload. Listeners of the same address keep their place, new ones are
    /// added behind, those that are gone accept no more; the name in Via stays.
    pub(crate) fn after(&self, config: Config) -> Self {
        let mut sites: Vec<Site> =
            self.sites.iter().map(|site| Site { is_open: false, ..site.clone() }).collect();
        for listener in &config.listeners {
            let is_same = |(old, _): &(&Site, &mut Site)| {
                old.is_open && old.listener.address == listener.address
            };
            match self.sites.iter().zip(&mut sites).find(is_same) {
                Some((_, site)) => *site = Site::new(listener),
                None => sites.push(Site::new(listener)),
            }
        }
        let pseudonym = config.pseudonym.clone().unwrap_or_else(|| self.pseudonym.clone());
        Settings { sites, ..Settings::new(config, &pseudonym) }
    }

    /// Whether what this peer says of others is believed; `None` is a unix socket's.
    pub(crate) fn trusts(&self, peer: Option<IpAddr>) -> bool {
        peer.is_some_and(|address| contains(&self.config.trust, address))
    }
}

impl Site {
    fn new(listener: &Listener) -> Self {
        let namespace = match &listener.role {
            Role::Forward(_) => "forward".to_owned(),
            Role::Reverse(reverse) => {
                let origins: Vec<String> = reverse.to.iter().map(ToString::to_string).collect();
                let host = match &reverse.host_header {
                    HostHeader::Keep | HostHeader::Origin => "",
                    HostHeader::Value(value) => value,
                };
                format!("reverse {} {host}", origins.join(","))
            }
        };
        Site { listener: listener.clone(), namespace: namespace.into_bytes(), is_open: true }
    }
}

/// Whether one of `networks` has the address; IPv4 inside IPv6 counts as IPv4.
pub(crate) fn contains(networks: &[ipnet::IpNet], address: IpAddr) -> bool {
    let address = address.to_canonical();
    networks.iter().any(|network| network.contains(&address))
}
