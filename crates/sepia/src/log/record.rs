//! One exchange as a line of the access log.
//!
//! `time client method target status bytes duration "Cache-Status" request-id [reason]`, separated
//! by single spaces. Whatever a peer chose is escaped, so that no request can forge a line, a
//! column or a terminal's escape sequence; and it is cut, so that no request can crowd out the
//! others.

use std::io::Write;
use std::net::SocketAddr;

use super::timestamp;
use crate::base::{Reason, limits};

/// What the log says about one exchange; borrows from the exchange, so that nothing is allocated.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// When the exchange began, in ms since the epoch.
    pub wall_ms: u64,
    /// The client; `None` on a unix socket.
    pub client: Option<SocketAddr>,
    /// The method as it was written; empty if there was none.
    pub method: &'a [u8],
    /// The target URI's authority; empty if there is none.
    pub authority: &'a [u8],
    /// The target URI's path and query; empty for CONNECT.
    pub path_query: &'a [u8],
    /// The final status; 0 if the client got no answer.
    pub status: u16,
    /// Bytes of content delivered.
    pub bytes: u64,
    /// From the head's first byte to the answer's last, in µs.
    pub duration_us: u64,
    /// The value of Cache-Status (RFC 9211); empty if there was none.
    pub cache_status: &'a [u8],
    /// The request's id; empty if there was none.
    pub request_id: &'a [u8],
    /// Why the exchange did not end well.
    pub reason: Option<Reason>,
}

/// Columns that no peer chooses: time, addresses, numbers, reason, spaces and quotes.
const FIXED_BYTES_MAX: usize = 320;
/// A byte takes at most this many when escaped.
const ESCAPED_BYTES_MAX: usize = 4;

impl Record<'_> {
    /// The most bytes that the line can take.
    pub(super) fn encoded_bytes_max(&self) -> usize {
        let parts =
            [self.method, self.authority, self.path_query, self.cache_status, self.request_id];
        let chosen: usize = parts.iter().map(|part| part.len().min(limits::LOG_PART_BYTES)).sum();
        FIXED_BYTES_MAX + ESCAPED_BYTES_MAX * chosen
    }

    /// Appends the line to a buffer with room for [`Record::encoded_bytes_max`]; `second` is the
    /// moment that the caller has formatted last.
    pub(super) fn encode(&self, out: &mut Vec<u8>, second: &mut Second) {
        out.extend_from_slice(second.text(self.wall_ms / 1_000));
        let mut fraction = *b".000Z ";
        timestamp::put(&mut fraction[1..4], self.wall_ms % 1_000);
        out.extend_from_slice(&fraction);
        encode_client(out, self.client);
        out.push(b' ');
        encode_part(out, self.method, Spaces::Escaped);
        out.push(b' ');
        self.encode_target(out);
        out.push(b' ');
        wire::encode_decimal(out, u64::from(self.status));
        out.push(b' ');
        wire::encode_decimal(out, self.bytes);
        out.push(b' ');
        wire::encode_decimal(out, self.duration_us);
        out.extend_from_slice(b"us \"");
        encode_part(out, self.cache_status, Spaces::Kept);
        out.extend_from_slice(b"\" ");
        encode_part(out, self.request_id, Spaces::Escaped);
        if let Some(reason) = self.reason {
            out.push(b' ');
            out.extend_from_slice(reason.token().as_bytes());
        }
        out.push(b'\n');
    }

    fn encode_target(&self, out: &mut Vec<u8>) {
        if self.authority.is_empty() {
            return encode_part(out, self.path_query, Spaces::Escaped);
        }
        if !self.path_query.is_empty() {
            out.extend_from_slice(b"http://");
        }
        encode_part(out, self.authority, Spaces::Escaped);
        if !self.path_query.is_empty() {
            encode_part(out, self.path_query, Spaces::Escaped);
        }
    }
}

/// The last formatted second: thousands of lines share it.
pub(super) struct Second {
    seconds: u64,
    text: [u8; 19],
}

impl Second {
    pub(super) fn new() -> Self {
        Second { seconds: 0, text: timestamp::encode_second(0) }
    }

    fn text(&mut self, seconds: u64) -> &[u8] {
        if self.seconds != seconds {
            *self = Second { seconds, text: timestamp::encode_second(seconds) };
        }
        &self.text
    }
}

