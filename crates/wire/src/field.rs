//! Field lines and field sections: slices over the bytes they were read from.
//!
//! A [`FieldSpans`] holds places, not bytes: it may be kept while its buffer grows or moves, and
//! it may be stored next to a copy of the bytes. [`FieldSpans::of`] joins both into a
//! [`Fields`], which is what everybody reads. Nothing here changes or orders field lines: several
//! lines of one name stay several lines, in the order received (RFC 9110 §5.3).

use std::ops::Range;

use memchr::memchr;

use crate::known::Known;
use crate::list;
use crate::refusal::Refusal;
use crate::token::trimmed;

/// One field line (RFC 9110 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// The name, if it is one of the known ones.
    pub known: Option<Known>,
    /// The name as it was written.
    pub name: &'a [u8],
    /// The value without the white space at its ends.
    pub value: &'a [u8],
}

#[derive(Clone, Copy, Debug)]
struct FieldSpan {
    name_start: u32,
    value_start: u32,
    value_len: u32,
    name_len: u16,
    known: Option<Known>,
}

/// Where the field lines of a section are, counted from the first byte of their buffer.
///
/// Reusable: [`clear`](FieldSpans::clear) keeps the memory.
#[derive(Clone, Debug, Default)]
pub struct FieldSpans {
    spans: Vec<FieldSpan>,
    present: u64,
}

impl FieldSpans {
    /// Forgets all lines and keeps the memory.
    pub fn clear(&mut self) {
        self.spans.clear();
        self.present = 0;
    }

    /// Adds the line with the given places of name and value in `bytes`.
    pub(crate) fn push(
        &mut self,
        bytes: &[u8],
        name: Range<usize>,
        value: Range<usize>,
    ) -> Result<(), Refusal> {
        let known = Known::from_name(&bytes[name.clone()]);
        self.spans.push(FieldSpan {
            name_start: u32::try_from(name.start).map_err(|_| Refusal::LineTooLong)?,
            value_start: u32::try_from(value.start).map_err(|_| Refusal::LineTooLong)?,
            value_len: u32::try_from(value.len()).map_err(|_| Refusal::LineTooLong)?,
            name_len: u16::try_from(name.len()).map_err(|_| Refusal::LineTooLong)?,
            known,
        });
        self.present |= known.map_or(0, Known::bit);
        Ok(())
    }

    /// The spans of our own field lines, as [`encode_field`](crate::encode_field) writes them:
    /// `name: value`, CRLF. Not for bytes of a peer: nothing is checked, and a line without a
    /// colon is skipped.
    #[must_use]
    pub fn decode_lines(bytes: &[u8]) -> FieldSpans {
        let mut spans = FieldSpans::default();
        let mut start = 0;
        while start < bytes.len() {
            let end = memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |at| start + at + 1);
            let line = &bytes[start..end];
            let text = line.strip_suffix(b"\r\n").unwrap_or(line);
            if let Some(colon) = memchr(b':', text) {
                let value = trimmed(bytes, start + colon + 1..start + text.len());
                // A line that is too long for a span is none of ours.
                let _ = spans.push(bytes, start..start + colon, value);
            }
            start = end;
        }
        spans
    }

    /// The field section over `bytes`, which must be those the spans were made for, or a copy.
    #[must_use]
    pub fn of<'a>(&'a self, bytes: &'a [u8]) -> Fields<'a> {
        Fields { spans: &self.spans, present: self.present, bytes }
    }
}

/// A field section to read from: cheap to copy, borrowed from spans and bytes.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    spans: &'a [FieldSpan],
    present: u64,
    bytes: &'a [u8],
}

impl<'a> Fields<'a> {
    /// A section without lines.
    pub const EMPTY: Fields<'static> = Fields { spans: &[], present: 0, bytes: &[] };

    /// Whether there is a line of this name. One test of a bit.
    #[must_use]
    pub const fn has(self, known: Known) -> bool {
        self.present & known.bit() != 0
    }

    /// The value of the first line of this name.
    #[must_use]
    pub fn first(self, known: Known) -> Option<&'a [u8]> {
        self.all(known).next()
    }

    /// The values of all lines of this name, in order.
    pub fn all(self, known: Known) -> impl Iterator<Item = &'a [u8]> {
        let spans = if self.has(known) { self.spans } else { &[] };
        let of_name = spans.iter().filter(move |span| span.known == Some(known));
        of_name.map(move |span| self.field(span).value)
    }

    /// The values of all lines named `name`, in order; any name, in any case.
    pub fn all_named(self, name: &[u8]) -> impl Iterator<Item = &'a [u8]> {
        let known = Known::from_name(name);
        let may_be_here = known.is_none_or(|known| self.has(known));
        let spans = if may_be_here { self.spans } else { &[] };
        spans.iter().filter(move |span| span.known == known).filter_map(move |span| {
            let field = self.field(span);
            (known.is_some() || field.name.eq_ignore_ascii_case(name)).then_some(field.value)
        })
    }

    /// All lines, in order.
    pub fn iter(self) -> impl Iterator<Item = Field<'a>> {
        self.spans.iter().map(move |span| self.field(span))
    }

    /// How many lines there are.
    #[must_use]
    pub const fn len(self) -> usize {
        self.spans.len()
    }

    /// Whether there is no line.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.spans.is_empty()
    }

    /// The members of the list that all lines of this name make together (RFC 9110 §5.6.1).
    pub fn members(self, known: Known) -> impl Iterator<Item = &'a [u8]> {
        self.all(known).flat_map(list::members)
    }

    /// Whether `token`, in any case, is a member of the list that all lines of this name make.
    #[must_use]
    pub fn lists(self, known: Known, token: &[u8]) -> bool {
        self.members(known).any(|member| member.eq_ignore_ascii_case(token))
    }

    fn field(self, span: &FieldSpan) -> Field<'a> {
        let name = span.name_start as usize;
        let value = span.value_start as usize;
        Field {
            known: span.known,
            name: &self.bytes[name..name + span.name_len as usize],
            value: &self.bytes[value..value + span.value_len as usize],
        }
    }
}
