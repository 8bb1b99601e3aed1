//! Request targets and authorities (RFC 9112 §3.2, RFC 3986 §3).
//!
//! Reads and judges, changes nothing: no byte is decoded, folded or removed, because two readers
//! that normalise differently are two different cache keys, or a smuggled request.
//!
//! One departure from the grammar, because strictness there would refuse working sites: what
//! the URL Standard lets browsers send unencoded is accepted. In a path these are `[ ] |`; in a
//! query also `{ } ^ \` and the backtick, and a `%` without two hexadecimal digits (`?q=100%`).
//! None of them can be taken for a delimiter of the message or of the target. Refused
//! everywhere: white space, control bytes, bytes from 0x80, `"`, `<`, `>`, and the fragment's
//! `#`, which never belongs into a request.

use std::net::Ipv6Addr;
use std::str;

use memchr::memchr;

use crate::method::Method;
use crate::refusal::Refusal;

/// What the request line asks for, in the form it was written (RFC 9112 §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// `/path?query`, to an origin server or gateway (§3.2.1).
    Origin {
        /// Path and query, from the first `/`.
        path_query: &'a [u8],
    },
    /// `http://host/path?query`, to a proxy (§3.2.2).
    Absolute {
        /// The scheme as written: compare it without case.
        scheme: &'a [u8],
        /// Host and port.
        authority: Authority<'a>,
        /// Path and query as written: may be empty, and may begin with `?`.
        path_query: &'a [u8],
    },
    /// `host:port`, of CONNECT (§3.2.3).
    Authority(Authority<'a>),
    /// `*`, of OPTIONS (§3.2.4).
    Asterisk,
}

impl<'a> Target<'a> {
    /// Reads the target of a request with the given method.
    ///
    /// # Errors
    /// [`Refusal::BadTarget`] if it has none of the four forms, or not the form that the method
    /// asks for: CONNECT takes authority-form alone, and only OPTIONS takes the asterisk.
    pub fn decode(method: Method, bytes: &'a [u8]) -> Result<Target<'a>, Refusal> {
        let target = match (method, bytes) {
            (Method::Connect, _) => decode_authority_form(bytes),
            (Method::Options, b"*") => Some(Target::Asterisk),
            (_, [b'/', ..]) => is_path_query(bytes).then_some(Target::Origin { path_query: bytes }),
            _ => decode_absolute_form(bytes),
        };
        target.ok_or(Refusal::BadTarget)
    }
}

/// A port must be there: CONNECT has no default one (RFC 9110 §9.3.6).
fn decode_authority_form(bytes: &[u8]) -> Option<Target<'_>> {
    let authority = Authority::decode(bytes)?;
    authority.port.is_some().then_some(Target::Authority(authority))
}

fn decode_absolute_form(bytes: &[u8]) -> Option<Target<'_>> {
    let (scheme, rest) = bytes.split_at(memchr(b':', bytes)?);
    let rest = rest.strip_prefix(b"://")?;
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    let (authority, path_query) = rest.split_at(end);
    let authority = Authority::decode(authority)?;
    (is_scheme(scheme) && is_path_query(path_query)).then_some(Target::Absolute {
        scheme,
        authority,
        path_query,
    })
}

/// RFC 3986 §3.1.
fn is_scheme(bytes: &[u8]) -> bool {
    let is_inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    bytes.first().is_some_and(u8::is_ascii_alphabetic) && bytes.iter().all(is_inner)
}

/// Host and optional port (RFC 9110 §7.2, RFC 3986 §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authority<'a> {
    /// The host as written, an IPv6 address with its brackets; never empty.
    pub host: &'a [u8],
    /// The port; `None` if it was left out or empty, which means the scheme's own.
    pub port: Option<u16>,
}

impl<'a> Authority<'a> {
    /// Reads `host` or `host:port`; `None` for anything else. User information is refused
    /// (RFC 9110 §4.2.4), and so are an empty host (§4.2.1), port 0, which names no service, and
    /// IPvFuture, which nobody has defined.
    #[must_use]
    pub fn decode(bytes: &'a [u8]) -> Option<Authority<'a>> {
        let host_len = match bytes.first()? {
            b'[' => memchr(b']', bytes)? + 1,
            _ => memchr(b':', bytes).unwrap_or(bytes.len()),
        };
        let (host, rest) = bytes.split_at(host_len);
        let port = match rest {
            [] | [b':'] => None,
            [b':', digits @ ..] => Some(decode_port(digits)?),
            _ => return None,
        };
        is_host(host).then_some(Authority { host, port })
    }
}

fn decode_port(digits: &[u8]) -> Option<u16> {
    let port = digits.iter().try_fold(0u16, |port, byte| {
        let digit = byte.is_ascii_digit().then(|| u16::from(byte - b'0'))?;
        port.checked_mul(10)?.checked_add(digit)
    });
    port.filter(|&port| port != 0)
}

fn is_host(host: &[u8]) -> bool {
    if let Some(literal) = host.strip_prefix(b"[") {
        let address = literal.strip_suffix(b"]").and_then(|bytes| str::from_utf8(bytes).ok());
        return address.is_some_and(|address| address.parse::<Ipv6Addr>().is_ok());
    }
    !host.is_empty() && has_only(host, HOST) && has_whole_escapes(host)
}

const HOST: u8 = 1;
const PATH: u8 = 2;
const QUERY: u8 = 4;

/// Which bytes may stand where (RFC 3986 §3.2.2 reg-name, §3.3, §3.4, and what browsers send).
const ALLOWED: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 128u8 {
        if byte.is_ascii_alphanumeric() {
            table[byte as usize] = HOST | PATH | QUERY;
        }
        byte += 1;
    }
    table = allow(table, b"-._~!$&'()*+,;=%", HOST | PATH | QUERY);
    table = allow(table, b"/:@[]|", PATH | QUERY);
    allow(table, b"?{}^\\`", QUERY)
};

const fn allow(mut table: [u8; 256], bytes: &[u8], places: u8) -> [u8; 256] {
    let mut at = 0;
    while at < bytes.len() {
        table[bytes[at] as usize] = places;
        at += 1;
    }
    table
}

fn has_only(bytes: &[u8], place: u8) -> bool {
    bytes.iter().all(|&byte| ALLOWED[byte as usize] & place != 0)
}

/// Whether two hexadecimal digits follow every `%` (RFC 3986 §2.1).
fn has_whole_escapes(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some(at) = memchr(b'%', rest) {
        match rest.get(at + 1..at + 3) {
            Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => rest = &rest[at + 3..],
            _ => return false,
        }
    }
    true
}

/// Whether `bytes` is a path, empty or absolute, with an optional query.
fn is_path_query(bytes: &[u8]) -> bool {
    let (path, query) = bytes.split_at(memchr(b'?', bytes).unwrap_or(bytes.len()));
    has_only(path, PATH) && has_whole_escapes(path) && has_only(query, QUERY)
}
