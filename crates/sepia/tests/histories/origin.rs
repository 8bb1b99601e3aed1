//! The origin of a history: serves every version as asked, in random framing, with delays and
//! failures midway, and stamps each answer with what a check needs to know about it.
//!
//! `X-Version`, `X-Variant`: what the content is. `X-Answer`: the answer's number. `X-Sent`: when,
//! in seconds of the history. `X-Lifetime`: for how many seconds it may be reused from then.

use std::fmt::Write as _;
use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use socket2::SockRef;
use wire::date;

use super::message::{Content, Head};
use super::random::Random;
use super::world::{Lifetime, Resource, START, World, index};

/// The lifetime told of a heuristically fresh response: longer than any history.
const LONG: u64 = 1_000_000;

/// A running origin.
pub struct Origin {
    address: SocketAddr,
    accepting: JoinHandle<()>,
    ends: Arc<AtomicBool>,
}

impl Origin {
    /// Begins to serve a world.
    pub fn start(world: &Arc<World>, seed: u64) -> Origin {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("bound");
        let ends = Arc::new(AtomicBool::new(false));
        let (world, ended) = (Arc::clone(world), Arc::clone(&ends));
        let accepting = std::thread::spawn(move || {
            let mut connections = Vec::new();
            for (number, stream) in listener.incoming().enumerate() {
                if ended.load(Ordering::SeqCst) {
                    break;
                }
                let random = Random::new(seed, 1_000 + number as u64);
                let stream = stream.expect("accepted");
                // An answer in two writes must not wait for the first one's acknowledgement.
                stream.set_nodelay(true).expect("a socket");
                let stream = BufReader::new(stream);
                let world = Arc::clone(&world);
                let connection = Connection { world, random, stream };
                connections.push(std::thread::spawn(move || connection.serve()));
            }
            connections.into_iter().for_each(|it| it.join().expect("no connection panicked"));
        });
        Origin { address, accepting, ends }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it, once the proxy has closed its connections; passes a connection's panic on.
    pub fn finish(self) {
        self.ends.store(true, Ordering::SeqCst);
        TcpStream::connect(self.address).expect("it still accepts");
        self.accepting.join().expect("no connection panicked");
    }
}

/// What becomes of a connection after an answer.
enum After {
    Keep,
    Close,
    Reset,
}

struct Connection {
    world: Arc<World>,
    random: Random,
    stream: BufReader<TcpStream>,
}

/// An answer before it is framed.
struct Answer {
    status: &'static str,
    lines: String,
    content: Vec<u8>,
}

impl Connection {
    fn serve(mut self) {
        while let Ok(Some(request)) = Head::read(&mut self.stream) {
            let cache_control = request.field("cache-control").unwrap_or_default();
            assert!(!cache_control.contains("only-if-cached"), "asked the origin nevertheless");
            if request.field("content-length").is_some()
                || request.field("transfer-encoding").is_some()
            {
                let content = Content::read(&mut self.stream, &request);
                if !content.is_whole {
                    return;
                }
            }
            match self.answer(&request) {
                After::Keep => {}
                After::Close => return,
                After::Reset => {
                    let reset = Some(std::time::Duration::ZERO);
                    // The proxy may have closed it already.
                    let _ = SockRef::from(self.stream.get_ref()).set_linger(reset);
                    return;
                }
            }
        }
    }

    fn answer(&mut self, request: &Head) -> After {
        let path = request.word(1);
        let number = path.strip_prefix("/r").and_then(|it| it.parse().ok()).expect("a resource");
        let world = Arc::clone(&self.world);
        let resource = &world.resources[index(number)];
        let answer = match request.word(0) {
            "POST" => self.change(resource),
            _ => self.select(resource, request),
        };
        if self.random.percent(25) {
            let count = 1 + self.random.below(3);
            self.world.let_pass(count);
        }
        if self.random.percent(3) {
            return After::Close;
        }
        self.send(&answer, request.word(0))
    }

    fn change(&mut self, resource: &Resource) -> Answer {
        let version = self.world.change(resource.number);
        let mut lines = self.stamp(version, 0, 0);
        let mut status = "204 No Content";
        if self.random.percent(30) {
            let also = self.random.below(super::world::RESOURCES);
            let version = self.world.change(also);
            let _ = write!(lines, "Location: /r{also}\r\nX-Also: {version}\r\n");
            status = "201 Created";
        } else if self.random.percent(10) {
            status = "500 Internal Server Error";
        }
        Answer { status, lines, content: Vec::new() }
    }

