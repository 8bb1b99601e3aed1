//! Addresses as people write them: where to listen, where an origin server is, which ports.
//!
//! Every refusal says what to write instead, because these are the texts that a newcomer types
//! first.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// A text that is no address; displays as what to write instead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AddressError(String);

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for AddressError {}

fn refuse<T>(message: impl Into<String>) -> Result<T, AddressError> {
    Err(AddressError(message.into()))
}

/// Where clients connect: `127.0.0.1:8080`, `[::1]:8080`, `:8080` (loopback) or `unix:/path`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ListenAddress {
    /// An IP address and a port; port 0 is any free one.
    Tcp(SocketAddr),
    /// The path of a unix socket.
    Unix(PathBuf),
}

/// The longest path that fits a unix socket's address, its closing NUL included.
const UNIX_PATH_BYTES: usize = 108;

impl FromStr for ListenAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if let Some(path) = text.strip_prefix("unix:") {
            if !path.starts_with('/') {
                return refuse(
                    "a unix socket needs an absolute path, such as unix:/run/sepia.sock",
                );
            }
            if path.len() >= UNIX_PATH_BYTES {
                return refuse("the path of a unix socket has at most 107 bytes");
            }
            return Ok(ListenAddress::Unix(PathBuf::from(path)));
        }
        if let Some(rest) = text.strip_prefix("http://") {
            return refuse(format!("write it without http://: {}", rest.trim_end_matches('/')));
        }
        // A port alone is the loopback's: nobody should face the world for want of five letters.
        let port = text.strip_prefix(':').unwrap_or(text);
        if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) {
            return match port.parse() {
                Ok(port) => Ok(ListenAddress::Tcp((Ipv4Addr::LOCALHOST, port).into())),
                Err(_) => refuse("a port is a number up to 65535"),
            };
        }
        match text.parse() {
            Ok(address) => Ok(ListenAddress::Tcp(address)),
            Err(_) => refuse(listen_advice(text)),
        }
    }
}

/// What is wrong with an address that is neither a unix path nor an IP address with a port.
fn listen_advice(text: &str) -> String {
    if text.parse::<Ipv4Addr>().is_ok() {
        return format!("the port is missing: write {text}:8080");
    }
    if text.trim_matches(['[', ']']).parse::<std::net::Ipv6Addr>().is_ok() {
        return format!("the port is missing: write [{}]:8080", text.trim_matches(['[', ']']));
    }
    if let Some(port) = text.strip_prefix("*:") {
        return format!("write 0.0.0.0:{port} or [::]:{port} for all addresses");
    }
    if let Some(port) = text.strip_prefix("localhost:") {
        return format!("an IP address is needed: write 127.0.0.1:{port}");
    }
    "write an IP address with a port (127.0.0.1:8080, [::1]:8080) or unix:/path".into()
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenAddress::Tcp(address) => write!(f, "{address}"),
            ListenAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl ListenAddress {
    /// Whether both would bind the same place. Port 0 is a new port each time and never conflicts.
    #[must_use]
    pub fn conflicts_with(&self, other: &ListenAddress) -> bool {
        match (self, other) {
            (ListenAddress::Unix(one), ListenAddress::Unix(two)) => one == two,
            (ListenAddress::Tcp(one), ListenAddress::Tcp(two)) => {
                let same_ip = one.ip() == two.ip()
                    || is_every_address(one.ip(), two.ip())
                    || is_every_address(two.ip(), one.ip());
                one.port() == two.port() && one.port() != 0 && same_ip
            }
            _ => false,
        }
    }
}

/// Whether the first address stands for all of the second's family.
fn is_every_address(every: IpAddr, one: IpAddr) -> bool {
    every.is_unspecified() && every.is_ipv4() == one.is_ipv4()
}

/// An origin server's host and port, from `http://127.0.0.1:3000`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct OriginAddress {
    /// Name or address, IPv6 with its brackets, in lower case.
    pub host: String,
    /// The port; 80 if none was written.
    pub port: u16,
}

