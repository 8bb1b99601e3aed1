//! The primary cache key (RFC 9111 section 2): namespace and target URI, full bytes.
//!
//! Derived in two steps: the parts of the target URI are found first, then written in one normal
//! form, so that rules can come between.

use wire::{Authority, Method, RequestHead, Target};

use crate::config::{HostHeader, Role, Site};

/// Writes the key of the request's target URI; `key` is emptied first.
pub(crate) fn append_key(site: &Site, request: RequestHead<'_>, key: &mut Vec<u8>) {
    key.clear();
    key.extend_from_slice(&site.namespace);
    key.extend_from_slice(b"\0http://");
    match &site.listener.role {
        Role::Reverse(reverse) if reverse.host_header != HostHeader::Keep => {}
        _ => {
            if let Some(authority) = request.authority() {
                append_authority(authority, key);
            }
        }
    }
    append_path_query(request, key);
}

/// The key of another target at the same origin: of a Location field, for instance.
pub(crate) fn append_sibling_key(
    site: &Site,
    request: RequestHead<'_>,
    path_query: &[u8],
    key: &mut Vec<u8>,
) {
    append_key(site, request, key);
    let own = key.len();
    let mut target = Vec::new();
    append_path_query(request, &mut target);
    key.truncate(own - target.len());
    if !path_query.starts_with(b"/") {
        key.push(b'/');
    }
    key.extend_from_slice(path_query);
}

/// Host in lower case; a port only where it is not the scheme's own (RFC 9110 section 4.2.3).
pub(crate) fn append_authority(authority: Authority<'_>, key: &mut Vec<u8>) {
    key.extend(authority.host.iter().map(u8::to_ascii_lowercase));
    if let Some(port) = authority.port.filter(|port| *port != 80) {
        key.push(b':');
        wire::encode_decimal(key, u64::from(port));
    }
}

/// Path and query as they go to the origin; an empty path is `/` (RFC 9112 section 3.2.1).
pub(crate) fn append_path_query(request: RequestHead<'_>, out: &mut Vec<u8>) {
    match request.target() {
        Target::Origin { path_query } => out.extend_from_slice(path_query),
        // RFC 9112 section 3.2.4: the last proxy writes an empty path of OPTIONS as `*`.
        Target::Absolute { path_query: b"", .. } if request.method() == Method::Options => {
            out.push(b'*');
        }
        Target::Absolute { path_query, .. } => {
            if !path_query.starts_with(b"/") {
                out.push(b'/');
            }
            out.extend_from_slice(path_query);
        }
        Target::Asterisk | Target::Authority(_) => out.push(b'*'),
    }
}
