//! One request on an admin connection, and its answer.
//!
//! The head is decoded by the same strict decoder as a client's. Whatever is wrong ends in an
//! answer and a close; there is never a second request on a connection.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use wire::{Decoded, HeadLimits, Method, RequestSpans};

use super::live::Live;
use super::{metrics, status};
use crate::base::limits;

/// Which listener a connection came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Door {
    /// The control socket: everything.
    Control,
    /// The admin listener: what harms nobody.
    Admin,
}

/// A byte stream whose silence can be bounded.
pub(super) trait Stream: Read + Write {
    /// Bounds the next read and write.
    fn set_patience(&self, patience: Duration) -> io::Result<()>;
}

impl Stream for std::net::TcpStream {
    fn set_patience(&self, patience: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(patience))?;
        self.set_write_timeout(Some(patience))
    }
}

impl Stream for std::os::unix::net::UnixStream {
    fn set_patience(&self, patience: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(patience))?;
        self.set_write_timeout(Some(patience))
    }
}

/// An answer before it is written.
#[derive(Debug)]
struct Answer {
    status: u16,
    media_type: &'static str,
    allow: Option<&'static str>,
    content: String,
}

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

impl Answer {
    fn text(status: u16, content: impl Into<String>) -> Self {
        Answer { status, media_type: TEXT, allow: None, content: content.into() }
    }

    fn encode(&self, method: Method) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.content.len() + 256);
        wire::encode_status_line(&mut out, self.status);
        wire::encode_field(&mut out, b"Content-Type", self.media_type.as_bytes());
        wire::encode_field(&mut out, b"Cache-Control", b"no-store");
        wire::encode_field(&mut out, b"Connection", b"close");
        if let Some(allow) = self.allow {
            wire::encode_field(&mut out, b"Allow", allow.as_bytes());
        }
        let mut length = Vec::new();
        wire::encode_decimal(&mut length, self.content.len() as u64);
        wire::encode_field(&mut out, b"Content-Length", &length);
        out.extend_from_slice(b"\r\n");
        if method != Method::Head {
            out.extend_from_slice(self.content.as_bytes());
        }
        out
    }
}

/// Serves one connection from its first byte to its close.
///
/// # Errors
/// When the peer goes, or is silent for longer than [`limits::ADMIN_SILENCE`].
pub(super) fn serve(stream: &mut impl Stream, door: Door, live: &dyn Live) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(1024);
    let mut spans = RequestSpans::default();
    let limits = HeadLimits {
        head_bytes: limits::ADMIN_HEAD_BYTES,
        line_bytes: limits::ADMIN_HEAD_BYTES,
        ..HeadLimits::default()
    };
    let deadline = Instant::now() + limits::ADMIN_SILENCE;
    loop {
        match wire::decode_request(&bytes, &mut spans, &limits) {
            Ok(Decoded::Complete { .. }) => {
                let head = spans.head(&bytes);
                let method = head.method();
                let answer = respond(method, head.path_query(), door, live);
                return finish(stream, &answer.encode(method));
            }
            Ok(Decoded::Partial) => {}
            Err(refusal) => {
                let answer = Answer::text(refusal.status(), format!("{refusal}\n"));
                return finish(stream, &answer.encode(Method::Get));
            }
        }
        // The whole head has one deadline, so that a trickle does not hold a place.
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_patience(left)?;
        let mut block = [0; 1024];
        match stream.read(&mut block)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => bytes.extend_from_slice(&block[..count]),
        }
    }
}

fn finish(stream: &mut impl Stream, answer: &[u8]) -> io::Result<()> {
    stream.set_patience(limits::ADMIN_SILENCE)?;
    stream.write_all(answer)?;
    stream.flush()
}

/// The table of what is served where.
fn respond(method: Method, path_query: &[u8], door: Door, live: &dyn Live) -> Answer {
    let path_query = String::from_utf8_lossy(path_query);
    let (path, query) = path_query.split_once('?').unwrap_or((&path_query, ""));
    let is_read = matches!(method, Method::Get | Method::Head);
    match (door, path) {
        (_, "/metrics" | "/ready") | (Door::Control, "/status") if !is_read => refuse("GET, HEAD"),
        (_, "/metrics") => match metrics::encode(live) {
            Ok(content) => {
                Answer { status: 200, media_type: metrics::MEDIA_TYPE, allow: None, content }
            }
            Err(_) => Answer::text(500, "the metrics cannot be encoded\n"),
        },
        (_, "/ready") if live.ready() => Answer::text(200, "ready\n"),
        (_, "/ready") => Answer::text(503, "draining\n"),
        (Door::Control, "/status") => status_answer(query, live),
        (Door::Control, "/reload") if method != Method::Post => refuse("POST"),
        (Door::Control, "/reload") => match live.reload() {
            Ok(changes) => Answer::text(200, changes + "\n"),
            Err(mistakes) => Answer::text(422, mistakes + "\n"),
        },
        (Door::Control, _) => {
            Answer::text(404, "here are /status, /metrics, /ready and POST /reload\n")
        }
        (Door::Admin, _) => Answer::text(404, "here are /metrics and /ready\n"),
    }
}

fn status_answer(query: &str, live: &dyn Live) -> Answer {
    if query.split('&').any(|part| part == "json") {
        let content = format!("{:#}\n", status::json(live));
        return Answer { status: 200, media_type: JSON, allow: None, content };
    }
    let amount = match query.split('&').any(|part| part == "all") {
        true => status::Amount::All,
        false => status::Amount::NotZero,
    };
    Answer::text(200, status::text(live, amount))
}

fn refuse(allow: &'static str) -> Answer {
    Answer { allow: Some(allow), ..Answer::text(405, format!("use {allow}\n")) }
}
