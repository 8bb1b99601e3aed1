//! Messages of HTTP/1.1 as a test sees them, and a lenient reader for them.
//!
//! It must never judge: what a peer sent is kept as it came (`raw_head`, duplicate field lines,
//! odd bytes), so that a test can assert it. RFC 9112 §2–§7, only as far as finding the end of a
//! message needs it.
//!
//! Field bytes become text one char a byte (Latin-1), so that no byte is lost on the way.

use std::fmt;
use std::io::{self, Read};

/// Bytes a head may have. Far above any proxy's limit, so that ours is never the one tested.
const HEAD_BYTES_MAX: usize = 4 << 20;
/// Bytes that one message's content may have in memory.
const CONTENT_BYTES_MAX: usize = 256 << 20;
/// Bytes of one chunk line or trailer line.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Bytes taken from the stream by one read.
const READ_BYTES: usize = 16 << 10;

/// Field lines in the order they came, duplicates kept (RFC 9110 §5.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldLines(Vec<(String, String)>);

impl FieldLines {
    /// The value of the first line of that name, in any case.
    pub fn first(&self, name: &str) -> Option<&str> {
        self.all(name).into_iter().next()
    }

    /// The values of every line of that name, in order.
    pub fn all(&self, name: &str) -> Vec<&str> {
        self.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|l| l.1).collect()
    }

    /// Whether a list member of any line of that name equals `member`, in any case.
    pub fn lists(&self, name: &str, member: &str) -> bool {
        self.all(name)
            .iter()
            .flat_map(|value| value.split(','))
            .any(|found| found.trim().eq_ignore_ascii_case(member))
    }

    /// Every line as (name, value), both as they were sent, without the whitespace around.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// How many lines there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no line.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn push_line(&mut self, line: &[u8]) {
        let text = latin1(line);
        match (text.starts_with([' ', '\t']), self.0.last_mut()) {
            (true, Some((_, value))) => {
                value.push(' ');
                value.push_str(text.trim());
            }
            _ => {
                let (name, value) = text.split_once(':').unwrap_or((&text, ""));
                self.0.push((name.trim().to_owned(), value.trim().to_owned()));
            }
        }
    }
}

impl fmt::Display for FieldLines {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|(name, value)| writeln!(formatter, "{name}: {value}"))
    }
}

/// A request as the origin received it.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The method, as sent.
    pub method: String,
    /// The request target, as sent (RFC 9112 §3.2).
    pub target: String,
    /// The version, such as `HTTP/1.1`.
    pub version: String,
    /// The field lines of the head.
    pub fields: FieldLines,
    /// The content; empty when only the head was asked for.
    pub content: Vec<u8>,
    /// The trailer section of chunked content.
    pub trailers: FieldLines,
    /// The head, byte for byte, with the empty line that ends it.
    pub raw_head: Vec<u8>,
}

impl Request {
    /// The value of the first field line of that name, in any case.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.first(name)
    }

    /// The values of every field line of that name, in order.
    pub fn field_all(&self, name: &str) -> Vec<&str> {
        self.fields.all(name)
    }

    /// The content as text; bytes that are no UTF-8 are replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.content).into_owned()
    }

    fn decode(raw_head: Vec<u8>) -> Request {
        let (line, fields) = split_head(&raw_head);
        let mut words = line.splitn(3, ' ').map(str::to_owned);
        let mut word = || words.next().unwrap_or_default();
        let (method, target, version) = (word(), word(), word());
        Request { method, target, version, fields, raw_head, ..Request::default() }
    }

    fn framing(&self) -> Framing {
        match framing_of(&self.fields) {
            Framing::UntilClose => Framing::None,
            framing => framing,
        }
    }
}

/// A response as the client received it, interim or final.
#[derive(Clone, Debug, Default)]
pub struct Response {
    /// The version, such as `HTTP/1.1`.
    pub version: String,
    /// The status code; 0 when the status line held none.
    pub status: u16,
    /// The reason phrase, as sent.
    pub reason: String,
    /// The field lines of the head.
    pub fields: FieldLines,
    /// The content; empty when only the head was asked for.
    pub content: Vec<u8>,
    /// The trailer section of chunked content.
    pub trailers: FieldLines,
    /// The head, byte for byte, with the empty line that ends it.
    pub raw_head: Vec<u8>,
}

