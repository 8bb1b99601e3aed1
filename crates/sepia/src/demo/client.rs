//! A small blocking HTTP/1.1 client: one connection, one request at a time.
//!
//! It must never use the codec of the proxy that it looks at: a fault there would then be on both
//! sides and show in no row of the tour. It knows as much of RFC 9112 as finding the end of an
//! answer needs (§6.3, §7.1), gives up after [`SILENCE_MAX`], and holds a bounded answer.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The longest that a peer may be silent.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Bytes that an answer's head may have.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Bytes that an answer's content may have; the largest of the tour has 20 MB.
const CONTENT_BYTES_MAX: usize = 64 << 20;
/// Bytes taken from the socket by one read.
const READ_BYTES: usize = 64 << 10;

/// A request as it is written.
#[derive(Clone, Debug, Default)]
pub(super) struct Request {
    pub(super) method: &'static str,
    pub(super) target: String,
    pub(super) host: String,
    pub(super) fields: Vec<(&'static str, String)>,
    pub(super) content: &'static str,
}

/// A whole answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    pub(super) status: u16,
    fields: Vec<(String, String)>,
    pub(super) content: Vec<u8>,
    /// From the request's first byte to the first byte of content, or to the end of the head.
    pub(super) until_content: Duration,
    /// From the request's first byte to the answer's last.
    pub(super) elapsed: Duration,
}

/// A client of one server. It connects when it is first asked, before it looks at the time, and
/// again when an answer has ended its connection.
#[derive(Debug)]
pub(super) struct Client {
    address: SocketAddr,
    connection: Option<Connection>,
}

/// An answer that has begun: its head and its first content are here.
#[derive(Debug)]
pub(super) struct Begun {
    connection: Connection,
    answer: Answer,
    framing: Framing,
    start: Instant,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    /// Bytes received and not yet taken.
    buffer: Vec<u8>,
}

/// Where the content ends (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Ended,
    Length(usize),
    Chunked,
    UntilClose,
}

impl Request {
    fn encode(&self) -> Vec<u8> {
        let Request { method, target, host, fields, content } = self;
        let mut text = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n");
        fields.iter().for_each(|(name, value)| text.push_str(&format!("{name}: {value}\r\n")));
        if !content.is_empty() {
            text.push_str(&format!("Content-Length: {}\r\n", content.len()));
        }
        text.push_str("\r\n");
        text.push_str(content);
        text.into_bytes()
    }
}

impl Answer {
    /// The value of the first field line of that name, in any case.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let (_, value) = self.fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        Some(value)
    }

    fn decode(head: &[u8]) -> io::Result<Answer> {
        let head = String::from_utf8_lossy(head);
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let status = status.ok_or_else(|| invalid("an answer without a status"))?;
        let fields = lines.filter_map(|line| line.split_once(':'));
        let fields = fields.map(|(name, value)| (name.to_owned(), value.trim().to_owned()));
        Ok(Answer { status, fields: fields.collect(), ..Answer::default() })
    }

    fn framing(&self, method: &str) -> io::Result<Framing> {
        let is_bare = method == "HEAD" || matches!(self.status, 100..=199 | 204 | 304);
        if is_bare || (method == "CONNECT" && self.status < 300) {
            return Ok(Framing::Ended);
        }
        if self.field("transfer-encoding").is_some() {
            return Ok(Framing::Chunked);
        }
        match self.field("content-length").map(str::parse) {
            None => Ok(Framing::UntilClose),
            Some(Ok(0)) => Ok(Framing::Ended),
            Some(Ok(length)) if length <= CONTENT_BYTES_MAX => Ok(Framing::Length(length)),
            Some(_) => Err(invalid("a length that is none or too large")),
        }
    }
}

impl Client {
    pub(super) fn new(address: SocketAddr) -> Client {
        Client { address, connection: None }
    }

    /// Sends a request and takes its whole answer.
    ///
    /// # Errors
    /// When the server cannot be reached, falls silent, or breaks off.
    pub(super) fn ask(&mut self, request: &Request) -> io::Result<Answer> {
        let begun = self.begin(request)?;
        self.finish(begun)
    }

    /// Sends a request and waits for the head and the first content of its answer.
    ///
    /// # Errors
    /// As for [`Client::ask`].
    pub(super) fn begin(&mut self, request: &Request) -> io::Result<Begun> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(self.address)?,
        };
        let start = Instant::now();
        connection.stream.write_all(&request.encode())?;
        let answer = Answer::decode(&connection.head()?)?;
        let framing = answer.framing(request.method)?;
        let mut begun = Begun { connection, answer, framing, start };
        while begun.answer.content.is_empty() && begun.framing != Framing::Ended {
            begun.advance()?;
        }
        begun.answer.until_content = start.elapsed();
        Ok(begun)
    }

    /// Takes the rest of an answer.
    ///
    /// # Errors
    /// As for [`Client::ask`].
    pub(super) fn finish(&mut self, mut begun: Begun) -> io::Result<Answer> {
        let ends_by_close = begun.framing == Framing::UntilClose;
        while begun.framing != Framing::Ended {
            begun.advance()?;
        }
        let Begun { connection, mut answer, start, .. } = begun;
        answer.elapsed = start.elapsed();
        let says_close = answer.field("connection").is_some_and(|value| value.contains("close"));
        if !ends_by_close && !says_close {
            self.connection = Some(connection);
        }
        Ok(answer)
    }
}

impl Begun {
    /// The content so far.
    pub(super) fn content(&self) -> &[u8] {
        &self.answer.content
    }

