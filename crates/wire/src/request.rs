//! Request heads: bytes to [`RequestHead`], strictly (RFC 9112 §2, §3, §6).
//!
//! A request that two parsers could read in two ways is refused here, before anything is decided
//! or forwarded: one reading of the line ends, one target, one Host, one framing. The order of
//! calls is [`decode_request`] until [`Decoded::Complete`], then [`RequestSpans::head`]. The
//! spans hold places alone, so the buffer may move between calls, and one value serves all
//! requests of a session: decoding with it does not allocate once it has grown.

use memchr::{memchr, memrchr};

use crate::field::{FieldSpans, Fields};
use crate::framing::{Framing, Version, decode_request_framing, wants_keep_alive};
use crate::head::{
    Decoded, HeadLimits, HeadParts, HeadScan, Sender, Span, check_text, decode_field_lines,
    place_in, slice, span,
};
use crate::known::Known;
use crate::method::Method;
use crate::refusal::Refusal;
use crate::target::{Authority, Target};
use crate::token::is_token;

/// Places of the parts of a request head, and how far an incomplete one has been scanned.
#[derive(Clone, Debug, Default)]
pub struct RequestSpans {
    scan: HeadScan,
    fields: FieldSpans,
    line: Option<LineSpans>,
}

/// What is known once the head is complete.
#[derive(Clone, Debug)]
struct LineSpans {
    head: Span,
    method_name: Span,
    target: Span,
    form: TargetForm,
    host: Option<HostSpan>,
    method: Method,
    version: Version,
    framing: Framing,
    keep_alive: bool,
}

#[derive(Clone, Debug)]
enum TargetForm {
    Origin,
    Absolute { scheme: Span, path_query: Span },
    Authority,
    Asterisk,
}

#[derive(Clone, Debug)]
struct HostSpan {
    host: Span,
    port: Option<u16>,
}

/// Reads the head of the request that begins at `bytes[0]`; what follows the head is not looked
/// at. On [`Decoded::Partial`] call again with the same spans and the same bytes, grown. A
/// complete or refused head ends the series: the next call begins a new one.
///
/// # Errors
/// A [`Refusal`]: answer with its status and close.
pub fn decode_request(
    bytes: &[u8],
    spans: &mut RequestSpans,
    limits: &HeadLimits,
) -> Result<Decoded, Refusal> {
    if spans.line.is_some() {
        spans.clear();
    }
    let decoded = decode_from_scan(bytes, spans, limits);
    if decoded.is_err() {
        spans.clear();
    }
    decoded
}

fn decode_from_scan(
    bytes: &[u8],
    spans: &mut RequestSpans,
    limits: &HeadLimits,
) -> Result<Decoded, Refusal> {
    let Some(parts) = spans.scan.handle_bytes(bytes, limits, Sender::Client)? else {
        return Ok(Decoded::Partial);
    };
    let head_len = parts.section.end;
    spans.line = Some(decode_parts(bytes, parts, &mut spans.fields)?);
    Ok(Decoded::Complete { head_len })
}

fn decode_parts(
    bytes: &[u8],
    parts: HeadParts,
    spans: &mut FieldSpans,
) -> Result<LineSpans, Refusal> {
    let line = &bytes[parts.start_line.clone()];
    let (method_name, target_bytes, version) = split_request_line(line)?;
    let method = Method::from_name(method_name);
    let target = Target::decode(method, target_bytes)?;
    decode_field_lines(bytes, parts.section.clone(), parts.field_lines, spans)?;
    let fields = spans.of(bytes);
    let host = decode_host(version, fields)?;
    let place = |part: &[u8]| span(place_in(bytes, part));
    let (form, authority) = match target {
        Target::Origin { .. } => (TargetForm::Origin, host),
        Target::Asterisk => (TargetForm::Asterisk, host),
        Target::Authority(authority) => (TargetForm::Authority, Some(authority)),
        Target::Absolute { scheme, authority, path_query } => {
            let (scheme, path_query) = (place(scheme), place(path_query));
            (TargetForm::Absolute { scheme, path_query }, Some(authority))
        }
    };
    Ok(LineSpans {
        head: span(parts.start_line.start..parts.section.end),
        method_name: place(method_name),
        target: place(target_bytes),
        form,
        host: authority
            .map(|authority| HostSpan { host: place(authority.host), port: authority.port }),
        method,
        version,
        framing: decode_request_framing(method, version, fields)?,
        keep_alive: wants_keep_alive(version, fields),
    })
}

/// Method, target and version, one space between them and nothing else (RFC 9112 §3).
fn split_request_line(line: &[u8]) -> Result<(&[u8], &[u8], Version), Refusal> {
    check_text(line)?;
    let method_end = memchr(b' ', line).ok_or(Refusal::BadMethod)?;
    let method = &line[..method_end];
    if !is_token(method) {
        return Err(Refusal::BadMethod);
    }
    let rest = &line[method_end + 1..];
    let target_end = memrchr(b' ', rest).ok_or(Refusal::BadVersion)?;
    let version = Version::decode(&rest[target_end + 1..])?;
    Ok((method, &rest[..target_end], version))
}

