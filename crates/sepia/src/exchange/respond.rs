//! Hop 7, respond: the client's preconditions and range, Age, Cache-Status, framing: from a
//! stored response, or from nothing, to the bytes of a head. RFC 9110 sections 13 to 15, RFC 9111
//! section 5.1, RFC 9112 section 6.

use std::ops::Range;

use caching::{Moment, Precondition, RangeOutcome, evaluate_preconditions, evaluate_range};
use store::Stored;
use wire::{Known, Method, RequestHead, Version, date, encode_decimal};

use super::status::Handling;
use crate::base::{LocalAnswer, Reason};
use crate::local::{self, LocalContent};

/// The content that follows a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentSource {
    /// Nothing, or it stands behind the head already.
    None,
    /// Bytes `first..end` of the complete stored content.
    Stored { first: u64, end: u64 },
    /// All that is still being written, framed so.
    Stream(StreamFraming),
}

/// How content of a response that is still being written is framed for this client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamFraming {
    Length,
    Chunked { with_trailers: bool },
    UntilClose,
}

/// A head that was appended to a buffer.
#[derive(Clone, Debug)]
pub(crate) struct Composed {
    pub(crate) status: u16,
    /// Where the value of Cache-Status stands in the buffer.
    pub(crate) cache_status: Range<usize>,
    pub(crate) content: ContentSource,
    /// Content bytes that will follow, if that is known.
    pub(crate) length: u64,
    /// Whether the connection outlives the answer.
    pub(crate) keeps: bool,
    /// Why the answer is a refusal, if it is one.
    pub(crate) reason: Option<Reason>,
}

/// A request as far as its answer's form depends on it.
#[derive(Clone, Copy)]
pub(crate) struct Client<'a> {
    pub(crate) head: RequestHead<'a>,
    /// Whether the connection may go on after the answer.
    pub(crate) may_keep: bool,
    pub(crate) now: Moment,
}

impl Client<'_> {
    fn is_head(&self) -> bool {
        self.head.method() == Method::Head
    }
}

/// Appends the head of an answer from `stored`.
pub(crate) fn respond_stored(
    client: &Client<'_>,
    stored: &Stored,
    handling: Handling,
    out: &mut Vec<u8>,
) -> Composed {
    let selected = matches!(client.head.method(), Method::Get | Method::Head);
    let fields = stored.head.fields();
    if selected
        && evaluate_preconditions(client.head, stored.head.status(), fields)
            == Precondition::NotModified
    {
        return respond_not_modified(client, stored, handling, out);
    }
    if let Some(length) = stored.content.complete_len()
        && stored.head.status() == 200
        && client.head.fields().has(Known::Range)
    {
        match evaluate_range(client.head, fields, length) {
            RangeOutcome::Part { first, last } => {
                let part = Part { first, end: last + 1, length };
                return respond_part(client, stored, handling, part, out);
            }
            RangeOutcome::Unsatisfiable => {
                return respond_unsatisfiable(client, stored, handling, length, out);
            }
            RangeOutcome::Whole => {}
        }
    }
    respond_whole(client, stored, handling, out)
}

fn respond_whole(
    client: &Client<'_>,
    stored: &Stored,
    handling: Handling,
    out: &mut Vec<u8>,
) -> Composed {
    let status = stored.head.status();
    let mut ending = Ending { client, stored: Some(stored), handling, keeps: client.may_keep };
    wire::encode_status_line(out, status);
    out.extend_from_slice(stored.head.lines());
    let complete = stored.content.complete_len();
    // RFC 9112 section 6.3: these never have content, whatever their fields say.
    if matches!(status, 100..200 | 204 | 304) {
        return ending.end(out, Composing { status, content: ContentSource::None, length: 0 });
    }
    if let Some(length) = complete.or(stored.declared_length) {
        encode_number(out, b"Content-Length: ", length);
        let content = match complete {
            _ if client.is_head() => ContentSource::None,
            Some(end) => ContentSource::Stored { first: 0, end },
            None => ContentSource::Stream(StreamFraming::Length),
        };
        let length = if client.is_head() { 0 } else { length };
        return ending.end(out, Composing { status, content, length });
    }
    if client.is_head() {
        return ending.end(out, Composing { status, content: ContentSource::None, length: 0 });
    }
    let framing = if client.head.version() == Version::Http11 {
        out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        StreamFraming::Chunked { with_trailers: client.head.fields().lists(Known::Te, b"trailers") }
    } else {
        ending.keeps = false;
        StreamFraming::UntilClose
    };
    ending.end(out, Composing { status, content: ContentSource::Stream(framing), length: 0 })
}

