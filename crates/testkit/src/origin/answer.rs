//! One answer of the origin: from a request and the site to a head and its content on the socket.
//!
//! Order of the decisions as RFC 9110 §13.2.2 has it: method and target, If-None-Match, then
//! If-Range and Range. It must never hold a large content in memory: that is made piece by piece
//! while it is sent.

use std::io::{self, Write};
use std::thread;
use std::time::SystemTime;

use crate::message::Request;
use crate::site::{Content, Resource, Site, fill_content};

/// Bytes of one write of generated content.
const PIECE_BYTES: usize = 64 << 10;

/// An answer, ready to be sent.
#[derive(Debug)]
pub(super) struct Answer {
    resource: Resource,
    /// The part of the content that is sent: first position and length.
    part: Option<(u64, u64)>,
    has_content: bool,
    is_head_only: bool,
    is_http10: bool,
}

/// What a Range field asks of a content (RFC 9110 §14.1.2).
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Everything,
    Part { first: u64, length: u64 },
    Unsatisfiable,
}

impl Answer {
    pub(super) fn to(request: &Request, site: &Site) -> Answer {
        let mut answer = Answer {
            resource: resource_for(request, site),
            part: None,
            has_content: true,
            is_head_only: request.method == "HEAD",
            is_http10: request.version == "HTTP/1.0",
        };
        if answer.resource.status == 200 && matches!(&*request.method, "GET" | "HEAD") {
            answer.apply_conditions(request);
        }
        answer
    }

    pub(super) fn status(&self) -> u16 {
        self.resource.status
    }

    pub(super) fn send(&self, output: &mut impl Write, may_persist: bool) -> io::Result<()> {
        let mut message = self.head(may_persist);
        if !self.has_content || self.is_head_only {
            return output.write_all(&message);
        }
        let (first, length) = self.part.unwrap_or((0, self.resource.content.length()));
        match &self.resource.content {
            Content::Bytes(bytes) => {
                let start = usize::try_from(first).unwrap_or(usize::MAX);
                let count = usize::try_from(length).unwrap_or(usize::MAX);
                message.extend(bytes.iter().skip(start).take(count));
                output.write_all(&message)
            }
            Content::Generated { .. } => {
                output.write_all(&message)?;
                send_generated(output, first, length)
            }
            Content::Stream { lines, pause } => {
                output.write_all(&message)?;
                for line in lines {
                    thread::sleep(*pause);
                    output.write_all(self.framed(line).as_bytes())?;
                }
                output.write_all(if self.is_http10 { b"" } else { b"0\r\n\r\n" })
            }
        }
    }

    fn apply_conditions(&mut self, request: &Request) {
        if let Some(etag) = self.resource.etag()
            && names_tag(&request.field_all("if-none-match"), etag)
        {
            self.resource.status = 304;
            self.has_content = false;
            return;
        }
        if matches!(self.resource.content, Content::Stream { .. }) || request.method != "GET" {
            return;
        }
        let Some(range) = request.field("range") else { return };
        if request.field("if-range").is_some_and(|tag| Some(tag) != self.resource.etag()) {
            return;
        }
        let complete = self.resource.content.length();
        match wanted(range, complete) {
            Wanted::Everything => {}
            Wanted::Part { first, length } => {
                let last = first + length - 1;
                self.resource.status = 206;
                self.part = Some((first, length));
                let value = format!("bytes {first}-{last}/{complete}");
                self.resource.fields.push(("Content-Range", value));
            }
            Wanted::Unsatisfiable => {
                self.resource.status = 416;
                self.part = Some((0, 0));
                self.resource.fields.push(("Content-Range", format!("bytes */{complete}")));
            }
        }
    }

    fn head(&self, may_persist: bool) -> Vec<u8> {
        let status = self.resource.status;
        let date = httpdate::fmt_http_date(SystemTime::now());
        let mut head = format!("HTTP/1.1 {status} {}\r\nDate: {date}\r\n", reason_phrase(status));
        let mut push = |name: &str, value: &str| head.push_str(&format!("{name}: {value}\r\n"));
        if self.has_content {
            push("Content-Type", self.resource.content_type);
        }
        self.resource.fields.iter().for_each(|(name, value)| push(name, value));
        let length = self.part.map_or(self.resource.content.length(), |(_, length)| length);
        match (&self.resource.content, self.has_content) {
            (_, false) => {}
            (Content::Stream { .. }, true) if self.is_http10 => {}
            (Content::Stream { .. }, true) => push("Transfer-Encoding", "chunked"),
            (Content::Bytes(_) | Content::Generated { .. }, true) => {
                push("Accept-Ranges", "bytes");
                push("Content-Length", &length.to_string());
            }
        }
        if !may_persist {
            push("Connection", "close");
        }
        head.push_str("\r\n");
        head.into_bytes()
    }

