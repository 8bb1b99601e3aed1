//! Entity tags: comparison and lists (RFC 9110 sections 8.8.3 and 13.1).
//!
//! An opaque-tag looks like a quoted string but knows no escapes: a backslash is an ordinary byte,
//! so that the general list decoder must not be used on If-None-Match. Tags that an origin forgot
//! to quote are compared as the bytes they are; what it sent is what it gets back.

use wire::{Fields, Known};

/// Weak comparison: the opaque tags are equal, weak or not (RFC 9110 section 8.8.3.2).
pub fn etag_matches_weak(a: &[u8], b: &[u8]) -> bool {
    opaque_tag(a) == opaque_tag(b)
}

/// Strong comparison: equal, and neither is weak (RFC 9110 section 8.8.3.2).
pub fn etag_matches_strong(a: &[u8], b: &[u8]) -> bool {
    is_strong(a) && a == b
}

/// Whether a tag is not marked as weak.
pub(crate) fn is_strong(tag: &[u8]) -> bool {
    !tag.starts_with(b"W/")
}

fn opaque_tag(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

/// The entity tag of a response: None where there is none, where it is no single tag, or where
/// several lines disagree.
pub(crate) fn entity_tag(response: Fields<'_>) -> Option<&[u8]> {
    let tag = response.first(Known::ETag)?;
    let is_one = is_single(tag) && response.all(Known::ETag).all(|line| line == tag);
    is_one.then_some(tag)
}

/// One tag that cannot be mistaken for a list or for `*` when it is sent in If-None-Match.
fn is_single(tag: &[u8]) -> bool {
    let opaque = opaque_tag(tag);
    let is_tag_byte = |byte: &u8| *byte > b' ' && *byte != b'"' && *byte != 0x7F;
    match opaque {
        [b'"', inner @ .., b'"'] => inner.iter().all(is_tag_byte),
        [] | b"*" => false,
        bare => bare.iter().all(|byte| is_tag_byte(byte) && *byte != b','),
    }
}

/// The members of a list of entity tags.
pub(crate) fn entity_tags(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut is_quoted = false;
    value
        .split(move |&byte| {
            is_quoted ^= byte == b'"';
            byte == b',' && !is_quoted
        })
        .map(wire::trim_ows)
        .filter(|member| !member.is_empty())
}