impl FromStr for OriginAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let rest = match text.split_once("://") {
            // Schemes have no case (RFC 3986 §3.1).
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("https") => {
                return refuse("TLS to origins is not available yet; use http://");
            }
            Some((scheme, _)) => {
                return refuse(format!("unknown scheme `{scheme}`; use http://"));
            }
            None if text.is_empty() => {
                return refuse("an address is missing; write such as http://127.0.0.1:3000");
            }
            None => return refuse(format!("the scheme is missing: write http://{text}")),
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if !matches!(path, "" | "/") {
            let whole = format!("http://{authority}");
            return refuse(format!("a path is not possible here yet; write {whole}"));
        }
        decode_authority(authority)
    }
}

/// The host and port of an authority without user and password (RFC 3986 §3.2).
fn decode_authority(authority: &str) -> Result<OriginAddress, AddressError> {
    if authority.contains('@') {
        return refuse("user and password are not possible in an origin's address");
    }
    if !authority.starts_with('[') && authority.matches(':').count() > 1 {
        return refuse("write an IPv6 address in brackets, such as http://[::1]:3000");
    }
    let end = if authority.starts_with('[') {
        authority.find(']').map_or(authority.len(), |end| end + 1)
    } else {
        authority.find(':').unwrap_or(authority.len())
    };
    let (host, port) = authority.split_at(end);
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => 80,
        Some(port) => match port.parse() {
            Ok(port) if port != 0 => port,
            _ => return refuse("a port is a number from 1 to 65535"),
        },
        None => return refuse("write an IPv6 address in brackets, such as http://[::1]:3000"),
    };
    if !is_host(host) {
        return refuse("the host is missing or invalid; write such as http://127.0.0.1:3000");
    }
    Ok(OriginAddress { host: host.to_ascii_lowercase(), port })
}

/// A name of letters, digits, dots and hyphens, or an address.
fn is_host(host: &str) -> bool {
    if let Some(inner) = host.strip_prefix('[') {
        let address = inner.strip_suffix(']').and_then(|text| text.parse().ok());
        return address.is_some_and(|address: IpAddr| address.is_ipv6());
    }
    let is_name_byte = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    !host.is_empty() && host.len() <= 253 && host.bytes().all(is_name_byte)
}

impl fmt::Display for OriginAddress {
    /// As an authority: without the port if it is the scheme's default (RFC 9110 §4.2.3).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            80 => f.write_str(&self.host),
            port => write!(f, "{}:{port}", self.host),
        }
    }
}

/// A port, or a range of them with both ends: `443`, `8443-8450`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PortRange {
    /// The lowest port.
    pub first: u16,
    /// The highest port.
    pub last: u16,
}

impl PortRange {
    /// The form that the JSON Schema accepts, as a regular expression (ECMA-262).
    pub const PATTERN: &str = r"^[0-9]{1,5}(-[0-9]{1,5})?$";

    /// Whether the port lies in the range.
    #[must_use]
    pub const fn contains(self, port: u16) -> bool {
        self.first <= port && port <= self.last
    }
}

