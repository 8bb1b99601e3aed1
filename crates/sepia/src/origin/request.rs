//! The request as it goes to an origin: what concerns the client's connection is left behind,
//! what concerns ours is added. RFC 9110 sections 7.6 and 7.8, RFC 7239, RFC 9112 section 3.2.

use std::net::IpAddr;

use wire::{Authority, Framing, Known, RequestHead, encode_field};

/// What the origin is told beside the client's own fields.
#[derive(Clone, Copy)]
pub(crate) struct Relay<'a> {
    pub(crate) request: RequestHead<'a>,
    /// What stands in the request line.
    pub(crate) path_query: &'a [u8],
    /// The Host field's value.
    pub(crate) host: &'a [u8],
    pub(crate) via_line: &'a str,
    /// The client's request id if it is trusted, else ours.
    pub(crate) request_id: &'a str,
    /// Conditional fields of a validation; they replace the client's own conditions.
    pub(crate) validation: Option<&'a [u8]>,
    /// Whether the client's If-None-Match and If-Modified-Since are left out, so that the whole
    /// response comes and can be stored; they are evaluated here against it.
    pub(crate) drops_conditions: bool,
    /// Forwarding fields, for a gateway.
    pub(crate) forwarding: Option<Forwarding<'a>>,
    /// Whether the protocol switch that the client asks for is passed on.
    pub(crate) asks_upgrade: bool,
    /// Max-Forwards, one less than it came.
    pub(crate) max_forwards: Option<u32>,
    /// Whether Expect goes on to the origin.
    pub(crate) passes_expect: bool,
}

/// What a gateway says of its client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Forwarding<'a> {
    pub(crate) peer: Option<IpAddr>,
    /// The peer is a proxy of ours: what it says of the client before it is kept.
    pub(crate) is_trusted: bool,
    pub(crate) authority: Option<Authority<'a>>,
}

/// Writes the whole request head.
pub(crate) fn encode_request(relay: &Relay<'_>, out: &mut Vec<u8>) {
    let request = relay.request;
    wire::encode_request_line(out, request.method_bytes(), relay.path_query);
    encode_field(out, b"Host", relay.host);
    for field in request.fields().iter() {
        if passes(relay, field) {
            encode_field(out, field.name, field.value);
        }
    }
    match request.framing() {
        Framing::Length(length) => {
            out.extend_from_slice(b"Content-Length: ");
            wire::encode_decimal(out, length);
            out.extend_from_slice(b"\r\n");
        }
        Framing::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        Framing::None | Framing::UntilClose => {}
    }
    if let Some(validation) = relay.validation {
        out.extend_from_slice(validation);
    }
    if let Some(max_forwards) = relay.max_forwards {
        out.extend_from_slice(b"Max-Forwards: ");
        wire::encode_decimal(out, u64::from(max_forwards));
        out.extend_from_slice(b"\r\n");
    }
    if let Some(forwarding) = &relay.forwarding {
        encode_forwarding(forwarding, out);
    }
    encode_field(out, b"X-Request-ID", relay.request_id.as_bytes());
    out.extend_from_slice(relay.via_line.as_bytes());
    encode_connection(relay, out);
    out.extend_from_slice(b"\r\n");
}

/// Whether a field of the client goes on (RFC 9110 section 7.6.1). Connection cannot name fields
/// that every recipient needs: dropping them on such a hint would change what is asked.
fn passes(relay: &Relay<'_>, field: wire::Field<'_>) -> bool {
    let fields = relay.request.fields();
    match field.known {
        Some(
            Known::Host
            | Known::Connection
            | Known::ProxyConnection
            | Known::KeepAlive
            | Known::Te
            | Known::TransferEncoding
            | Known::ContentLength
            | Known::Upgrade
            | Known::Http2Settings
            | Known::ProxyAuthorization
            | Known::XRequestId,
        ) => false,
        Some(Known::Expect) => relay.passes_expect,
        Some(Known::MaxForwards) if relay.max_forwards.is_some() => false,
        Some(Known::IfNoneMatch | Known::IfModifiedSince)
            if relay.drops_conditions || relay.validation.is_some() =>
        {
            false
        }
        // A validation is about the whole response; the range is cut from it here.
        Some(Known::Range | Known::IfRange) if relay.validation.is_some() => false,
        Some(
            Known::Forwarded
            | Known::XForwardedFor
            | Known::XForwardedHost
            | Known::XForwardedProto
            | Known::XForwardedPort
            | Known::XRealIp,
        ) if relay.forwarding.is_some_and(|forwarding| !forwarding.is_trusted) => false,
        known => {
            !caching::may_be_taken_away(known)
                || !fields.has(Known::Connection)
                || !fields.lists(Known::Connection, field.name)
        }
    }
}

/// Says who asked, from the connection itself (RFC 7239). A trusted peer's own list is kept and
/// the peer is appended to it; host and protocol stay what the trusted peer said.
fn encode_forwarding(forwarding: &Forwarding<'_>, out: &mut Vec<u8>) {
    let node = match forwarding.peer {
        Some(IpAddr::V4(v4)) => v4.to_string(),
        Some(IpAddr::V6(v6)) => format!("\"[{v6}]\""),
        None => "unknown".to_owned(),
    };
    let mut forwarded = format!("for={node}");
    if let Some(authority) = forwarding.authority.filter(|_| !forwarding.is_trusted) {
        let host = host_text(authority);
        forwarded.push_str(&format!(";host=\"{host}\";proto=http"));
        encode_field(out, b"X-Forwarded-Host", host.as_bytes());
        encode_field(out, b"X-Forwarded-Proto", b"http");
    }
    encode_field(out, b"Forwarded", forwarded.as_bytes());
    if let Some(peer) = forwarding.peer {
        encode_field(out, b"X-Forwarded-For", peer.to_string().as_bytes());
    }
}

/// `host` or `host:port` as the client wrote it.
pub(crate) fn host_text(authority: Authority<'_>) -> String {
    let host = String::from_utf8_lossy(authority.host);
    match authority.port {
        Some(port) => format!("{host}:{port}"),
        None => host.into_owned(),
    }
}

/// Our own Connection options; the connection itself is kept by default in HTTP/1.1.
fn encode_connection(relay: &Relay<'_>, out: &mut Vec<u8>) {
    let fields = relay.request.fields();
    let upgrade = fields.first(Known::Upgrade).filter(|_| relay.asks_upgrade);
    let wants_trailers = fields.lists(Known::Te, b"trailers");
    let options: &[u8] = match (upgrade.is_some(), wants_trailers) {
        (true, true) => b"Upgrade, TE",
        (true, false) => b"Upgrade",
        (false, true) => b"TE",
        (false, false) => return,
    };
    encode_field(out, b"Connection", options);
    if let Some(protocols) = upgrade {
        encode_field(out, b"Upgrade", protocols);
    }
    if wants_trailers {
        encode_field(out, b"TE", b"trailers");
    }
}