struct Part {
    first: u64,
    end: u64,
    length: u64,
}

fn respond_part(
    client: &Client<'_>,
    stored: &Stored,
    handling: Handling,
    part: Part,
    out: &mut Vec<u8>,
) -> Composed {
    let ending = Ending { client, stored: Some(stored), handling, keeps: client.may_keep };
    wire::encode_status_line(out, 206);
    out.extend_from_slice(stored.head.lines());
    out.extend_from_slice(b"Content-Range: bytes ");
    encode_decimal(out, part.first);
    out.push(b'-');
    encode_decimal(out, part.end - 1);
    out.push(b'/');
    encode_decimal(out, part.length);
    let length = part.end - part.first;
    encode_number(out, b"\r\nContent-Length: ", length);
    let content = ContentSource::Stored { first: part.first, end: part.end };
    ending.end(out, Composing { status: 206, content, length })
}

fn respond_unsatisfiable(
    client: &Client<'_>,
    stored: &Stored,
    handling: Handling,
    length: u64,
    out: &mut Vec<u8>,
) -> Composed {
    let ending = Ending { client, stored: None, handling, keeps: client.may_keep };
    wire::encode_status_line(out, 416);
    for field in stored.head.fields().iter() {
        if matches!(field.known, Some(Known::Date | Known::Via)) {
            wire::encode_field(out, field.name, field.value);
        }
    }
    encode_number(out, b"Content-Range: bytes */", length);
    out.extend_from_slice(b"Content-Length: 0\r\n");
    ending.end(out, Composing { status: 416, content: ContentSource::None, length: 0 })
}

/// RFC 9110 section 15.4.5: no representation metadata but what names the representation.
fn respond_not_modified(
    client: &Client<'_>,
    stored: &Stored,
    handling: Handling,
    out: &mut Vec<u8>,
) -> Composed {
    let ending = Ending { client, stored: Some(stored), handling, keeps: client.may_keep };
    wire::encode_status_line(out, 304);
    for field in stored.head.fields().iter() {
        let describes_content = matches!(
            field.known,
            Some(
                Known::ContentType
                    | Known::ContentEncoding
                    | Known::ContentLanguage
                    | Known::ContentRange
                    | Known::AcceptRanges
            )
        );
        if !describes_content {
            wire::encode_field(out, field.name, field.value);
        }
    }
    ending.end(out, Composing { status: 304, content: ContentSource::None, length: 0 })
}

/// Appends a whole answer that the proxy gives by itself.
pub(crate) fn respond_local(
    client: &Client<'_>,
    answer: Result<LocalAnswer, Reason>,
    out: &mut Vec<u8>,
) -> Composed {
    let content = match answer {
        Ok(answer) => local::answer(answer, client.head),
        Err(reason) => local::refusal(reason),
    };
    let keeps = client.may_keep && answer.err().is_none_or(|reason| !reason.closes());
    let ending = Ending { client, stored: None, handling: Handling::Local(answer.err()), keeps };
    append_local_head(&content, answer.err(), client.now, out);
    let length = if client.is_head() { 0 } else { content.bytes.len() as u64 };
    let composed =
        ending.end(out, Composing { status: content.status, content: ContentSource::None, length });
    if !client.is_head() {
        out.extend_from_slice(&content.bytes);
    }
    composed
}

