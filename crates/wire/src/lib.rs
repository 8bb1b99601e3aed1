//! HTTP/1.1 and HTTP/1.0 messages from and to bytes.
//!
//! No input or output, no clock, no waiting: bytes in, slices and decisions out, resumable at any
//! byte. Requests are judged strictly, responses as leniently as RFC 9112 asks of a proxy; every
//! "no" is a [`Refusal`] with its sentence. Nothing here may panic on bytes of a peer, and every
//! buffer is bounded by limits that the caller passes.
//!
//! | to do | call |
//! |---|---|
//! | read a request | [`decode_request`], then [`RequestSpans::head`] |
//! | read a response | [`decode_response`], then [`ResponseSpans::head`] |
//! | read content | [`ContentDecoder`] with the head's [`Framing`] |
//! | read fields | [`Fields`], [`members`], [`date`] |
//! | write | the `encode_` functions |
//!
//! RFC 9112 is the format, RFC 9110 §5 the fields, §4 and §7 the targets.

#![forbid(unsafe_code)]

mod chunked;
mod content;
pub mod date;
mod encode;
mod field;
mod framing;
mod head;
mod known;
mod list;
mod method;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod oracle;
mod refusal;
mod request;
mod response;
mod target;
mod token;

pub use content::{ContentDecoder, ContentLimits, Piece};
pub use encode::{
    LAST_CHUNK, encode_chunk_head, encode_decimal, encode_field, encode_request_line,
    encode_status_line, reason_phrase,
};
pub use field::{Field, FieldSpans, Fields};
pub use framing::{Framing, Version};
pub use head::{Decoded, HeadLimits};
pub use known::Known;
pub use list::members;
pub use method::Method;
pub use refusal::Refusal;
pub use request::{RequestHead, RequestSpans, decode_request};
pub use response::{ResponseHead, ResponseSpans, decode_response};
pub use target::{Authority, Target};
pub use token::{is_ows, is_tchar, is_token, trim_ows};
