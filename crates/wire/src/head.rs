//! Heads of both directions: finding the end, then tokenising the field lines.
//!
//! The scan walks line ends only, remembers how far it came, and applies the limits in the order
//! of the bytes, so that a head refused whole is refused for the same reason byte by byte.
//! httparse then tokenises the complete section once. It lets a bare LF through and names few
//! faults: the scan has checked line ends before, and [`fault_of`] finds the exact reason
//! afterwards, on the cold path. RFC 9112 §2.2, §5.

use std::ops::Range;

use httparse::Status;
use memchr::memchr;

use crate::field::FieldSpans;
use crate::refusal::Refusal;
use crate::token::{is_ows, is_tchar};

/// The most field lines of a head or trailer section, whatever the limits say.
pub(crate) const FIELDS_MAX: usize = 128;

/// The most bytes of a head, whatever the limits say: places in it fit into 32 bits.
const HEAD_BYTES_MAX: usize = 16 << 20;

/// How large a head may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// Bytes of the whole head, its last empty line included; above 16 MiB it counts as 16 MiB.
    pub head_bytes: usize,
    /// Bytes of one line, its end included.
    pub line_bytes: usize,
    /// Field lines; above 128 it counts as 128.
    pub fields: usize,
}

impl Default for HeadLimits {
    fn default() -> HeadLimits {
        HeadLimits { head_bytes: 64 * 1024, line_bytes: 16 * 1024, fields: FIELDS_MAX }
    }
}

/// What decoding a head came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// The bytes end inside the head: call again with the same spans once there are more.
    Partial,
    /// The head is complete.
    Complete {
        /// Bytes up to the content, an empty line before the request line included.
        head_len: usize,
    },
}

/// A place in the bytes of a head.
pub(crate) type Span = Range<u32>;

pub(crate) fn span(range: Range<usize>) -> Span {
    let narrow = |place| u32::try_from(place).expect("a head ends before HEAD_BYTES_MAX");
    narrow(range.start)..narrow(range.end)
}

pub(crate) fn slice<'a>(bytes: &'a [u8], span: &Span) -> &'a [u8] {
    &bytes[span.start as usize..span.end as usize]
}

/// Whose head is read, which decides what its line ends and its first bytes may be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sender {
    Client,
    Origin,
}

/// How far the end of a head has been looked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeadScan {
    /// Bytes seen.
    scanned: usize,
    /// Where the current line begins.
    line_start: usize,
    /// Where the start line begins: after the one empty line that may come before it.
    start: usize,
    /// Lines complete, the start line included.
    lines: usize,
    /// Lines that ended with LF alone.
    bare_line_feeds: u32,
}

/// The parts of a complete head.
pub(crate) struct HeadParts {
    /// The start line without its end.
    pub(crate) start_line: Range<usize>,
    /// The field lines and the empty line.
    pub(crate) section: Range<usize>,
    pub(crate) field_lines: usize,
    pub(crate) bare_line_feeds: u32,
}

impl HeadScan {
    /// Goes on to the end of `bytes`, or of the head.
    pub(crate) fn handle_bytes(
        &mut self,
        bytes: &[u8],
        limits: &HeadLimits,
        sender: Sender,
    ) -> Result<Option<HeadParts>, Refusal> {
        loop {
            if self.lines == 0 {
                check_beginning(&bytes[self.line_start..], sender)?;
            }
            let found = memchr(b'\n', &bytes[self.scanned..]);
            let reached = found.map_or(bytes.len(), |at| self.scanned + at + 1);
            self.check_limits(reached, limits, sender)?;
            self.scanned = reached;
            if found.is_none() {
                return Ok(None);
            }
            let text_end = self.check_line_end(bytes, reached, sender)?;
            let is_empty = text_end == self.line_start;
            if is_empty && self.lines > 0 {
                return Ok(Some(self.parts(bytes, reached)));
            }
            if is_empty && self.start > 0 {
                return Err(Refusal::BadMethod);
            }
            if is_empty {
                self.start = reached;
            } else {
                self.lines += 1;
            }
            self.line_start = reached;
            if self.lines > limits.fields.min(FIELDS_MAX) + 1 {
                return Err(Refusal::TooManyFields);
            }
        }
    }

    /// Refuses when the bytes up to `reached` pass a limit; the one passed first names it.
    fn check_limits(
        &self,
        reached: usize,
        limits: &HeadLimits,
        sender: Sender,
    ) -> Result<(), Refusal> {
        let line_stop = self.line_start.saturating_add(limits.line_bytes);
        let head_stop = self.start + limits.head_bytes.min(HEAD_BYTES_MAX);
        if reached <= line_stop.min(head_stop) {
            Ok(())
        } else if head_stop < line_stop {
            Err(Refusal::HeadTooLarge)
        } else if self.lines == 0 && sender == Sender::Client {
            Err(Refusal::RequestLineTooLong)
        } else {
            Err(Refusal::LineTooLong)
        }
    }