impl Response {
    /// The value of the first field line of that name, in any case.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.first(name)
    }

    /// The values of every field line of that name, in order.
    pub fn field_all(&self, name: &str) -> Vec<&str> {
        self.fields.all(name)
    }

    /// The content as text; bytes that are no UTF-8 are replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.content).into_owned()
    }

    fn decode(raw_head: Vec<u8>) -> Response {
        let (line, fields) = split_head(&raw_head);
        let mut words = line.splitn(3, ' ').map(str::to_owned);
        let mut word = || words.next().unwrap_or_default();
        let (version, status, reason) = (word(), word(), word());
        let status = status.parse().unwrap_or(0);
        Response { version, status, reason, fields, raw_head, ..Response::default() }
    }

    /// RFC 9112 §6.3, rules 1 and 2: what the request and the status say comes first.
    fn framing(&self, method: &str) -> Framing {
        let bare = matches!(self.status, 100..=199 | 204 | 304) || method == "HEAD";
        let tunnel = method == "CONNECT" && matches!(self.status, 200..=299);
        if bare || tunnel { Framing::None } else { framing_of(&self.fields) }
    }
}

/// How the end of the content is found (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    None,
    Length(usize),
    Chunked,
    UntilClose,
}

fn framing_of(fields: &FieldLines) -> Framing {
    if fields.lists("transfer-encoding", "chunked") {
        return Framing::Chunked;
    }
    match fields.first("content-length").and_then(|value| value.parse().ok()) {
        Some(length) => Framing::Length(length),
        None => Framing::UntilClose,
    }
}

/// Reads messages from a blocking stream; what follows a message stays for the next one.
#[derive(Debug)]
pub(crate) struct MessageReader<S> {
    stream: S,
    buffer: Vec<u8>,
    start: usize,
}

impl<S: Read> MessageReader<S> {
    pub(crate) fn new(stream: S) -> Self {
        MessageReader { stream, buffer: Vec::new(), start: 0 }
    }

    pub(crate) fn stream(&self) -> &S {
        &self.stream
    }

    pub(crate) fn stream_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    pub(crate) fn into_stream(self) -> S {
        self.stream
    }

    /// Takes the bytes received and not yet read as part of a message.
    pub(crate) fn take_buffered(&mut self) -> Vec<u8> {
        let bytes = self.buffered().to_vec();
        self.start = self.buffer.len();
        bytes
    }

    /// Bytes received and not yet read as part of a message.
    pub(crate) fn buffered(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// The next request's head; `None` when the peer closed before its first byte.
    pub(crate) fn request_head(&mut self) -> io::Result<Option<Request>> {
        Ok(self.head()?.map(Request::decode))
    }

    /// The content and trailers that belong to `request`.
    pub(crate) fn request_content(&mut self, request: &mut Request) -> io::Result<()> {
        (request.content, request.trailers) = self.content(request.framing())?;
        Ok(())
    }

    /// The next response's head; `None` when the peer closed before its first byte.
    pub(crate) fn response_head(&mut self) -> io::Result<Option<Response>> {
        Ok(self.head()?.map(Response::decode))
    }

    /// The content and trailers of `response`, which answers a request of that method.
    pub(crate) fn response_content(
        &mut self,
        response: &mut Response,
        method: &str,
    ) -> io::Result<()> {
        (response.content, response.trailers) = self.content(response.framing(method))?;
        Ok(())
    }

    /// Exactly `length` bytes.
    pub(crate) fn exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        if length > CONTENT_BYTES_MAX {
            return Err(invalid(format!("{length} bytes are more than a test may hold")));
        }
        let mut bytes = Vec::new();
        while bytes.len() < length {
            if self.buffered().is_empty() && self.fill()? == 0 {
                let cause = format!("closed after {} of {length} bytes", bytes.len());
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, cause));
            }
            let taken = self.buffered().len().min(length - bytes.len());
            bytes.extend_from_slice(&self.buffered()[..taken]);
            self.start += taken;
        }
        Ok(bytes)
    }

    /// Everything until the peer closes its side.
    pub(crate) fn until_close(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        loop {
            bytes.append(&mut self.take_buffered());
            if bytes.len() > CONTENT_BYTES_MAX {
                return Err(invalid("more bytes than a test may hold".to_owned()));
            }
            if self.fill()? == 0 {
                return Ok(bytes);
            }
        }
    }

    /// Reads what has come; returns the count of new bytes, 0 at the end of the stream.
    pub(crate) fn fill(&mut self) -> io::Result<usize> {
        self.buffer.drain(..self.start);
        self.start = 0;
        let mut piece = [0; READ_BYTES];
        let count = self.stream.read(&mut piece)?;
        self.buffer.extend_from_slice(&piece[..count]);
        Ok(count)
    }

    fn head(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut scanned = 0;
        loop {
            if let Some(length) = head_length(self.buffered(), scanned) {
                let head = self.buffered()[..length].to_vec();
                self.start += length;
                return Ok(Some(head));
            }
            // The empty line may begin in the last three bytes seen so far.
            scanned = self.buffered().len().saturating_sub(3);
            if self.buffered().len() > HEAD_BYTES_MAX {
                return Err(invalid("a head without an end".to_owned()));
            }
            if self.fill()? == 0 {
                return match self.buffered() {
                    [] => Ok(None),
                    _ => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "closed in a head")),
                };
            }
        }
    }

    fn content(&mut self, framing: Framing) -> io::Result<(Vec<u8>, FieldLines)> {
        let none = FieldLines::default();
        match framing {
            Framing::None => Ok((Vec::new(), none)),
            Framing::Length(length) => Ok((self.exactly(length)?, none)),
            Framing::UntilClose => Ok((self.until_close()?, none)),
            Framing::Chunked => self.chunked(),
        }
    }

    /// RFC 9112 §7.1; chunk extensions are skipped.
    fn chunked(&mut self) -> io::Result<(Vec<u8>, FieldLines)> {
        let mut content = Vec::new();
        loop {
            let chunk = self.chunk()?;
            if chunk.is_empty() {
                break;
            }
            content.extend_from_slice(&chunk);
            if content.len() > CONTENT_BYTES_MAX {
                return Err(invalid("more content than a test may hold".to_owned()));
            }
        }
        let mut trailers = FieldLines::default();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Ok((content, trailers));
            }
            trailers.push_line(&line);
        }
    }

    /// One chunk's content; empty for the last chunk, whose trailer section is left unread.
    pub(crate) fn chunk(&mut self) -> io::Result<Vec<u8>> {
        let line = latin1(&self.line()?);
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16)
            .map_err(|_| invalid(format!("a chunk line of {line:?}")))?;
        let chunk = self.exactly(size)?;
        if size > 0 && !self.line()?.is_empty() {
            return Err(invalid(format!("a chunk longer than its size of {size}")));
        }
        Ok(chunk)
    }

    /// A line without its end.
    fn line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(length) = self.buffered().iter().position(|&byte| byte == b'\n') {
                let line = &self.buffered()[..length];
                let line = line.strip_suffix(b"\r").unwrap_or(line).to_vec();
                self.start += length + 1;
                return Ok(line);
            }
            if self.buffered().len() > LINE_BYTES_MAX {
                return Err(invalid("a line without an end".to_owned()));
            }
            if self.fill()? == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "closed in a line"));
            }
        }
    }
}

