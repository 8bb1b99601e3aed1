//! Response heads: bytes to [`ResponseHead`], as leniently as RFC 9112 asks of a proxy.
//!
//! Repaired in place, and counted: LF alone at the end of a line (§2.2), white space before a
//! colon (§5.1), folded values (§5.2). Refused: everything that would let an origin smuggle a
//! second response, such as CR alone, NUL, and lengths that differ. A contradiction that §6.3
//! lets a proxy survive is marked by [`ResponseHead::ambiguous_length`].

use memchr::memchr;

use crate::field::{FieldSpans, Fields};
use crate::framing::{Framing, Version, decode_response_framing, wants_keep_alive};
use crate::head::{
    Decoded, HeadLimits, HeadParts, HeadScan, Sender, Span, check_text, decode_field_lines, slice,
    span,
};
use crate::method::Method;
use crate::refusal::Refusal;
use crate::token::is_ows;

/// Places of the parts of a response head, and how far an incomplete one has been scanned.
#[derive(Clone, Debug, Default)]
pub struct ResponseSpans {
    scan: HeadScan,
    fields: FieldSpans,
    line: Option<LineSpans>,
}

/// What is known once the head is complete.
#[derive(Clone, Debug)]
struct LineSpans {
    status: u16,
    version: Version,
    reason: Span,
    framing: Framing,
    length: Option<u64>,
    keep_alive: bool,
    is_ambiguous: bool,
    repairs: u32,
}

/// Reads the head of the response that begins at `bytes[0]`; `to` is the method of the request
/// that it answers, which decides the framing. On [`Decoded::Partial`] call again with the same
/// spans and the same bytes, grown. Only the bytes of a complete head are repaired. A complete
/// or refused head ends the series: the next call begins a new one.
///
/// # Errors
/// A [`Refusal`]: the origin cannot be understood, and its connection must be closed.
pub fn decode_response(
    bytes: &mut [u8],
    spans: &mut ResponseSpans,
    to: Method,
    limits: &HeadLimits,
) -> Result<Decoded, Refusal> {
    if spans.line.is_some() {
        spans.clear();
    }
    let decoded = decode_from_scan(bytes, spans, to, limits);
    if decoded.is_err() {
        spans.clear();
    }
    decoded
}

fn decode_from_scan(
    bytes: &mut [u8],
    spans: &mut ResponseSpans,
    to: Method,
    limits: &HeadLimits,
) -> Result<Decoded, Refusal> {
    let Some(parts) = spans.scan.handle_bytes(bytes, limits, Sender::Origin)? else {
        return Ok(Decoded::Partial);
    };
    let head_len = parts.section.end;
    spans.line = Some(decode_parts(bytes, parts, &mut spans.fields, to)?);
    Ok(Decoded::Complete { head_len })
}

fn decode_parts(
    bytes: &mut [u8],
    parts: HeadParts,
    spans: &mut FieldSpans,
    to: Method,
) -> Result<LineSpans, Refusal> {
    let HeadParts { start_line, section, field_lines, bare_line_feeds } = parts;
    let (version, status, reason_len) = decode_status_line(&bytes[start_line.clone()])?;
    let mut repairs = bare_line_feeds;
    // Heads without a fault, nearly all, are read once; the others are repaired and read again.
    if decode_field_lines(bytes, section.clone(), field_lines, spans).is_err() {
        spans.clear();
        repairs += repair_field_lines(&mut bytes[section.clone()]);
        decode_field_lines(bytes, section, field_lines, spans)?;
    }
    let fields = spans.of(bytes);
    let framed = decode_response_framing(to, (status, version), fields)?;
    let may_go_on =
        framed.framing != Framing::UntilClose && !framed.is_ambiguous && !framed.is_overlong;
    Ok(LineSpans {
        status,
        version,
        reason: span(start_line.end - reason_len..start_line.end),
        framing: framed.framing,
        length: framed.length,
        keep_alive: may_go_on && wants_keep_alive(version, fields),
        is_ambiguous: framed.is_ambiguous,
        repairs,
    })
}

/// Version, status, length of the reason phrase (RFC 9112 §4). The phrase may be missing, with
/// or without its space; the status has three digits and is not below 100.
fn decode_status_line(line: &[u8]) -> Result<(Version, u16, usize), Refusal> {
    check_text(line)?;
    let (version, rest) = line.split_at(memchr(b' ', line).ok_or(Refusal::BadStatusLine)?);
    let version = Version::decode(version).map_err(|refusal| match refusal {
        Refusal::BadVersion => Refusal::BadStatusLine,
        other => other,
    })?;
    let [b' ', hundreds @ b'1'..=b'9', tens @ b'0'..=b'9', ones @ b'0'..=b'9', rest @ ..] = rest
    else {
        return Err(Refusal::BadStatusLine);
    };
    let status =
        [hundreds, tens, ones].iter().fold(0, |n, &&digit| n * 10 + u16::from(digit - b'0'));
    match rest {
        [] => Ok((version, status, 0)),
        [b' ', reason @ ..] => Ok((version, status, reason.len())),
        _ => Err(Refusal::BadStatusLine),
    }
}

