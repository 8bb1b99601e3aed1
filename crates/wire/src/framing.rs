//! Where the content of a message ends (RFC 9112 §6), and whether the connection outlives it.
//!
//! The one place where Content-Length and Transfer-Encoding are read. Requests are judged
//! strictly, since a proxy that guesses lets one request hide in another; of responses only
//! that which RFC 9112 §6.3 lets a proxy survive is survived, and marked.

use crate::field::Fields;
use crate::known::Known;
use crate::list;
use crate::method::Method;
use crate::refusal::Refusal;
use crate::token::trim_ows;

/// The major version is always 1; minor versions above 1 are read as 1 (RFC 9110 §2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
}

impl Version {
    /// Reads `HTTP/1.1` and the like, whole and case-sensitive (RFC 9112 §2.3).
    ///
    /// # Errors
    /// [`Refusal::UnsupportedVersion`] for a major version above 1, [`Refusal::BadVersion`] for
    /// anything else.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Version, Refusal> {
        match bytes {
            b"HTTP/1.0" => Ok(Version::Http10),
            [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'1'..=b'9'] => Ok(Version::Http11),
            [b'H', b'T', b'T', b'P', b'/', b'2'..=b'9', b'.', b'0'..=b'9'] => {
                Err(Refusal::UnsupportedVersion)
            }
            _ => Err(Refusal::BadVersion),
        }
    }
}

/// How the end of the content is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is no content.
    None,
    /// So many bytes; 0 is possible, and below 2^63.
    Length(u64),
    /// Chunks, then trailers.
    Chunked,
    /// Whatever comes until the connection ends. Responses only.
    UntilClose,
}

impl Framing {
    /// Whether content may follow; a length of 0 is none.
    #[must_use]
    pub const fn has_content(self) -> bool {
        !matches!(self, Framing::None | Framing::Length(0))
    }
}

/// The framing of a request (RFC 9112 §6.3).
pub(crate) fn decode_request_framing(
    method: Method,
    version: Version,
    fields: Fields<'_>,
) -> Result<Framing, Refusal> {
    let length = decode_content_length(fields)?;
    let framing = if fields.has(Known::TransferEncoding) {
        if version == Version::Http10 {
            return Err(Refusal::TransferEncodingOn10);
        }
        check_transfer_encoding(fields)?;
        if length.is_some() {
            return Err(Refusal::LengthWithTransferEncoding);
        }
        Framing::Chunked
    } else {
        length.map_or(Framing::None, Framing::Length)
    };
    // What follows a CONNECT is the tunnel's: content before it would be read as both.
    match (method, framing) {
        (Method::Connect, Framing::None | Framing::Length(0)) => Ok(Framing::None),
        (Method::Connect, _) => Err(Refusal::ConnectWithContent),
        _ => Ok(framing),
    }
}

/// What the fields of a response say about its end.
pub(crate) struct ResponseFraming {
    pub(crate) framing: Framing,
    /// What Content-Length says, whether or not it counts.
    pub(crate) length: Option<u64>,
    /// The sender contradicts itself: close afterwards, and store nothing.
    pub(crate) is_ambiguous: bool,
    /// Fields announce content that this status cannot have: what follows may be anything.
    pub(crate) is_overlong: bool,
}

/// The framing of a response with `status` to a request with method `to` (RFC 9112 §6.3).
///
/// Transfer-Encoding from an HTTP/1.0 sender "MUST [be treated] as if the framing is faulty",
/// and the connection closed "after processing the message" (§6.1). The chunks are decoded,
/// since passing them on as content would be worse, and the message is marked ambiguous.
pub(crate) fn decode_response_framing(
    to: Method,
    (status, version): (u16, Version),
    fields: Fields<'_>,
) -> Result<ResponseFraming, Refusal> {
    // "A client MUST ignore any Content-Length or Transfer-Encoding" there (§6.3).
    if to == Method::Connect && (200..300).contains(&status) {
        return Ok(ResponseFraming {
            framing: Framing::None,
            length: None,
            is_ambiguous: false,
            is_overlong: false,
        });
    }
    let length = decode_content_length(fields)?;
    let is_coded = fields.has(Known::TransferEncoding);
    let is_ambiguous = is_coded && (length.is_some() || version == Version::Http10);
    let is_bare = status < 200 || status == 204;
    let framing = if is_bare || status == 304 || to == Method::Head {
        Framing::None
    } else if is_coded {
        check_transfer_encoding(fields)?;
        Framing::Chunked
    } else {
        length.map_or(Framing::UntilClose, Framing::Length)
    };
    let is_overlong = is_bare && (is_coded || length.is_some_and(|length| length > 0));
    Ok(ResponseFraming { framing, length, is_ambiguous, is_overlong })
}

/// Content-Length of all lines: one number, or copies of it (RFC 9110 §8.6, RFC 9112 §6.3). It
/// is no list by its grammar, so an empty member is a fault here.
fn decode_content_length(fields: Fields<'_>) -> Result<Option<u64>, Refusal> {
    let mut length = None;
    for value in fields.all(Known::ContentLength) {
        for copy in value.split(|&byte| byte == b',') {
            let number = decode_length(trim_ows(copy)).ok_or(Refusal::BadContentLength)?;
            if length.is_some_and(|length| length != number) {
                return Err(Refusal::ConflictingContentLengths);
            }
            length = Some(number);
        }
    }
    Ok(length)
}

/// Decimal digits alone, below 2^63: sums of two lengths then never overflow.
fn decode_length(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    let length = digits.iter().try_fold(0u64, |length, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        length.checked_mul(10)?.checked_add(digit)
    });
    length.filter(|&length| length <= i64::MAX.unsigned_abs())
}

/// Ok if the transfer codings are `chunked`, once and alone (RFC 9112 §6.1, §7).
fn check_transfer_encoding(fields: Fields<'_>) -> Result<(), Refusal> {
    let mut has_chunked = false;
    let mut has_unknown = false;
    for coding in fields.all(Known::TransferEncoding).flat_map(list::members) {
        if has_chunked {
            return Err(Refusal::ChunkedNotLast);
        }
        let name = coding.split(|&byte| byte == b';').next().unwrap_or_default();
        if coding.eq_ignore_ascii_case(b"chunked") {
            has_chunked = true;
        } else if trim_ows(name).eq_ignore_ascii_case(b"chunked") {
            return Err(Refusal::BadTransferEncoding);
        } else {
            has_unknown = true;
        }
    }
    match (has_unknown, has_chunked) {
        (true, _) => Err(Refusal::UnknownTransferEncoding),
        (false, true) => Ok(()),
        (false, false) => Err(Refusal::BadTransferEncoding),
    }
}

/// Whether the sender of a message wants the connection to go on (RFC 9112 §9.3). A proxy does
/// not grant it to a client of HTTP/1.0; that is the caller's rule, a gateway may.
pub(crate) fn wants_keep_alive(version: Version, fields: Fields<'_>) -> bool {
    if !fields.has(Known::Connection) {
        return version == Version::Http11;
    }
    !fields.lists(Known::Connection, b"close")
        && (version == Version::Http11 || fields.lists(Known::Connection, b"keep-alive"))
}
