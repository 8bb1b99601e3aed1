//! Hop 2, decode: from a session's bytes to a request head, and what its answer may do with the
//! connection. RFC 9112 sections 2.2 and 9.3.

use wire::{Decoded, HeadLimits, Known, RequestHead, RequestSpans, Version, decode_request};

use crate::base::Reason;
use crate::config::{Role, Settings};
use crate::io::Peer;

/// What the bytes at the front of a buffer are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Front {
    /// Nothing.
    Empty,
    /// The beginning of a head.
    Partial,
    /// A head of so many bytes.
    Head(usize),
    /// No request.
    Malformed(Reason),
}

/// Looks at the front of `bytes`.
pub(crate) fn decode_front(bytes: &[u8], spans: &mut RequestSpans, limits: &HeadLimits) -> Front {
    if bytes.is_empty() {
        return Front::Empty;
    }
    match decode_request(bytes, spans, limits) {
        Ok(Decoded::Partial) => Front::Partial,
        Ok(Decoded::Complete { head_len }) => Front::Head(head_len),
        Err(refusal) => Front::Malformed(Reason::of_request(refusal)),
    }
}

/// Whether the connection may go on after the answer. A proxy keeps no connection to an HTTP/1.0
/// client (RFC 9112 section 9.3): its Keep-Alive may have come through an older proxy that did
/// not understand it.
pub(crate) fn may_keep(head: RequestHead<'_>, role: &Role, is_draining: bool) -> bool {
    let is_forward = matches!(role, Role::Forward(_));
    let is_blind_risk = is_forward && head.version() == Version::Http10;
    head.keep_alive() && !is_draining && !is_blind_risk
}

/// The request id of a peer that is believed.
pub(crate) fn trusted_id<'a>(
    head: RequestHead<'a>,
    settings: &Settings,
    peer: Peer,
) -> Option<&'a [u8]> {
    let id = head.fields().first(Known::XRequestId).filter(|id| !id.is_empty())?;
    settings.trusts(peer.ip()).then_some(id)
}