    fn stamp(&self, version: u64, variant: u64, lifetime: u64) -> String {
        let number = self.world.number_answer();
        let sent = self.world.seconds();
        format!(
            "X-Version: {version}\r\nX-Variant: {variant}\r\nX-Answer: {number}\r\n\
             X-Sent: {sent}\r\nX-Lifetime: {lifetime}\r\n"
        )
    }

    /// The answer to GET or HEAD, with its preconditions and its range.
    fn select(&mut self, resource: &Resource, request: &Head) -> Answer {
        // Before the version is read: an answer is never fresher than it says.
        let age = if self.random.percent(15) { self.random.below(4) } else { 0 };
        let mut lines = String::new();
        let lifetime = self.append_lifetime(resource, &mut lines).saturating_sub(age);
        let variant = resource.variant(request.field("accept-language").unwrap_or_default());
        if self.random.percent(3) {
            self.world.change(resource.number);
        }
        let number_and_time = self.stamp(0, variant, lifetime);
        let version = self.world.version(resource.number);
        lines += &number_and_time.replace("X-Version: 0", &format!("X-Version: {version}"));
        if age > 0 {
            let _ = write!(lines, "Age: {age}\r\n");
        }
        append_validators(resource, version, variant, &mut lines);
        if resource.varies {
            lines += "Vary: Accept-Language\r\n";
        }
        if is_not_modified(resource, version, variant, request) {
            return Answer { status: "304 Not Modified", lines, content: Vec::new() };
        }
        let status = match self.random.below(30) {
            0 => "500 Internal Server Error",
            1 => "404 Not Found",
            _ => "200 OK",
        };
        let content = resource.content(version, variant);
        let is_range = status == "200 OK" && resource.takes_ranges && request.word(0) == "GET";
        match is_range.then(|| range(resource, version, variant, request)).flatten() {
            Some((first, last)) => {
                let _ = write!(lines, "Content-Range: bytes {first}-{last}/{}\r\n", content.len());
                let content = content[index(first)..=index(last)].to_vec();
                Answer { status: "206 Partial Content", lines, content }
            }
            None => Answer { status, lines, content },
        }
    }

    /// Appends what states the lifetime; returns it in seconds.
    fn append_lifetime(&mut self, resource: &Resource, lines: &mut String) -> u64 {
        let now = START + self.world.seconds();
        let has_date = self.random.percent(70);
        if has_date || matches!(resource.lifetime, Lifetime::Expires(_)) {
            append_date("Date", now, lines);
        }
        let (value, lifetime) = match resource.lifetime {
            Lifetime::MaxAge(seconds) => (format!("max-age={seconds}"), seconds),
            Lifetime::Shared(seconds) => (format!("max-age=999, s-maxage={seconds}"), seconds),
            Lifetime::MustRevalidate(seconds) => {
                (format!("must-revalidate, max-age={seconds}"), seconds)
            }
            Lifetime::Expires(seconds) => {
                append_date("Expires", now + seconds, lines);
                ("public".to_owned(), seconds)
            }
            Lifetime::Heuristic if resource.has_modified => ("public".to_owned(), LONG),
            Lifetime::Heuristic => ("public".to_owned(), 0),
            Lifetime::NoCache => ("no-cache, max-age=99".to_owned(), 0),
            Lifetime::NoStore => ("no-store, max-age=99".to_owned(), 0),
        };
        let _ = write!(lines, "Cache-Control: {value}\r\n");
        lifetime
    }

