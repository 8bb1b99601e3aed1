//! Heads and moments for tables: decoded by `wire` from the bytes a peer would send.

use caching::{Moment, Options, Received, StoreDecision, store_decision};
use wire::{
    Decoded, FieldSpans, Fields, HeadLimits, Method, RequestHead, RequestSpans, ResponseHead,
    ResponseSpans,
};

/// Sunday, 6 November 1994, 08:49:37 GMT: the RFC's own example.
pub const NOW: i64 = 784_111_777;

/// The moment that many seconds after `NOW`, on both clocks.
pub fn after(seconds: i64) -> Moment {
    let monotonic = u64::try_from(1_000_000 + seconds * 1_000).expect("tables stay after the boot");
    Moment { wall: NOW + seconds, monotonic }
}

/// An HTTP-date that many seconds after `NOW`.
pub fn date(seconds: i64) -> String {
    String::from_utf8_lossy(&wire::date::encode(NOW + seconds)).into_owned()
}

/// A field line with a date.
pub fn dated(name: &str, seconds: i64) -> String {
    format!("{name}: {}", date(seconds))
}

pub struct Request {
    bytes: Vec<u8>,
    spans: RequestSpans,
}

impl Request {
    pub fn new(method: &str, lines: &[&str]) -> Request {
        let target = if method == "CONNECT" { "example.org:443" } else { "/" };
        let head = format!("{method} {target} HTTP/1.1\r\nHost: example.org\r\n");
        let bytes = with_lines(head.into_bytes(), lines.iter().map(|line| line.as_bytes()));
        Request::decode(bytes).expect("a valid request")
    }

    pub fn decode(bytes: Vec<u8>) -> Option<Request> {
        let mut spans = RequestSpans::default();
        let decoded = wire::decode_request(&bytes, &mut spans, &HeadLimits::default()).ok()?;
        matches!(decoded, Decoded::Complete { .. }).then_some(Request { bytes, spans })
    }

    pub fn head(&self) -> RequestHead<'_> {
        self.spans.head(&self.bytes)
    }
}

pub fn get(lines: &[&str]) -> Request {
    Request::new("GET", lines)
}

pub struct Response {
    bytes: Vec<u8>,
    spans: ResponseSpans,
}

impl Response {
    pub fn new(status: u16, lines: &[&str]) -> Response {
        let head = format!("HTTP/1.1 {status} Reason\r\n").into_bytes();
        let bytes = with_lines(head, lines.iter().map(|line| line.as_bytes()));
        Response::decode(bytes).expect("a valid response")
    }

    pub fn decode(mut bytes: Vec<u8>) -> Option<Response> {
        let mut spans = ResponseSpans::default();
        let limits = HeadLimits::default();
        let decoded = wire::decode_response(&mut bytes, &mut spans, Method::Get, &limits).ok()?;
        matches!(decoded, Decoded::Complete { .. }).then_some(Response { bytes, spans })
    }

    pub fn head(&self) -> ResponseHead<'_> {
        self.spans.head(&self.bytes)
    }
}

/// A stored field section.
pub struct Section {
    bytes: Vec<u8>,
    spans: FieldSpans,
}

impl Section {
    pub fn new(lines: &[&str]) -> Section {
        Section::decode(lines.iter().flat_map(|line| [line.as_bytes(), b"\r\n"].concat()).collect())
    }

    pub fn decode(bytes: Vec<u8>) -> Section {
        let spans = FieldSpans::decode_lines(&bytes);
        Section { bytes, spans }
    }

    pub fn fields(&self) -> Fields<'_> {
        self.spans.of(&self.bytes)
    }

    pub fn lines(&self) -> Vec<&str> {
        str::from_utf8(&self.bytes).expect("tables are text").lines().collect()
    }
}

pub fn with_lines<'a>(mut head: Vec<u8>, lines: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    for line in lines {
        head.extend_from_slice(line);
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// What the default options decide about a response that came at once, at `NOW`.
pub fn decide(request: &Request, response: &Response) -> StoreDecision {
    decide_with(request, response, &Options::default())
}

pub fn decide_with(request: &Request, response: &Response, options: &Options) -> StoreDecision {
    let exchange = Received {
        request: request.head(),
        response: response.head(),
        requested: after(0),
        received: after(0),
    };
    store_decision(&exchange, options)
}