/// Makes folded lines one line and moves colons to their names, without changing the length.
/// Returns the number of repairs. What it cannot repair stays, to be refused.
#[cold]
fn repair_field_lines(lines: &mut [u8]) -> u32 {
    let mut repairs = 0;
    let mut start = 0;
    while let Some(line_feed) = memchr(b'\n', &lines[start..]).map(|at| start + at) {
        // A fold before the first field line is none: what would it continue (§2.2)?
        if start > 0 && is_ows(lines[start]) {
            lines[start - 1] = b' ';
            if start > 1 && lines[start - 2] == b'\r' {
                lines[start - 2] = b' ';
            }
            repairs += 1;
        } else if move_colon(&mut lines[start..line_feed]) {
            repairs += 1;
        }
        start = line_feed + 1;
    }
    repairs
}

/// `name : value` becomes `name:  value`.
fn move_colon(line: &mut [u8]) -> bool {
    let Some(colon) = memchr(b':', line) else { return false };
    let name_len = line[..colon].iter().rposition(|&byte| !is_ows(byte)).map_or(0, |at| at + 1);
    if name_len == 0 || name_len == colon {
        return false;
    }
    line.swap(name_len, colon);
    true
}

impl ResponseSpans {
    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.scan = HeadScan::default();
        self.fields.clear();
        self.line = None;
    }

    /// The complete head over `bytes`, which are those that were decoded, or a copy of them.
    ///
    /// # Panics
    /// If the last call of [`decode_response`] did not return [`Decoded::Complete`].
    #[must_use]
    pub fn head<'a>(&'a self, bytes: &'a [u8]) -> ResponseHead<'a> {
        let line = self.line.as_ref().expect("decode_response has returned Complete");
        ResponseHead { line, fields: self.fields.of(bytes), bytes }
    }
}

/// A complete response head: cheap to copy, borrowed from spans and bytes.
#[derive(Clone, Copy)]
pub struct ResponseHead<'a> {
    line: &'a LineSpans,
    fields: Fields<'a>,
    bytes: &'a [u8],
}

impl<'a> ResponseHead<'a> {
    /// The status code, 100 to 999. One above 599 is no class of its own: treat it as 5xx
    /// (RFC 9110 §15).
    #[must_use]
    pub const fn status(self) -> u16 {
        self.line.status
    }

    /// The version.
    #[must_use]
    pub const fn version(self) -> Version {
        self.line.version
    }

    /// The reason phrase, which may be empty.
    #[must_use]
    pub fn reason(self) -> &'a [u8] {
        slice(self.bytes, &self.line.reason)
    }

    /// The field lines.
    #[must_use]
    pub const fn fields(self) -> Fields<'a> {
        self.fields
    }

    /// Where the content ends.
    #[must_use]
    pub const fn framing(self) -> Framing {
        self.line.framing
    }

    /// The number in Content-Length, once, whatever copies of it were sent: what to write when
    /// the head is passed on, also where [`framing`](Self::framing) is not it, as in answers to
    /// HEAD (RFC 9110 §8.6). Not to be passed on if [`ambiguous_length`](Self::ambiguous_length).
    #[must_use]
    pub const fn declared_length(self) -> Option<u64> {
        self.line.length
    }

    /// Whether the connection may be used again after the content (RFC 9112 §9.3): the origin
    /// wants it, and where the content ends is beyond doubt.
    #[must_use]
    pub const fn keep_alive(self) -> bool {
        self.line.keep_alive
    }

    /// Whether another response to the same request follows: any 1xx (RFC 9110 §15.2), with the
    /// exception of 101, after which the connection speaks another protocol.
    #[must_use]
    pub const fn is_interim(self) -> bool {
        self.line.status < 200
    }

    /// How many faults in the head were repaired.
    #[must_use]
    pub const fn repairs(self) -> u32 {
        self.line.repairs
    }

    /// Whether Transfer-Encoding stands beside Content-Length, or in HTTP/1.0 (RFC 9112 §6.1,
    /// §6.3): drop Content-Length, close afterwards, store nothing.
    #[must_use]
    pub const fn ambiguous_length(self) -> bool {
        self.line.is_ambiguous
    }
}