/// The length of the head at the front of `bytes`; an empty line before it counts as part of it.
fn head_length(bytes: &[u8], scanned: usize) -> Option<usize> {
    let leading = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let mut start = scanned.max(leading);
    loop {
        let end = start + bytes.get(start..)?.iter().position(|&byte| byte == b'\n')? + 1;
        match bytes.get(end..)? {
            [b'\n', ..] => return Some(end + 1),
            [b'\r', b'\n', ..] => return Some(end + 2),
            _ => start = end,
        }
    }
}

fn split_head(raw_head: &[u8]) -> (String, FieldLines) {
    let mut lines = raw_head
        .split(|&byte| byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !line.is_empty());
    let first = latin1(lines.next().unwrap_or_default());
    let mut fields = FieldLines::default();
    lines.for_each(|line| fields.push_line(line));
    (first, fields)
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

fn invalid(cause: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, cause)
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read};

    use super::MessageReader;

    /// Gives one byte a read, as the slowest of peers.
    struct OneByOne<'a>(&'a [u8]);

    impl Read for OneByOne<'_> {
        fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
            let (now, later) = self.0.split_at(self.0.len().min(1));
            self.0 = later;
            piece[..now.len()].copy_from_slice(now);
            Ok(now.len())
        }
    }

    #[test]
    fn rfc9112_2_messages_are_found_whatever_the_split() {
        let sent = b"\r\nPOST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                     3\r\nabc\r\n0\r\n\r\nGET /b HTTP/1.1\nHost: b\nX: 1\n 2\n\n";
        let mut reader = MessageReader::new(OneByOne(sent));
        let mut first = reader.request_head().unwrap().unwrap();
        reader.request_content(&mut first).unwrap();
        assert_eq!((&*first.target, &*first.text()), ("/a", "abc"));
        let second = reader.request_head().unwrap().unwrap();
        assert_eq!((&*second.target, second.field("x")), ("/b", Some("1 2")));
        assert!(reader.request_head().unwrap().is_none());

        let mut at_once = MessageReader::new(&sent[..]);
        let mut first = at_once.request_head().unwrap().unwrap();
        at_once.request_content(&mut first).unwrap();
        assert_eq!(first.text(), "abc");
        assert_eq!(at_once.request_head().unwrap().unwrap().raw_head, second.raw_head);
    }

    #[test]
    fn what_ends_too_early_is_an_error() {
        for sent in ["GET / HTTP/1.1\r\nHost", "GET / HTTP/1.1\r\nContent-Length: 3\r\n\r\nab"] {
            let mut reader = MessageReader::new(sent.as_bytes());
            let outcome = reader.request_head().and_then(|head| {
                let mut request = head.unwrap_or_default();
                reader.request_content(&mut request)
            });
            assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::UnexpectedEof, "{sent}");
        }
    }
}