/// Appends a whole answer to bytes that were no request; the connection closes. The sender of a
/// HEAD, however faulty the rest of it, gets no content (RFC 9110 section 9.3.2).
pub(crate) fn respond_refused(
    reason: Reason,
    request: &[u8],
    now: Moment,
    out: &mut Vec<u8>,
) -> Composed {
    let content = local::refusal(reason);
    append_local_head(&content, Some(reason), now, out);
    let handling = Handling::Local(Some(reason));
    let cache_status = append_cache_status(handling, content.status, out);
    out.extend_from_slice(b"Connection: close\r\n\r\n");
    let is_head = request.strip_prefix(b"\r\n").unwrap_or(request).starts_with(b"HEAD ");
    let bytes = if is_head { &[][..] } else { &content.bytes };
    out.extend_from_slice(bytes);
    let length = bytes.len() as u64;
    Composed {
        status: content.status,
        cache_status,
        content: ContentSource::None,
        length,
        keeps: false,
        reason: Some(reason),
    }
}

fn append_local_head(
    content: &LocalContent,
    reason: Option<Reason>,
    now: Moment,
    out: &mut Vec<u8>,
) {
    wire::encode_status_line(out, content.status);
    wire::encode_field(out, b"Date", &date::encode(now.wall));
    wire::encode_field(out, b"Content-Type", content.media_type.as_bytes());
    out.extend_from_slice(content.lines.as_bytes());
    out.extend_from_slice(b"Cache-Control: no-store\r\n");
    encode_number(out, b"Content-Length: ", content.bytes.len() as u64);
    if let Some(error) = reason.and_then(Reason::proxy_status) {
        out.extend_from_slice(b"Proxy-Status: sepia; error=");
        out.extend_from_slice(error.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

/// What an answer's last lines depend on.
struct Ending<'a> {
    client: &'a Client<'a>,
    stored: Option<&'a Stored>,
    handling: Handling,
    keeps: bool,
}

struct Composing {
    status: u16,
    content: ContentSource,
    length: u64,
}

impl Ending<'_> {
    /// Age, Cache-Status, Connection, and the empty line.
    fn end(&self, out: &mut Vec<u8>, composing: Composing) -> Composed {
        self.append_age(out);
        let cache_status = append_cache_status(self.handling, composing.status, out);
        if !self.keeps {
            out.extend_from_slice(b"Connection: close\r\n");
        } else if self.client.head.version() == Version::Http10 {
            out.extend_from_slice(b"Connection: keep-alive\r\n");
        }
        out.extend_from_slice(b"\r\n");
        Composed {
            status: composing.status,
            cache_status,
            content: composing.content,
            length: composing.length,
            keeps: self.keeps,
            reason: match self.handling {
                Handling::Local(reason) => reason,
                _ => None,
            },
        }
    }

    /// A response from the store always states its age; a fresh one from the origin only if it
    /// has grown old on its way (RFC 9111 section 5.1).
    fn append_age(&self, out: &mut Vec<u8>) {
        let Some(freshness) = self.stored.and_then(|stored| stored.freshness) else { return };
        let age = freshness.current_age(self.client.now);
        let from_store = matches!(self.handling, Handling::Hit { .. } | Handling::Joined { .. });
        if from_store || age > 0 {
            encode_number(out, b"Age: ", u64::from(age));
        }
    }
}

fn append_cache_status(handling: Handling, answered: u16, out: &mut Vec<u8>) -> Range<usize> {
    out.extend_from_slice(b"Cache-Status: ");
    let start = out.len();
    handling.encode(answered, out);
    let end = out.len();
    out.extend_from_slice(b"\r\n");
    start..end
}

fn encode_number(out: &mut Vec<u8>, name: &[u8], number: u64) {
    out.extend_from_slice(name);
    encode_decimal(out, number);
    out.extend_from_slice(b"\r\n");
}
