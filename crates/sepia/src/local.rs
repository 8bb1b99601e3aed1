//! Answers that the proxy gives by itself: refusals, its own page, TRACE and OPTIONS.
//!
//! Nothing of a request is ever shown in HTML.

use std::borrow::Cow;

use wire::{Known, RequestHead, reason_phrase};

use crate::base::{LocalAnswer, Reason};

/// A whole answer but for what concerns the connection.
#[derive(Debug)]
pub(crate) struct LocalContent {
    pub(crate) status: u16,
    pub(crate) media_type: &'static str,
    /// Further field lines.
    pub(crate) lines: &'static str,
    pub(crate) bytes: Cow<'static, [u8]>,
}

const METHODS: &str = "Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, TRACE\r\n";

/// The answer that says why not.
pub(crate) fn refusal(reason: Reason) -> LocalContent {
    // A reason that usually meets nobody who could read an answer still has one to give.
    let status = if reason.status() == 0 { 502 } else { reason.status() };
    let text = format!(
        "{status} {}\n\n{}\n\nReason: {}\n",
        reason_phrase(status),
        reason.sentence(),
        reason.token()
    );
    let lines = match status {
        405 => METHODS,
        503 => "Retry-After: 1\r\n",
        _ => "",
    };
    LocalContent {
        status,
        media_type: "text/plain; charset=utf-8",
        lines,
        bytes: Cow::Owned(text.into_bytes()),
    }
}

/// The answers to requests for the proxy itself.
pub(crate) fn answer(answer: LocalAnswer, request: RequestHead<'_>) -> LocalContent {
    match answer {
        LocalAnswer::ProxyPage => LocalContent {
            status: 200,
            media_type: "text/html; charset=utf-8",
            lines: "",
            bytes: Cow::Borrowed(include_bytes!("local/proxy.html")),
        },
        LocalAnswer::Options => LocalContent {
            status: 200,
            media_type: "text/plain; charset=utf-8",
            lines: METHODS,
            bytes: Cow::Borrowed(b""),
        },
        LocalAnswer::Trace => LocalContent {
            status: 200,
            media_type: "message/http",
            lines: "",
            bytes: Cow::Owned(trace(request)),
        },
    }
}

/// The request as it was received, without what could be a secret (RFC 9110 section 9.3.8).
fn trace(request: RequestHead<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(request.bytes().len());
    let line = request.bytes().split_inclusive(|byte| *byte == b'\n').next();
    out.extend_from_slice(line.unwrap_or_default());
    for field in request.fields().iter() {
        let is_secret = matches!(
            field.known,
            Some(Known::Authorization | Known::Cookie | Known::ProxyAuthorization)
        );
        if !is_secret {
            wire::encode_field(&mut out, field.name, field.value);
        }
    }
    out.extend_from_slice(b"\r\n");
    out
}