/// Exactly one valid Host on HTTP/1.1, at most one on HTTP/1.0 (RFC 9112 §3.2). This holds for
/// the absolute-form too, whose own host wins.
fn decode_host(version: Version, fields: Fields<'_>) -> Result<Option<Authority<'_>>, Refusal> {
    let mut hosts = fields.all(Known::Host);
    let Some(host) = hosts.next() else {
        return if version == Version::Http10 { Ok(None) } else { Err(Refusal::MissingHost) };
    };
    if hosts.next().is_some() {
        return Err(Refusal::SeveralHosts);
    }
    Authority::decode(host).map(Some).ok_or(Refusal::BadHost)
}

impl RequestSpans {
    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.scan = HeadScan::default();
        self.fields.clear();
        self.line = None;
    }

    /// The complete head over `bytes`, which are those that were decoded, or a copy of them.
    ///
    /// # Panics
    /// If the last call of [`decode_request`] did not return [`Decoded::Complete`].
    #[must_use]
    pub fn head<'a>(&'a self, bytes: &'a [u8]) -> RequestHead<'a> {
        let line = self.line.as_ref().expect("decode_request has returned Complete");
        RequestHead { line, fields: self.fields.of(bytes), bytes }
    }
}

/// A complete request head: cheap to copy, borrowed from spans and bytes.
#[derive(Clone, Copy)]
pub struct RequestHead<'a> {
    line: &'a LineSpans,
    fields: Fields<'a>,
    bytes: &'a [u8],
}

impl<'a> RequestHead<'a> {
    /// The method as it was written.
    #[must_use]
    pub fn method_bytes(self) -> &'a [u8] {
        slice(self.bytes, &self.line.method_name)
    }

    /// The method.
    #[must_use]
    pub const fn method(self) -> Method {
        self.line.method
    }

    /// The request target as it was written.
    #[must_use]
    pub fn request_target(self) -> &'a [u8] {
        slice(self.bytes, &self.line.target)
    }

    /// The request target in its form (RFC 9112 §3.2).
    #[must_use]
    pub fn target(self) -> Target<'a> {
        match (&self.line.form, self.authority()) {
            (TargetForm::Absolute { scheme, path_query }, Some(authority)) => Target::Absolute {
                scheme: slice(self.bytes, scheme),
                authority,
                path_query: slice(self.bytes, path_query),
            },
            (TargetForm::Authority, Some(authority)) => Target::Authority(authority),
            (TargetForm::Asterisk, _) => Target::Asterisk,
            _ => Target::Origin { path_query: self.request_target() },
        }
    }

    /// The version.
    #[must_use]
    pub const fn version(self) -> Version {
        self.line.version
    }

    /// The field lines.
    #[must_use]
    pub const fn fields(self) -> Fields<'a> {
        self.fields
    }

    /// Where the content ends. Never [`Framing::UntilClose`].
    #[must_use]
    pub const fn framing(self) -> Framing {
        self.line.framing
    }

    /// The host that is meant: the target's own if it has one, else that of Host; `None` for a
    /// request of HTTP/1.0 with neither (RFC 9112 §3.3).
    #[must_use]
    pub fn authority(self) -> Option<Authority<'a>> {
        let HostSpan { host, port } = self.line.host.as_ref()?;
        Some(Authority { host: slice(self.bytes, host), port: *port })
    }

    /// Path and query as an origin server is asked for them: `/` for an absolute-form without
    /// both, `*` for the asterisk and for OPTIONS of a bare absolute-form (RFC 9112 §3.2.4),
    /// empty for CONNECT. It begins with `?` if an absolute-form has a query and no path:
    /// [`encode_request_line`](crate::encode_request_line) then adds the `/`.
    #[must_use]
    pub fn path_query(self) -> &'a [u8] {
        match (self.target(), self.line.method) {
            (Target::Absolute { path_query: b"", .. }, Method::Options) | (Target::Asterisk, _) => {
                b"*"
            }
            (Target::Absolute { path_query: b"", .. }, _) => b"/",
            (Target::Absolute { path_query, .. } | Target::Origin { path_query }, _) => path_query,
            (Target::Authority(_), _) => b"",
        }
    }

    /// Whether the client wants the connection to go on (RFC 9112 §9.3). A forward proxy must
    /// not grant it to HTTP/1.0; a gateway may.
    #[must_use]
    pub const fn keep_alive(self) -> bool {
        self.line.keep_alive
    }

    /// Whether the client waits for 100 before its content (RFC 9110 §10.1.1); never with
    /// HTTP/1.0.
    #[must_use]
    pub fn expects_continue(self) -> bool {
        self.line.version == Version::Http11 && self.fields.lists(Known::Expect, b"100-continue")
    }

    /// The head as it was received, from the request line to the empty line.
    #[must_use]
    pub fn bytes(self) -> &'a [u8] {
        slice(self.bytes, &self.line.head)
    }
}
