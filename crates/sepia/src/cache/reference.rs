//! References in Location and Content-Location: the targets at the request's own origin that they
//! name. RFC 3986 section 5.2, RFC 9111 section 4.4. Never a target of another origin.

use wire::{Authority, RequestHead};

/// Path and query of a reference that stays at the request's origin; `None` if it leaves it or
/// is no reference (RFC 3986 section 4.2). A relative path is resolved against the target's.
pub(super) fn same_origin_target(request: RequestHead<'_>, reference: &[u8]) -> Option<Vec<u8>> {
    let target = resolve(request, reference.split(|byte| *byte == b'#').next()?)?;
    let path_len = target.iter().position(|byte| *byte == b'?').unwrap_or(target.len());
    let (path, query) = target.split_at(path_len);
    Some([&remove_dot_segments(path), query].concat())
}

fn resolve(request: RequestHead<'_>, reference: &[u8]) -> Option<Vec<u8>> {
    if let Some(rest) = strip_scheme(reference) {
        return at_own_authority(request, rest);
    }
    if let Some(rest) = reference.strip_prefix(b"//") {
        return at_own_authority(request, rest);
    }
    if reference.starts_with(b"/") {
        return Some(reference.to_vec());
    }
    let base = request.path_query();
    let path = base.split(|byte| *byte == b'?').next()?;
    if reference.starts_with(b"?") || reference.is_empty() {
        return Some([path, reference].concat());
    }
    let folder = path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    Some([&path[..folder], reference].concat())
}

fn strip_scheme(reference: &[u8]) -> Option<&[u8]> {
    let scheme = reference.get(..7)?;
    scheme.eq_ignore_ascii_case(b"http://").then(|| &reference[7..])
}

fn at_own_authority(request: RequestHead<'_>, rest: &[u8]) -> Option<Vec<u8>> {
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    let theirs = Authority::decode(&rest[..end])?;
    let own = request.authority()?;
    let same = theirs.host.eq_ignore_ascii_case(own.host)
        && theirs.port.unwrap_or(80) == own.port.unwrap_or(80);
    same.then(|| rest[end..].to_vec())
}

/// RFC 3986 section 5.2.4; the result begins with a slash.
fn remove_dot_segments(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    let mut segments =
        path.strip_prefix(b"/").unwrap_or(path).split(|byte| *byte == b'/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            b"." | b".." => {
                if segment == b".." {
                    kept.pop();
                }
                // "a/." and "a/.." name folders.
                if is_last {
                    kept.push(b"");
                }
            }
            _ => kept.push(segment),
        }
    }
    kept.iter().flat_map(|segment| [&b"/"[..], segment]).collect::<Vec<_>>().concat()
}
