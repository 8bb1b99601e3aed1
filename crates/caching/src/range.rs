//! A client's Range on a complete stored response (RFC 9110 section 14), with If-Range (section
//! 13.1.5).
//!
//! One range of bytes is cut; whatever is invalid, unknown, several or in doubt is answered whole,
//! which the RFC always allows. To be asked after [`crate::evaluate_preconditions`] let the request
//! proceed, and for a stored 200 only.

use wire::{Fields, Known, Method, RequestHead, date};

use crate::entity_tag::{entity_tag, etag_matches_strong};
use crate::freshness::single_value;

/// How far Date must lie behind Last-Modified for the latter to be a strong validator. RFC 9110
/// section 8.8.2.2 asks for one second on the same clock, or for enough to make differing clocks
/// unlikely; a minute, as nothing tells whose clocks they were.
const STRONG_DATE_DISTANCE_SECONDS: i64 = 60;

/// What to deliver of the stored content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeOutcome {
    /// All of it, as 200.
    Whole,
    /// These bytes, as 206.
    Part {
        /// Position of the first byte.
        first: u64,
        /// Position of the last byte, less than the complete length.
        last: u64,
    },
    /// None: 416.
    Unsatisfiable,
}

impl RangeOutcome {
    /// Stable name for logs.
    pub const fn token(self) -> &'static str {
        match self {
            RangeOutcome::Whole => "whole",
            RangeOutcome::Part { .. } => "part",
            RangeOutcome::Unsatisfiable => "unsatisfiable",
        }
    }

    /// The text that asks for the decision.
    pub const fn section(self) -> &'static str {
        match self {
            RangeOutcome::Whole => "RFC 9110 §14.2",
            RangeOutcome::Part { .. } => "RFC 9110 §15.3.7",
            RangeOutcome::Unsatisfiable => "RFC 9110 §15.5.17",
        }
    }

    /// The decision as a sentence for a person.
    pub const fn sentence(self) -> &'static str {
        match self {
            RangeOutcome::Whole => "The whole content is delivered.",
            RangeOutcome::Part { .. } => "The range that the request names is delivered.",
            RangeOutcome::Unsatisfiable => "The requested range begins behind the content's end.",
        }
    }
}

/// Evaluates Range and If-Range of a GET against a complete stored 200 with `complete_length` bytes
/// of content.
pub fn evaluate_range(
    request: RequestHead<'_>,
    stored: Fields<'_>,
    complete_length: u64,
) -> RangeOutcome {
    let fields = request.fields();
    if !fields.has(Known::Range) || !matches!(request.method(), Method::Get) {
        return RangeOutcome::Whole;
    }
    if fields.has(Known::IfRange) && !if_range_holds(fields, stored) {
        return RangeOutcome::Whole;
    }
    match single_value(fields, Known::Range).and_then(RangeSpec::decode) {
        Some(range) => range.place(complete_length),
        None => RangeOutcome::Whole,
    }
}

/// One range-spec of bytes (RFC 9110 section 14.1.2).
enum RangeSpec {
    From(u64),
    Between(u64, u64),
    Suffix(u64),
}

impl RangeSpec {
    fn decode(value: &[u8]) -> Option<RangeSpec> {
        let equals = value.iter().position(|&byte| byte == b'=')?;
        if !value[..equals].eq_ignore_ascii_case(b"bytes") {
            return None;
        }
        let mut members = wire::members(&value[equals + 1..]);
        let spec = members.next()?;
        if members.next().is_some() {
            return None;
        }
        let dash = spec.iter().position(|&byte| byte == b'-')?;
        match (&spec[..dash], &spec[dash + 1..]) {
            (b"", suffix) => Some(RangeSpec::Suffix(decode_position(suffix)?)),
            (first, b"") => Some(RangeSpec::From(decode_position(first)?)),
            (first, last) => {
                let (first, last) = (decode_position(first)?, decode_position(last)?);
                (first <= last).then_some(RangeSpec::Between(first, last))
            }
        }
    }

    fn place(&self, complete_length: u64) -> RangeOutcome {
        // Empty content satisfies no position; a suffix of it is all of it, which no Content-Range
        // can express.
        let Some(end) = complete_length.checked_sub(1) else {
            return match self {
                RangeSpec::Suffix(1..) => RangeOutcome::Whole,
                _ => RangeOutcome::Unsatisfiable,
            };
        };
        match *self {
            RangeSpec::Suffix(0) => RangeOutcome::Unsatisfiable,
            RangeSpec::Suffix(length) => {
                RangeOutcome::Part { first: complete_length.saturating_sub(length), last: end }
            }
            RangeSpec::From(first) | RangeSpec::Between(first, _) if first > end => {
                RangeOutcome::Unsatisfiable
            }
            RangeSpec::From(first) => RangeOutcome::Part { first, last: end },
            RangeSpec::Between(first, last) => RangeOutcome::Part { first, last: last.min(end) },
        }
    }
}

/// Digits only; saturates, as any position past the end means the same.
fn decode_position(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |position, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        Some(position.saturating_mul(10).saturating_add(digit))
    })
}

/// Whether If-Range names the stored representation by a strong validator.
fn if_range_holds(request: Fields<'_>, stored: Fields<'_>) -> bool {
    let Some(condition) = single_value(request, Known::IfRange) else {
        return false;
    };
    match date::decode(condition) {
        Some(date) => strong_last_modified(stored) == Some(date),
        None => entity_tag(stored).is_some_and(|tag| etag_matches_strong(condition, tag)),
    }
}

/// Last-Modified, if it is a strong validator (RFC 9110 section 8.8.2.2).
pub(crate) fn strong_last_modified(stored: Fields<'_>) -> Option<i64> {
    let last_modified = single_value(stored, Known::LastModified).and_then(date::decode)?;
    let date = single_value(stored, Known::Date).and_then(date::decode)?;
    let distance = date.saturating_sub(last_modified);
    (distance >= STRONG_DATE_DISTANCE_SECONDS).then_some(last_modified)
}