impl FromStr for PortRange {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (first.trim().parse(), last.trim().parse()) {
            (Ok(0), _) => refuse("a port is a number from 1 to 65535"),
            (Ok(first), Ok(last)) if first <= last => Ok(PortRange { first, last }),
            (Ok(first), Ok(last)) => {
                refuse(format!("the range is backwards: write {last}-{first}"))
            }
            _ => refuse("write a port (443) or a range of ports (8443-8450), up to 65535"),
        }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ListenAddress, OriginAddress, PortRange};

    #[test]
    fn listen_addresses() {
        let cases = [
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("[::1]:8080", "[::1]:8080"),
            (":8080", "127.0.0.1:8080"),
            ("8080", "127.0.0.1:8080"),
            ("0.0.0.0:0", "0.0.0.0:0"),
            ("unix:/run/sepia.sock", "unix:/run/sepia.sock"),
        ];
        for (text, shown) in cases {
            let address: ListenAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), shown);
            assert_eq!(shown.parse(), Ok(address), "the shown form parses back");
        }
    }

    #[test]
    fn listen_advice() {
        let general = "write an IP address with a port (127.0.0.1:8080, [::1]:8080) or unix:/path";
        let cases = [
            ("127.0.0.1", "the port is missing: write 127.0.0.1:8080"),
            ("::1", "the port is missing: write [::1]:8080"),
            ("*:8080", "write 0.0.0.0:8080 or [::]:8080 for all addresses"),
            ("localhost:8080", "an IP address is needed: write 127.0.0.1:8080"),
            ("http://127.0.0.1:8080/", "write it without http://: 127.0.0.1:8080"),
            ("70000", "a port is a number up to 65535"),
            (
                "unix:sepia.sock",
                "a unix socket needs an absolute path, such as unix:/run/sepia.sock",
            ),
            ("example", general),
            ("", general),
        ];
        for (text, advice) in cases {
            assert_eq!(text.parse::<ListenAddress>().unwrap_err().to_string(), advice, "{text}");
        }
        let long = format!("unix:/{}", "x".repeat(107));
        assert!(long.parse::<ListenAddress>().is_err());
    }

    #[test]
    fn conflicts() {
        let cases = [
            ("127.0.0.1:80", "127.0.0.1:80", true),
            ("0.0.0.0:80", "127.0.0.1:80", true),
            ("127.0.0.1:80", "0.0.0.0:80", true),
            ("[::]:80", "127.0.0.1:80", false),
            ("127.0.0.1:80", "127.0.0.2:80", false),
            ("127.0.0.1:0", "127.0.0.1:0", false),
            ("unix:/a", "unix:/a", true),
            ("unix:/a", "unix:/b", false),
        ];
        for (one, two, conflict) in cases {
            let (one, two) = (one.parse::<ListenAddress>().unwrap(), two.parse().unwrap());
            assert_eq!(one.conflicts_with(&two), conflict, "{one} {two}");
        }
    }

    #[test]
    fn origin_addresses() {
        let cases = [
            ("http://127.0.0.1:3000", "127.0.0.1:3000"),
            ("http://127.0.0.1:3000/", "127.0.0.1:3000"),
            ("http://Example.COM", "example.com"),
            ("HTTP://a", "a"),
            ("http://[::1]:3000", "[::1]:3000"),
            ("http://[::1]", "[::1]"),
        ];
        for (text, shown) in cases {
            assert_eq!(text.parse::<OriginAddress>().unwrap().to_string(), shown);
        }
    }

    #[test]
    fn origin_advice() {
        let host = "the host is missing or invalid; write such as http://127.0.0.1:3000";
        let port = "a port is a number from 1 to 65535";
        let cases = [
            ("https://a", "TLS to origins is not available yet; use http://"),
            ("127.0.0.1:3000", "the scheme is missing: write http://127.0.0.1:3000"),
            ("ftp://a", "unknown scheme `ftp`; use http://"),
            ("http://a:1/x", "a path is not possible here yet; write http://a:1"),
            ("http://a?x", "a path is not possible here yet; write http://a"),
            ("http://u:p@a", "user and password are not possible in an origin's address"),
            ("", "an address is missing; write such as http://127.0.0.1:3000"),
            ("http://::1:80", "write an IPv6 address in brackets, such as http://[::1]:3000"),
            ("http://", host),
            ("http://a b", host),
            ("http://[1.2.3.4]:80", host),
            ("http://a:0", port),
            ("http://a:70000", port),
            ("http://[::1]x", "write an IPv6 address in brackets, such as http://[::1]:3000"),
        ];
        for (text, advice) in cases {
            assert_eq!(text.parse::<OriginAddress>().unwrap_err().to_string(), advice, "{text}");
        }
    }

    #[test]
    fn port_ranges() {
        let range: PortRange = "8443-8450".parse().unwrap();
        assert!(range.contains(8443) && range.contains(8450) && !range.contains(8451));
        assert_eq!(range.to_string(), "8443-8450");
        assert_eq!("443".parse::<PortRange>().unwrap().to_string(), "443");
        for wrong in ["0", "", "x", "65536", "1-", "-1", "1-2-3"] {
            assert!(wrong.parse::<PortRange>().is_err(), "{wrong}");
        }
        let backwards = "9-5".parse::<PortRange>().unwrap_err().to_string();
        assert_eq!(backwards, "the range is backwards: write 5-9");
    }
}