    fn framed(&self, line: &str) -> String {
        match self.is_http10 {
            true => line.to_owned(),
            false => format!("{:x}\r\n{line}\r\n", line.len()),
        }
    }
}

/// The interim response that asks for the content (RFC 9110 §15.2.1).
pub(super) fn send_continue(output: &mut impl Write) -> io::Result<()> {
    output.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
}

fn resource_for(request: &Request, site: &Site) -> Resource {
    let path = path_of(&request.target);
    match (&*request.method, path) {
        ("POST", "/form") => plain(200, request.content.clone()),
        (_, "/form") => not_allowed("POST"),
        ("GET" | "HEAD", _) => {
            let language = request.field("accept-language").unwrap_or("");
            site.resource(path, language)
                .unwrap_or_else(|| plain(404, b"There is nothing here.\n".to_vec()))
        }
        _ if site.resource(path, "").is_some() => not_allowed("GET, HEAD"),
        _ => plain(404, b"There is nothing here.\n".to_vec()),
    }
}

fn plain(status: u16, bytes: Vec<u8>) -> Resource {
    Resource {
        status,
        content_type: "text/plain; charset=utf-8",
        fields: Vec::new(),
        content: Content::Bytes(bytes),
    }
}

fn not_allowed(allowed: &str) -> Resource {
    let mut resource = plain(405, b"Not with this method.\n".to_vec());
    resource.fields.push(("Allow", allowed.to_owned()));
    resource
}

/// The path of an origin-form or absolute-form target, without the query.
fn path_of(target: &str) -> &str {
    let rest = match target.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |start| &rest[start..]),
        None => target,
    };
    rest.split('?').next().unwrap_or(rest)
}

/// Weak comparison with any of the listed tags (RFC 9110 §13.1.2). Our tags hold no comma.
fn names_tag(values: &[&str], etag: &str) -> bool {
    values
        .iter()
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

/// A single byte range; several, or anything else, ask for everything (RFC 9110 §14.2).
fn wanted(range: &str, complete: u64) -> Wanted {
    let Some((first, last)) = range.strip_prefix("bytes=").and_then(|r| r.split_once('-')) else {
        return Wanted::Everything;
    };
    let (first, end) = match (first.trim().parse::<u64>(), last.trim().parse::<u64>()) {
        (Ok(first), Ok(last)) if first <= last => (first, complete.min(last.saturating_add(1))),
        (Ok(first), Err(_)) if last.trim().is_empty() => (first, complete),
        (Err(_), Ok(suffix)) if first.trim().is_empty() => {
            (complete.saturating_sub(suffix), complete)
        }
        _ => return Wanted::Everything,
    };
    match end.checked_sub(first) {
        None | Some(0) => Wanted::Unsatisfiable,
        Some(length) => Wanted::Part { first, length },
    }
}

fn send_generated(output: &mut impl Write, first: u64, length: u64) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    let mut sent = 0;
    while sent < length {
        let count = usize::try_from(length - sent).map_or(PIECE_BYTES, |n| n.min(PIECE_BYTES));
        fill_content(first + sent, &mut piece[..count]);
        output.write_all(&piece[..count])?;
        sent += count as u64;
    }
    Ok(())
}

fn reason_phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        206 => "Partial Content",
        304 => "Not Modified",
        404 => "Not Found",
        405 => "Method Not Allowed",
        416 => "Range Not Satisfiable",
        500 => "Internal Server Error",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::{Wanted, wanted};

    #[test]
    fn rfc9110_14_1_2_single_ranges() {
        let part = |first, length| Wanted::Part { first, length };
        let table = [
            ("bytes=0-0", part(0, 1)),
            ("bytes=10-19", part(10, 10)),
            ("bytes=90-", part(90, 10)),
            ("bytes=90-1000", part(90, 10)),
            ("bytes=90-18446744073709551615", part(90, 10)),
            ("bytes=-10", part(90, 10)),
            ("bytes=-1000", part(0, 100)),
            ("bytes=100-", Wanted::Unsatisfiable),
            ("bytes=-0", Wanted::Unsatisfiable),
            ("bytes=5-4", Wanted::Everything),
            ("bytes=0-1,5-6", Wanted::Everything),
            ("lines=0-1", Wanted::Everything),
            ("bytes=-", Wanted::Everything),
        ];
        for (range, expected) in table {
            assert_eq!(wanted(range, 100), expected, "{range}");
        }
    }
}
