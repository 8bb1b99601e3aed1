//! One end of a connection in a story: it sends what it is told and expects what it is told.
//!
//! The two ends differ in what they expect, so they are one type with a role:
//! [`ScriptedClient`] expects responses, [`OriginConnection`] expects requests. Everything else —
//! sending, closing, resetting, waiting for the end — is the same for both.
//!
//! An expectation that fails panics at the line of the test that stated it. It must never let a
//! test go on with less than it asked for.

use std::io::{self, Write};
use std::marker::PhantomData;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::DEADLINE;
use super::link::{Link, Socket};
use crate::message::{MessageReader, Request, Response};
use crate::site::fill_content;

/// Bytes of one write of generated content.
const PIECE_BYTES: usize = 64 << 10;

/// The role of a peer that sends requests.
#[derive(Debug)]
pub enum AsClient {}

/// The role of a peer that answers requests.
#[derive(Debug)]
pub enum AsOrigin {}

/// A client: connects, sends requests, expects responses.
pub type ScriptedClient = Peer<AsClient>;

/// A connection that a [`super::ScriptedOrigin`] accepted: expects requests, sends responses.
pub type OriginConnection = Peer<AsOrigin>;

/// One end of a connection. Dropping it closes the connection.
#[derive(Debug)]
pub struct Peer<Role> {
    reader: MessageReader<Link>,
    role: PhantomData<Role>,
}

impl Peer<AsClient> {
    /// Connects over TCP.
    ///
    /// # Panics
    /// When nobody accepts there within [`DEADLINE`].
    #[track_caller]
    pub fn connect(address: SocketAddr) -> ScriptedClient {
        match TcpStream::connect_timeout(&address, DEADLINE) {
            Ok(stream) => Peer::over(Socket::Tcp(stream)),
            Err(error) => panic!("cannot connect to {address}: {error}"),
        }
    }

    /// Connects to a Unix socket.
    ///
    /// # Panics
    /// When nobody listens there.
    #[track_caller]
    pub fn connect_unix(path: impl AsRef<Path>) -> ScriptedClient {
        match UnixStream::connect(path.as_ref()) {
            Ok(stream) => Peer::over(Socket::Unix(stream)),
            Err(error) => panic!("cannot connect to {}: {error}", path.as_ref().display()),
        }
    }

    /// The next response with its content. `method` is that of the request it answers: it decides
    /// whether content follows (RFC 9112 §6.3). An interim response is a response too.
    #[track_caller]
    pub fn expect_response(&mut self, method: &str) -> Response {
        let mut response = self.expect_head();
        self.expect("the response's content", |r| r.response_content(&mut response, method));
        response
    }

    /// The next response's head alone; its content is left for the `expect_` calls that follow.
    #[track_caller]
    pub fn expect_head(&mut self) -> Response {
        match self.expect("a response", MessageReader::response_head) {
            Some(response) => response,
            None => self.fail("a response", "the connection was closed"),
        }
    }

    /// Sends one request and takes its response: `GET` of a path, with Host and these field lines.
    #[track_caller]
    pub fn get(&mut self, target: &str, host: &str, fields: &[(&str, &str)]) -> Response {
        let mut head = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n");
        fields.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        self.send(head + "\r\n");
        self.expect_response("GET")
    }

    /// The TCP stream itself, such as for a WebSocket behind a CONNECT.
    ///
    /// # Panics
    /// When bytes have come that no expectation took, or there is no open TCP connection.
    #[track_caller]
    pub fn into_stream(self) -> TcpStream {
        assert!(self.reader.buffered().is_empty(), "unread bytes would be lost");
        match self.reader.into_stream().into_socket() {
            Socket::Tcp(stream) => stream,
            Socket::Unix(_) | Socket::Closed => panic!("there is no TCP stream"),
        }
    }
}

impl Peer<AsOrigin> {
    /// The next request's head alone; its content is left for the `expect_` calls that follow.
    #[track_caller]
    pub fn expect_head(&mut self) -> Request {
        match self.expect("a request", MessageReader::request_head) {
            Some(request) => request,
            None => self.fail("a request", "the connection was closed"),
        }
    }

    /// The next request with its content.
    #[track_caller]
    pub fn expect_request(&mut self) -> Request {
        let mut request = self.expect_head();
        self.expect("the request's content", |r| r.request_content(&mut request));
        request
    }

    /// The next request with its content, or `None` when the peer closes instead of sending one.
    #[track_caller]
    pub fn next_request(&mut self) -> Option<Request> {
        let mut request = self.expect("a request or the end", MessageReader::request_head)?;
        self.expect("the request's content", |r| r.request_content(&mut request));
        Some(request)
    }
}

impl<Role> Peer<Role> {
    #[track_caller]
    pub(super) fn over(socket: Socket) -> Peer<Role> {
        match Link::new(socket) {
            Ok(link) => Peer { reader: MessageReader::new(link), role: PhantomData },
            Err(error) => panic!("cannot set up a connection: {error}"),
        }
    }