    /// Where the text of the line that ends before `reached` ends.
    fn check_line_end(
        &mut self,
        bytes: &[u8],
        reached: usize,
        sender: Sender,
    ) -> Result<usize, Refusal> {
        let line_feed = reached - 1;
        if line_feed > self.line_start && bytes[line_feed - 1] == b'\r' {
            return Ok(line_feed - 1);
        }
        if sender == Sender::Client {
            return Err(Refusal::BareLf);
        }
        self.bare_line_feeds += 1;
        Ok(line_feed)
    }

    fn parts(&self, bytes: &[u8], end: usize) -> HeadParts {
        let head = &bytes[self.start..end];
        let line_feed = memchr(b'\n', head).unwrap_or_default();
        let line = &head[..line_feed];
        let text = line.strip_suffix(b"\r").unwrap_or(line);
        HeadParts {
            start_line: self.start..self.start + text.len(),
            section: self.start + line_feed + 1..end,
            field_lines: self.lines - 1,
            bare_line_feeds: self.bare_line_feeds,
        }
    }
}

/// Refuses what cannot become a head as soon as it shows, so that a peer that speaks something
/// else (TLS, SSH) is answered at once. One empty line may come before a request (§2.2).
fn check_beginning(line: &[u8], sender: Sender) -> Result<(), Refusal> {
    let Some(&first) = line.first() else { return Ok(()) };
    match sender {
        Sender::Client if is_tchar(first) || first == b'\r' || first == b'\n' => Ok(()),
        Sender::Client => Err(Refusal::BadMethod),
        Sender::Origin => {
            let name = b"HTTP/";
            let seen = line.len().min(name.len());
            if line[..seen] == name[..seen] { Ok(()) } else { Err(Refusal::BadStatusLine) }
        }
    }
}

/// Tokenises the field lines in `section`, which ends with its empty line, and adds them.
pub(crate) fn decode_field_lines(
    bytes: &[u8],
    section: Range<usize>,
    field_lines: usize,
    spans: &mut FieldSpans,
) -> Result<(), Refusal> {
    // Most heads are short: the smaller the array, the less is written before it is used.
    match field_lines {
        0..=16 => tokenise::<16>(bytes, section, spans),
        _ => tokenise::<FIELDS_MAX>(bytes, section, spans),
    }
}

fn tokenise<const LINES: usize>(
    bytes: &[u8],
    section: Range<usize>,
    spans: &mut FieldSpans,
) -> Result<(), Refusal> {
    let lines = &bytes[section];
    let mut fields = [httparse::EMPTY_HEADER; LINES];
    let Ok(Status::Complete((consumed, fields))) = httparse::parse_headers(lines, &mut fields)
    else {
        return Err(fault_of(lines));
    };
    if consumed != lines.len() {
        return Err(fault_of(lines));
    }
    for field in fields {
        let name = place_in(bytes, field.name.as_bytes());
        let value = place_in(bytes, field.value);
        spans.push(bytes, name, value)?;
    }
    Ok(())
}

/// Where `part`, a slice of `bytes`, begins and ends in it.
pub(crate) fn place_in(bytes: &[u8], part: &[u8]) -> Range<usize> {
    let start = part.as_ptr().addr() - bytes.as_ptr().addr();
    start..start + part.len()
}

/// The first fault in field lines that the tokeniser refused.
#[cold]
fn fault_of(lines: &[u8]) -> Refusal {
    let mut rest = lines;
    let mut is_first = true;
    while let Some(line_feed) = memchr(b'\n', rest) {
        let line = &rest[..line_feed];
        let text = line.strip_suffix(b"\r").unwrap_or(line);
        if let Err(refusal) = check_field_line(text, is_first) {
            return refusal;
        }
        rest = &rest[line_feed + 1..];
        is_first = false;
    }
    Refusal::BadFieldName
}

fn check_field_line(line: &[u8], is_first: bool) -> Result<(), Refusal> {
    if line.first().is_some_and(|&byte| is_ows(byte)) {
        return Err(if is_first { Refusal::LeadingSpace } else { Refusal::ObsFold });
    }
    if line.is_empty() {
        return Ok(());
    }
    check_text(line)?;
    let name = &line[..memchr(b':', line).ok_or(Refusal::BadFieldName)?];
    let end = name.iter().position(|&byte| !is_tchar(byte));
    match end {
        None if name.is_empty() => Err(Refusal::BadFieldName),
        None => Ok(()),
        Some(end) if end > 0 && name[end..].iter().all(|&byte| is_ows(byte)) => {
            Err(Refusal::SpaceBeforeColon)
        }
        Some(_) => Err(Refusal::BadFieldName),
    }
}

/// Refuses control bytes in a line whose end was taken off (RFC 9110 §5.5).
pub(crate) fn check_text(line: &[u8]) -> Result<(), Refusal> {
    match line.iter().find(|&&byte| (byte < b' ' && byte != b'\t') || byte == 0x7f) {
        None => Ok(()),
        Some(b'\r') => Err(Refusal::BareCr),
        Some(0) => Err(Refusal::NulByte),
        Some(_) => Err(Refusal::ControlByte),
    }
}