    /// Takes what content there is, or waits for more bytes.
    fn advance(&mut self) -> io::Result<()> {
        if self.answer.content.len() > CONTENT_BYTES_MAX {
            return Err(invalid("more content than the tour expects of anybody"));
        }
        let buffer = &mut self.connection.buffer;
        match self.framing {
            Framing::Ended => Ok(()),
            Framing::Chunked => match take_chunk(buffer)? {
                Some(chunk) if chunk.is_empty() => {
                    self.framing = Framing::Ended;
                    Ok(())
                }
                Some(chunk) => {
                    self.answer.content.extend_from_slice(&chunk);
                    Ok(())
                }
                None => self.connection.fill(),
            },
            Framing::Length(left) if left <= buffer.len() => {
                self.answer.content.extend(buffer.drain(..left));
                self.framing = Framing::Ended;
                Ok(())
            }
            Framing::Length(left) if !buffer.is_empty() => {
                self.framing = Framing::Length(left - buffer.len());
                self.answer.content.append(buffer);
                Ok(())
            }
            Framing::Length(_) => self.connection.fill(),
            Framing::UntilClose => {
                self.answer.content.append(buffer);
                match self.connection.fill() {
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                        self.framing = Framing::Ended;
                        Ok(())
                    }
                    filled => filled,
                }
            }
        }
    }
}

impl Connection {
    fn open(address: SocketAddr) -> io::Result<Connection> {
        let stream = TcpStream::connect_timeout(&address, SILENCE_MAX)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        stream.set_write_timeout(Some(SILENCE_MAX))?;
        Ok(Connection { stream, buffer: Vec::new() })
    }

    /// Takes a head, without the empty line that ends it.
    fn head(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                let head = self.buffer.drain(..end + 4).take(end).collect();
                return Ok(head);
            }
            if self.buffer.len() > HEAD_BYTES_MAX {
                return Err(invalid("a head without an end"));
            }
            self.fill()?;
        }
    }

    /// Waits for more bytes.
    fn fill(&mut self) -> io::Result<()> {
        let received = self.buffer.len();
        self.buffer.resize(received + READ_BYTES, 0);
        let outcome = self.stream.read(&mut self.buffer[received..]);
        self.buffer.truncate(received + outcome.as_ref().map_or(0, |count| *count));
        match outcome {
            Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed")),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(io::Error::new(io::ErrorKind::TimedOut, "nothing came for 10 seconds"))
            }
            outcome => outcome.map(|_| ()),
        }
    }
}

/// Takes a chunk with its line if all of it is there; the last one is empty. Trailers are not
/// expected: the site sends none.
fn take_chunk(buffer: &mut Vec<u8>) -> io::Result<Option<Vec<u8>>> {
    let Some(line_end) = find(buffer, b"\r\n") else { return Ok(None) };
    let line = String::from_utf8_lossy(&buffer[..line_end]);
    let size = line.split(';').next().unwrap_or_default().trim();
    let size = usize::from_str_radix(size, 16).ok().filter(|size| *size <= CONTENT_BYTES_MAX);
    let size = size.ok_or_else(|| invalid("a chunk without a size"))?;
    let start = line_end + 2;
    let end = start + size;
    if buffer.len() < end + 2 {
        return Ok(None);
    }
    if buffer[end..end + 2] != *b"\r\n" {
        return Err(invalid("a chunk longer than its size"));
    }
    Ok(Some(buffer.drain(..end + 2).skip(start).take(size).collect()))
}

fn find(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    bytes.windows(mark.len()).position(|window| window == mark)
}

fn invalid(cause: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, cause)
}

#[cfg(test)]
mod tests {
    use super::{Answer, Framing, take_chunk};

    #[test]
    fn rfc9112_6_3_where_content_ends() {
        let table = [
            ("GET", "200 OK\r\nContent-Length: 3", Some(Framing::Length(3))),
            ("GET", "200 OK\r\nContent-Length: 0", Some(Framing::Ended)),
            ("HEAD", "200 OK\r\nContent-Length: 3", Some(Framing::Ended)),
            ("GET", "304 Not Modified\r\nContent-Length: 3", Some(Framing::Ended)),
            ("CONNECT", "200 OK\r\nContent-Length: 3", Some(Framing::Ended)),
            ("CONNECT", "403 Forbidden\r\ncontent-length:3", Some(Framing::Length(3))),
            ("GET", "200 OK\r\nTransfer-Encoding: chunked", Some(Framing::Chunked)),
            ("GET", "200 OK", Some(Framing::UntilClose)),
            ("GET", "200 OK\r\nContent-Length: -3", None),
            ("GET", "200 OK\r\nContent-Length: 99999999999", None),
        ];
        for (method, head, expected) in table {
            let answer = Answer::decode(format!("HTTP/1.1 {head}").as_bytes()).unwrap();
            assert_eq!(answer.framing(method).ok(), expected, "{method} {head}");
        }
        assert!(Answer::decode(b"220 mail.example").is_err());
    }

    #[test]
    fn rfc9112_7_1_chunks_are_taken_whole() {
        let mut buffer = b"3;a=b\r\nabc\r\n0\r\n\r".to_vec();
        assert_eq!(take_chunk(&mut buffer).unwrap(), Some(b"abc".to_vec()));
        assert_eq!(take_chunk(&mut buffer).unwrap(), None);
        buffer.push(b'\n');
        assert_eq!(take_chunk(&mut buffer).unwrap(), Some(Vec::new()));
        assert!(buffer.is_empty());
        for wrong in ["x\r\n", "-1\r\n", "ffffffffffffffff\r\n", "1\r\nabc\r\n"] {
            assert!(take_chunk(&mut wrong.as_bytes().to_vec()).is_err(), "{wrong:?}");
        }
    }
}