    /// Sends these bytes.
    ///
    /// # Panics
    /// When the other side has closed, or takes none for [`DEADLINE`].
    #[track_caller]
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        if let Err(error) = self.reader.stream_mut().write_all(bytes.as_ref()) {
            panic!("cannot send {} bytes: {error}", bytes.as_ref().len());
        }
    }

    /// Sends one byte a segment, as the slowest of peers.
    #[track_caller]
    pub fn send_slowly(&mut self, bytes: impl AsRef<[u8]>) {
        for byte in bytes.as_ref() {
            self.send([*byte]);
            std::thread::yield_now();
        }
    }

    /// Sends `length` bytes of [`crate::site::content_at`], from `offset` on.
    #[track_caller]
    pub fn send_generated(&mut self, offset: u64, length: u64) {
        let mut piece = vec![0; PIECE_BYTES];
        let end = offset + length;
        let mut at = offset;
        while at < end {
            let count = usize::try_from(end - at).map_or(PIECE_BYTES, |n| n.min(PIECE_BYTES));
            fill_content(at, &mut piece[..count]);
            self.send(&piece[..count]);
            at += count as u64;
        }
    }

    /// Sends these bytes, and is content if the other side has already closed: for peers that go
    /// on after they were refused. Returns how many bytes could be handed over.
    pub fn send_anyway(&mut self, bytes: impl AsRef<[u8]>) -> usize {
        let mut bytes = bytes.as_ref();
        let length = bytes.len();
        while !bytes.is_empty() {
            match self.reader.stream_mut().write(bytes) {
                Ok(0) | Err(_) => break,
                Ok(count) => bytes = &bytes[count..],
            }
        }
        length - bytes.len()
    }

    /// Exactly these bytes next.
    #[track_caller]
    pub fn expect_bytes(&mut self, expected: impl AsRef<[u8]>) {
        let expected = expected.as_ref();
        let found = self.expect_content(expected.len());
        if found != expected {
            self.fail(&format!("{:?}", expected.escape_ascii().to_string()), "other bytes came");
        }
    }

    /// The next `length` bytes, whatever they are.
    #[track_caller]
    pub fn expect_content(&mut self, length: usize) -> Vec<u8> {
        self.expect(&format!("{length} bytes"), |r| r.exactly(length))
    }

    /// The next chunk's content (RFC 9112 §7.1); empty for the last chunk.
    #[track_caller]
    pub fn expect_chunk(&mut self) -> Vec<u8> {
        self.expect("a chunk", MessageReader::chunk)
    }

    /// Everything until the other side ends its sending in order.
    #[track_caller]
    pub fn expect_rest(&mut self) -> Vec<u8> {
        self.expect("the rest of the connection", MessageReader::until_close)
    }

    /// The end of the other side's sending, in order and with no byte before it.
    #[track_caller]
    pub fn expect_end(&mut self) {
        let rest = self.expect("the end of the connection", MessageReader::until_close);
        if !rest.is_empty() {
            self.fail("the end of the connection", &format!("{} bytes came first", rest.len()));
        }
    }

    /// A reset by the other side; bytes before it are passed over.
    #[track_caller]
    pub fn expect_reset(&mut self) {
        let outcome = self.expect("a reset", |r| match r.until_close() {
            Err(error) if is_reset(&error) => Ok(true),
            outcome => outcome.map(|_| false),
        });
        if !outcome {
            self.fail("a reset", "the connection ended in order");
        }
    }

    /// The end of the other side's sending, be it in order or by a reset. Returns the bytes before
    /// it, as far as a reset left them.
    #[track_caller]
    pub fn expect_closed(&mut self) -> Vec<u8> {
        self.expect("the end of the connection or a reset", |reader| {
            let mut bytes = Vec::new();
            loop {
                bytes.append(&mut reader.take_buffered());
                match reader.fill() {
                    Ok(0) => return Ok(bytes),
                    Err(error) if is_reset(&error) => return Ok(bytes),
                    outcome => outcome.map(drop)?,
                }
            }
        })
    }

    /// Nothing more has arrived by now, and the other side has not closed. It does not wait: state
    /// it after something that the other side does later than what must not come.
    #[track_caller]
    pub fn expect_nothing_buffered(&mut self) {
        let mut piece = [0; 1];
        let arrived = match self.reader.buffered() {
            [] => self.reader.stream_mut().read_arrived(&mut piece),
            _ => Ok(Some(1)),
        };
        match arrived {
            Ok(None) => {}
            Ok(Some(0)) => self.fail("silence", "the connection was closed"),
            Ok(Some(_)) => self.fail("silence", "bytes came"),
            Err(error) => self.fail("silence", &error.to_string()),
        }
    }

    /// Ends the sending side; what the other side sends can still be read.
    #[track_caller]
    pub fn half_close(&mut self) {
        if let Err(error) = self.reader.stream().shutdown_writing() {
            panic!("cannot end the sending side: {error}");
        }
    }

    /// Closes both directions; in order if every byte received has been read, else the kernel
    /// makes it a reset.
    pub fn close(&mut self) {
        self.reader.stream_mut().close();
    }

    /// Closes with a reset.
    #[track_caller]
    pub fn reset(&mut self) {
        if let Err(error) = self.reader.stream_mut().reset() {
            panic!("cannot reset: {error}");
        }
    }

    #[track_caller]
    fn expect<T>(
        &mut self,
        what: &str,
        read: impl FnOnce(&mut MessageReader<Link>) -> io::Result<T>,
    ) -> T {
        self.reader.stream_mut().restart_deadline();
        match read(&mut self.reader) {
            Ok(found) => found,
            Err(error) => self.fail(what, &error.to_string()),
        }
    }

    #[track_caller]
    fn fail(&self, what: &str, cause: &str) -> ! {
        panic!("expected {what}, but: {cause}; {}", self.reader.stream().transcript());
    }
}

fn is_reset(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
}