    /// Frames and sends an answer, or the first part of it.
    fn send(&mut self, answer: &Answer, method: &str) -> After {
        let is_bare = method == "HEAD" || answer.status.starts_with("304");
        let is_empty = answer.status.starts_with("204");
        let mut out = String::new();
        if self.random.percent(5) {
            out += "HTTP/1.1 103 Early Hints\r\nLink: </r0>\r\n\r\n";
        }
        let _ = write!(out, "HTTP/1.1 {}\r\n{}", answer.status, answer.lines);
        let mut bytes = Vec::new();
        let framing = if is_empty || is_bare { 3 } else { self.random.below(3) };
        match framing {
            0 => {
                let _ = write!(out, "Content-Length: {}\r\n\r\n", answer.content.len());
                bytes.extend_from_slice(&answer.content);
            }
            1 => {
                out += "Transfer-Encoding: chunked\r\n\r\n";
                self.append_chunks(&answer.content, &mut bytes);
            }
            2 => {
                out += "Connection: close\r\n\r\n";
                bytes.extend_from_slice(&answer.content);
            }
            _ if method == "HEAD" && self.random.percent(50) => {
                let _ = write!(out, "Content-Length: {}\r\n\r\n", answer.content.len());
            }
            _ => out += "\r\n",
        }
        let fails = !bytes.is_empty() && self.random.percent(8);
        if fails {
            bytes.truncate(index(self.random.below(bytes.len() as u64)));
        }
        let bytes = [out.into_bytes(), bytes].concat();
        if self.write_in_parts(&bytes).is_err() || fails {
            return After::Reset;
        }
        if framing == 2 || self.random.percent(5) { After::Close } else { After::Keep }
    }

    fn append_chunks(&mut self, content: &[u8], bytes: &mut Vec<u8>) {
        let mut rest = content;
        while !rest.is_empty() {
            let most = rest.len().min(20_000) as u64;
            let (chunk, after) = rest.split_at(index(1 + self.random.below(most)));
            bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            bytes.extend_from_slice(chunk);
            bytes.extend_from_slice(b"\r\n");
            rest = after;
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
    }

    fn write_in_parts(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let split = index(self.random.below(bytes.len() as u64 + 1));
        let (first, second) = bytes.split_at(split);
        self.stream.get_mut().write_all(first)?;
        if self.random.percent(20) {
            self.world.let_pass(1);
        }
        self.stream.get_mut().write_all(second)
    }
}

/// Appends a field line with a date.
pub fn append_date(name: &str, seconds: u64, lines: &mut String) {
    let seconds = i64::try_from(seconds).expect("a date of this century");
    let text = date::encode(seconds);
    let _ = write!(lines, "{name}: {}\r\n", String::from_utf8_lossy(&text));
}

fn append_validators(resource: &Resource, version: u64, variant: u64, lines: &mut String) {
    if let Some(tag) = resource.tag(version, variant) {
        let _ = write!(lines, "ETag: {tag}\r\n");
    }
    if resource.has_modified {
        append_date("Last-Modified", Resource::modified(version), lines);
    }
}

/// RFC 9110 section 13.2.2: If-Modified-Since only counts without If-None-Match.
fn is_not_modified(resource: &Resource, version: u64, variant: u64, request: &Head) -> bool {
    let since = request.field("if-modified-since").map(seconds_of);
    match (request.field("if-none-match"), resource.tag(version, variant)) {
        (Some(listed), Some(tag)) => listed.split(", ").any(|it| opaque(it) == opaque(&tag)),
        (Some(_), None) => false,
        (None, _) => {
            resource.has_modified && since.is_some_and(|it| Resource::modified(version) <= it)
        }
    }
}

/// A tag as the weak comparison sees it.
pub fn opaque(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

/// An IMF-fixdate in seconds since the epoch.
pub fn seconds_of(text: &str) -> u64 {
    let decoded = date::decode(text.as_bytes());
    decoded.and_then(|seconds| u64::try_from(seconds).ok()).expect("a date")
}

/// The first and last byte that the request asks for, if it is to get a part.
fn range(resource: &Resource, version: u64, variant: u64, request: &Head) -> Option<(u64, u64)> {
    if let Some(tag) = request.field("if-range")
        && (tag.starts_with("W/") || resource.tag(version, variant).as_deref() != Some(tag))
    {
        return None;
    }
    resolve(request.field("range")?, resource.length(version, variant))
}

/// The first and last byte of a range of content of that length, if there are any.
pub fn resolve(range: &str, length: u64) -> Option<(u64, u64)> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let (first, last) = match (first.parse::<u64>(), last.parse::<u64>()) {
        (Ok(first), Ok(last)) => (first, last.min(length.checked_sub(1)?)),
        (Ok(first), Err(_)) => (first, length.checked_sub(1)?),
        (Err(_), Ok(count)) => (length.saturating_sub(count), length.checked_sub(1)?),
        (Err(_), Err(_)) => return None,
    };
    (first <= last && first < length).then_some((first, last))
}
