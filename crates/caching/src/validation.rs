//! Validation: the conditional request a cache makes, and what a 304 changes (RFC 9111 sections
//! 4.3.1, 4.3.4, 3.1 and 3.2).
//!
//! Field lines in and out are `name: value CRLF`, without the empty line. Nothing here touches
//! content: fields that say how the stored content is to be read are never taken from a 304.

use wire::{Field, Fields, Known, date};

use crate::entity_tag::{entity_tag, etag_matches_strong, etag_matches_weak, is_strong};
use crate::freshness::single_value;
use crate::range::strong_last_modified;

/// Appends the conditions for validating a stored response: If-None-Match with its entity tag and
/// If-Modified-Since with its Last-Modified (both, as RFC 9111 section 4.3.1 advises: an origin
/// that knows tags ignores the date). False, and nothing appended, if it has no validator.
pub fn encode_validation_fields(stored: Fields<'_>, out: &mut Vec<u8>) -> bool {
    let tag = entity_tag(stored);
    let last_modified = last_modified(stored);
    if let Some(tag) = tag {
        wire::encode_field(out, b"If-None-Match", tag);
    }
    if let Some((value, _)) = last_modified {
        wire::encode_field(out, b"If-Modified-Since", value);
    }
    tag.is_some() || last_modified.is_some()
}

/// Whether a stored response can be validated at all.
pub fn has_validator(stored: Fields<'_>) -> bool {
    entity_tag(stored).is_some() || last_modified(stored).is_some()
}

fn last_modified(fields: Fields<'_>) -> Option<(&[u8], i64)> {
    let value = single_value(fields, Known::LastModified)?;
    date::decode(value).map(|seconds| (value, seconds))
}

/// Whether a 304 is about this stored response (RFC 9111 section 4.3.4), whose validators were the
/// only ones that the conditional request carried.
///
/// Entity tags decide alone where both have one: two encodings of a resource differ in their tags
/// but share a Last-Modified. A 304 without any validator can only mean the one that was asked
/// about, although RFC 9110 section 15.4.5 wants it repeated.
pub fn may_freshen(stored: Fields<'_>, not_modified: Fields<'_>) -> bool {
    let dates_match = || match (last_modified(stored), last_modified(not_modified)) {
        (Some((_, stored)), Some((_, confirmed))) => stored == confirmed,
        _ => false,
    };
    match (entity_tag(stored), entity_tag(not_modified)) {
        (Some(stored), Some(tag)) if is_strong(tag) => etag_matches_strong(stored, tag),
        (Some(stored), Some(tag)) => etag_matches_weak(stored, tag),
        // A strong tag that is not stored: only another strong validator can identify it.
        (None, Some(tag)) if is_strong(tag) => {
            strong_last_modified(not_modified).is_some() && dates_match()
        }
        (None, Some(_)) => dates_match(),
        (_, None) if not_modified.has(Known::ETag) => false,
        (_, None) if not_modified.has(Known::LastModified) => dates_match(),
        (_, None) => true,
    }
}

/// Appends the field lines of a stored response updated by a 304 (RFC 9111 section 3.2): each field
/// of the 304 replaces all stored lines of its name, the rest stays. Date alone never stays: the
/// older one says nothing about the newer response. If the 304 has none, the caller adds the time
/// of receipt, as to any response (RFC 9110 section 6.6.1).
pub fn freshen(stored: Fields<'_>, not_modified: Fields<'_>, out: &mut Vec<u8>) {
    for field in stored.iter() {
        let is_replaced = may_update(field, not_modified)
            && match field.known {
                Some(known) => known == Known::Date || not_modified.has(known),
                None => not_modified.all_named(field.name).next().is_some(),
            };
        if !is_replaced {
            wire::encode_field(out, field.name, field.value);
        }
    }
    for field in not_modified.iter().filter(|&field| may_update(field, not_modified)) {
        wire::encode_field(out, field.name, field.value);
    }
}

/// Which fields of a 304 change the stored ones: those that may be stored, without
/// - Content-Encoding and Content-Range, which describe the stored bytes (section 3.2 allows to
///   omit what the integrity of the stored response depends on);
/// - Set-Cookie, which is for the client whose request was validated;
/// - Via, which tells the way of the stored message and names this cache already.
fn may_update(field: Field<'_>, connection: Fields<'_>) -> bool {
    let describes_stored = matches!(
        field.known,
        Some(Known::ContentEncoding | Known::ContentRange | Known::SetCookie | Known::Via)
    );
    !describes_stored && is_stored_field(field, connection)
}

/// Whether a field of a response is kept with it (RFC 9111 section 3.1). `response` is the whole
/// field section, asked for its Connection field. Not kept are:
/// - fields of the connection, and those that Connection names (RFC 9110 section 7.6.1);
/// - fields of the proxy on the way (Proxy-Authenticate and its kin);
/// - framing, which is made anew from the stored content: Content-Length, Transfer-Encoding,
///   Trailer;
/// - Age, which each reuse states anew (section 5.1).
///
/// Connection cannot name fields that are meant for every recipient: dropping Vary or
/// Content-Encoding on such a hint would make a wrong response of it.
pub fn is_stored_field(field: Field<'_>, response: Fields<'_>) -> bool {
    match field.known {
        Some(
            Known::Connection
            | Known::KeepAlive
            | Known::ProxyConnection
            | Known::Te
            | Known::Upgrade
            | Known::ProxyAuthenticate
            | Known::ProxyAuthenticationInfo
            | Known::ProxyAuthorization
            | Known::ContentLength
            | Known::TransferEncoding
            | Known::Trailer
            | Known::Age,
        ) => false,
        Some(
            Known::CacheControl
            | Known::CdnCacheControl
            | Known::ContentEncoding
            | Known::ContentRange
            | Known::ContentType
            | Known::Date
            | Known::Expires
            | Known::Vary,
        ) => true,
        _ => !response.has(Known::Connection) || !response.lists(Known::Connection, field.name),
    }
}
