//! A client's own conditions on a stored response (RFC 9110 section 13.2.2 as RFC 9111 section
//! 4.3.2 narrows it for caches): If-None-Match, else If-Modified-Since.
//!
//! If-Match and If-Unmodified-Since never come here: [`crate::lookup_rule`] sends them to the
//! origin. Conditions that a recipient must ignore are ignored, so that doubt means a full answer.

use wire::{Fields, Known, Method, RequestHead, date};

use crate::entity_tag::{entity_tag, entity_tags, etag_matches_weak};
use crate::freshness::single_value;

/// What a request's conditions make of the stored response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Answer as without conditions.
    Proceed,
    /// The client has this representation: 304.
    NotModified,
}

impl Precondition {
    /// Stable name for logs.
    pub const fn token(self) -> &'static str {
        match self {
            Precondition::Proceed => "proceed",
            Precondition::NotModified => "not-modified",
        }
    }

    /// The text that asks for the decision.
    pub const fn section(self) -> &'static str {
        "RFC 9111 §4.3.2"
    }

    /// The decision as a sentence for a person.
    pub const fn sentence(self) -> &'static str {
        match self {
            Precondition::Proceed => "No condition of the request stands against a full answer.",
            Precondition::NotModified => "The client already has this representation.",
        }
    }
}

/// Evaluates the conditions of a GET or HEAD against a stored response; any other status than 200
/// is answered as it is (RFC 9110 section 13.2.1).
pub fn evaluate_preconditions(
    request: RequestHead<'_>,
    status: u16,
    stored: Fields<'_>,
) -> Precondition {
    if status != 200 || !matches!(request.method(), Method::Get | Method::Head) {
        return Precondition::Proceed;
    }
    let fields = request.fields();
    let is_held = if fields.has(Known::IfNoneMatch) {
        none_match_lists(fields, stored)
    } else if fields.has(Known::IfModifiedSince) {
        is_unmodified(fields, stored)
    } else {
        false
    };
    if is_held { Precondition::NotModified } else { Precondition::Proceed }
}

/// Whether If-None-Match is `*` or lists the stored response's tag, by weak comparison.
fn none_match_lists(request: Fields<'_>, stored: Fields<'_>) -> bool {
    if single_value(request, Known::IfNoneMatch) == Some(b"*") {
        return true;
    }
    entity_tag(stored).is_some_and(|stored_tag| {
        request
            .all(Known::IfNoneMatch)
            .flat_map(entity_tags)
            .any(|tag| etag_matches_weak(tag, stored_tag))
    })
}

/// Whether Last-Modified, else Date, is no later than If-Modified-Since. An invalid or repeated
/// If-Modified-Since is ignored (RFC 9110 section 13.1.3).
fn is_unmodified(request: Fields<'_>, stored: Fields<'_>) -> bool {
    let decode = |fields, field| single_value(fields, field).and_then(date::decode);
    let changed = if stored.has(Known::LastModified) {
        decode(stored, Known::LastModified)
    } else {
        decode(stored, Known::Date)
    };
    match (decode(request, Known::IfModifiedSince), changed) {
        (Some(since), Some(changed)) => changed <= since,
        _ => false,
    }
}