fn encode_client(out: &mut Vec<u8>, client: Option<SocketAddr>) {
    match client {
        None => out.extend_from_slice(b"unix"),
        Some(SocketAddr::V4(address)) => {
            for (index, octet) in address.ip().octets().into_iter().enumerate() {
                if index > 0 {
                    out.push(b'.');
                }
                wire::encode_decimal(out, u64::from(octet));
            }
            out.push(b':');
            wire::encode_decimal(out, u64::from(address.port()));
        }
        // Writing to a vector cannot fail.
        Some(address) => drop(write!(out, "{address}")),
    }
}

/// Whether a space is part of a column or would end it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spaces {
    Kept,
    Escaped,
}

/// Appends what a peer may have chosen; `-` for nothing, `…` at the end of what was cut.
fn encode_part(out: &mut Vec<u8>, part: &[u8], spaces: Spaces) {
    if part.is_empty() {
        return out.push(b'-');
    }
    let shown = &part[..part.len().min(limits::LOG_PART_BYTES)];
    for &byte in shown {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'!'..=b'~' => out.push(byte),
            b' ' if spaces == Spaces::Kept => out.push(byte),
            _ => {
                let digit = |nibble: u8| b"0123456789abcdef"[usize::from(nibble)];
                out.extend_from_slice(&[b'\\', b'x', digit(byte >> 4), digit(byte & 15)]);
            }
        }
    }
    if shown.len() < part.len() {
        out.extend_from_slice("…".as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::{Record, Second};
    use crate::base::{Reason, limits};

    fn record() -> Record<'static> {
        Record {
            wall_ms: 1_795_163_400_123,
            client: Some(([127, 0, 0, 1], 51_234).into()),
            method: b"GET",
            authority: b"host",
            path_query: b"/path",
            status: 200,
            bytes: 1_234,
            duration_us: 56,
            cache_status: b"sepia; hit; ttl=59",
            request_id: b"5f3a-17",
            reason: None,
        }
    }

    fn line(record: &Record<'_>) -> String {
        let mut out = Vec::new();
        record.encode(&mut out, &mut Second::new());
        assert!(out.len() <= record.encoded_bytes_max(), "{} bytes", out.len());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_ordinary_line() {
        assert_eq!(
            line(&record()),
            "2026-11-20T08:30:00.123Z 127.0.0.1:51234 GET http://host/path 200 1234 56us \
             \"sepia; hit; ttl=59\" 5f3a-17\n"
        );
    }

    #[test]
    fn a_refused_request_without_a_head() {
        let refused = Record {
            client: None,
            method: b"",
            authority: b"",
            path_query: b"",
            status: 431,
            bytes: 0,
            cache_status: b"",
            request_id: b"",
            reason: Some(Reason::HeadTooLarge),
            ..record()
        };
        assert_eq!(
            line(&refused),
            "2026-11-20T08:30:00.123Z unix - - 431 0 56us \"-\" - head-too-large\n"
        );
    }

    #[test]
    fn connect_and_asterisk_have_no_scheme() {
        let connect = Record { authority: b"host:443", path_query: b"", ..record() };
        assert!(line(&connect).contains(" host:443 200 "));
        let asterisk = Record { authority: b"", path_query: b"*", ..record() };
        assert!(line(&asterisk).contains(" * 200 "));
    }

    #[test]
    fn a_peer_cannot_forge_a_line_or_a_column() {
        let forged = Record {
            method: b"GET\r\n",
            path_query: b"/a b\"c\\d\x1b[2J\xff",
            cache_status: b"s; detail=\"x\"\n",
            client: Some("[::1]:9".parse().unwrap()),
            ..record()
        };
        assert_eq!(
            line(&forged),
            "2026-11-20T08:30:00.123Z [::1]:9 GET\\x0d\\x0a \
             http://host/a\\x20b\\\"c\\\\d\\x1b[2J\\xff 200 1234 56us \
             \"s; detail=\\\"x\\\"\\x0a\" 5f3a-17\n"
        );
    }

    #[test]
    fn long_parts_are_cut() {
        let long = vec![0xff; 100_000];
        let flood = Record {
            method: &long,
            authority: &long,
            path_query: &long,
            cache_status: &long,
            request_id: &long,
            ..record()
        };
        assert!(flood.encoded_bytes_max() <= limits::LOG_LOCAL_BYTES);
        assert!(line(&flood).contains('…'));
    }
}
