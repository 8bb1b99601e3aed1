//! WebSocket (RFC 6455), as far as a test of a tunnel needs it: an echo origin and a client.
//!
//! Text frames without fragments and with lengths up to 16 bits, ping, and the closing handshake.
//! It must never be mistaken for a server: it masks with a counter, where RFC 6455 §5.3 asks for
//! randomness.
//!
//! ```
//! use testkit::websocket::{EchoOrigin, WebSocketClient};
//!
//! # fn main() -> std::io::Result<()> {
//! let origin = EchoOrigin::start()?;
//! let mut client = WebSocketClient::connect(origin.address(), "a", "/echo")?;
//! client.send_text("hello")?;
//! assert_eq!(client.receive_text()?, "hello");
//! client.close()?;
//! # Ok(())
//! # }
//! ```

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::message::{MessageReader, Request, Response};
use crate::server::Server;
use crate::site::mix;

/// How long either side waits for the other.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The constant that an accepting server appends to the key (RFC 6455 §1.3).
const ACCEPT_SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The client's key: any 16 bytes in base64 (RFC 6455 §4.1).
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

/// A frame's opcode (RFC 6455 §5.2), as far as they are used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Opcode {
    Text = 1,
    Close = 8,
    Ping = 9,
    Pong = 10,
}

#[derive(Debug)]
struct Frame {
    opcode: Opcode,
    content: Vec<u8>,
}

/// An origin that accepts every WebSocket handshake and sends each text back.
#[derive(Debug)]
pub struct EchoOrigin {
    server: Server,
}

impl EchoOrigin {
    /// Starts to listen on a free loopback port; stops on drop.
    ///
    /// # Errors
    /// When no port or no thread can be had.
    pub fn start() -> io::Result<EchoOrigin> {
        let server = Server::start(|_, stream| {
            // What goes wrong with one connection is its end, and no other's matter.
            let _ = echo(stream);
        })?;
        Ok(EchoOrigin { server })
    }

    /// Where the origin listens.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }
}

/// A client after its handshake.
#[derive(Debug)]
pub struct WebSocketClient {
    frames: Frames,
    response: Response,
}

impl WebSocketClient {
    /// Connects and makes the handshake for `target` (such as `/echo`, or the absolute form for a
    /// forward proxy).
    ///
    /// # Errors
    /// When the connection fails or the handshake is not answered as RFC 6455 §4.1 demands.
    pub fn connect(address: SocketAddr, host: &str, target: &str) -> io::Result<WebSocketClient> {
        WebSocketClient::over(TcpStream::connect_timeout(&address, TIMEOUT)?, host, target)
    }

    /// The same over a stream that stands already, such as one that CONNECT has opened.
    ///
    /// # Errors
    /// When the handshake is not answered as RFC 6455 §4.1 demands.
    pub fn over(stream: TcpStream, host: &str, target: &str) -> io::Result<WebSocketClient> {
        let mut frames = Frames::new(stream, true)?;
        let head = format!(
            "GET {target} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\n\
             Connection: Upgrade\r\nSec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Version: 13\r\n\r\n"
        );
        frames.output.write_all(head.as_bytes())?;
        let response = frames.reader.response_head()?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let is_accepted = response.status == 101
            && response.fields.lists("upgrade", "websocket")
            && response.fields.lists("connection", "upgrade")
            && response.field("sec-websocket-accept") == Some(&accept_value(KEY));
        match is_accepted {
            true => Ok(WebSocketClient { frames, response }),
            false => Err(invalid(&format!("status {}:\n{}", response.status, response.fields))),
        }
    }

    /// The response to the handshake.
    pub fn response(&self) -> &Response {
        &self.response
    }

    /// Sends a text of at most 65,535 bytes.
    ///
    /// # Errors
    /// When the text is longer, or the connection fails.
    pub fn send_text(&mut self, text: &str) -> io::Result<()> {
        self.frames.send(Opcode::Text, text.as_bytes())
    }

    /// The next text.
    ///
    /// # Errors
    /// When another frame comes, nothing comes for ten seconds, or the connection fails.
    pub fn receive_text(&mut self) -> io::Result<String> {
        let frame = self.frames.receive()?;
        match frame.opcode {
            Opcode::Text => String::from_utf8(frame.content).map_err(|_| invalid("no UTF-8")),
            opcode => Err(invalid(&format!("expected a text, found {opcode:?}"))),
        }
    }

    /// Sends a ping and takes its pong.
    ///
    /// # Errors
    /// When another frame comes, nothing comes for ten seconds, or the connection fails.
    pub fn ping(&mut self, content: &[u8]) -> io::Result<()> {
        self.frames.send(Opcode::Ping, content)?;
        self.frames.expect(Opcode::Pong, content)
    }

    /// The closing handshake (RFC 6455 §7.1.2), then the end of the connection.
    ///
    /// # Errors
    /// When the other side does not close in turn.
    pub fn close(mut self) -> io::Result<()> {
        let normal = 1000_u16.to_be_bytes();
        self.frames.send(Opcode::Close, &normal)?;
        self.frames.expect(Opcode::Close, &normal)?;
        match self.frames.reader.until_close()?.is_empty() {
            true => Ok(()),
            false => Err(invalid("bytes after the close frame")),
        }
    }
}

fn echo(stream: TcpStream) -> io::Result<()> {
    let mut frames = Frames::new(stream, false)?;
    let Some(request) = frames.reader.request_head()? else { return Ok(()) };
    let Some(key) = key_of(&request) else {
        let refusal = b"HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\n\
                        Connection: Upgrade, close\r\nContent-Length: 0\r\n\r\n";
        return frames.output.write_all(refusal);
    };
    let accept = accept_value(key);
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\n\r\n"
    );
    frames.output.write_all(head.as_bytes())?;
    loop {
        let frame = frames.receive()?;
        match frame.opcode {
            Opcode::Text => frames.send(Opcode::Text, &frame.content)?,
            Opcode::Ping => frames.send(Opcode::Pong, &frame.content)?,
            Opcode::Pong => {}
            Opcode::Close => return frames.send(Opcode::Close, &frame.content),
        }
    }
}

/// The key of a handshake (RFC 6455 §4.2.1), unless the request is none.
fn key_of(request: &Request) -> Option<&str> {
    let is_upgrade = request.method == "GET"
        && request.fields.lists("upgrade", "websocket")
        && request.fields.lists("connection", "upgrade");
    request.field("sec-websocket-key").filter(|_| is_upgrade)
}

fn accept_value(key: &str) -> String {
    let digest = sha1_smol::Sha1::from(format!("{key}{ACCEPT_SUFFIX}")).digest();
    BASE64.encode(digest.bytes())
}

/// Frames over a stream, one side of it.
#[derive(Debug)]
struct Frames {
    reader: MessageReader<TcpStream>,
    output: TcpStream,
    is_client: bool,
    sent: u64,
}

impl Frames {
    fn new(stream: TcpStream, is_client: bool) -> io::Result<Frames> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let output = stream.try_clone()?;
        Ok(Frames { reader: MessageReader::new(stream), output, is_client, sent: 0 })
    }

    /// RFC 6455 §5.2: only the client masks.
    fn send(&mut self, opcode: Opcode, content: &[u8]) -> io::Result<()> {
        const FINAL: u8 = 0x80;
        let length = u16::try_from(content.len()).map_err(|_| invalid("the text is too long"))?;
        let mask_bit = if self.is_client { 0x80 } else { 0 };
        let mut frame = vec![FINAL | opcode as u8];
        match u8::try_from(length) {
            Ok(short @ 0..=125) => frame.push(mask_bit | short),
            _ => {
                frame.push(mask_bit | 126);
                frame.extend(length.to_be_bytes());
            }
        }
        if self.is_client {
            self.sent += 1;
            let [a, b, c, d, ..] = mix(self.sent).to_le_bytes();
            let mask = [a, b, c, d];
            frame.extend(mask);
            frame.extend(masked(content, mask));
        } else {
            frame.extend_from_slice(content);
        }
        self.output.write_all(&frame)
    }

    fn receive(&mut self) -> io::Result<Frame> {
        let [first, second] = self.array()?;
        let opcode = match first {
            0x81 => Opcode::Text,
            0x88 => Opcode::Close,
            0x89 => Opcode::Ping,
            0x8a => Opcode::Pong,
            _ => return Err(invalid("a fragment, an extension or an unknown opcode")),
        };
        if (second & 0x80 != 0) == self.is_client {
            return Err(invalid("masked by the wrong side"));
        }
        let length = match second & 0x7f {
            126 => usize::from(u16::from_be_bytes(self.array()?)),
            127 => return Err(invalid("a frame above 65,535 bytes")),
            short => usize::from(short),
        };
        let mask = if self.is_client { [0; 4] } else { self.array()? };
        let content = masked(&self.reader.exactly(length)?, mask);
        Ok(Frame { opcode, content })
    }

    fn expect(&mut self, opcode: Opcode, content: &[u8]) -> io::Result<()> {
        let frame = self.receive()?;
        match frame.opcode == opcode && frame.content == content {
            true => Ok(()),
            false => Err(invalid(&format!("expected {opcode:?}, found {frame:?}"))),
        }
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let bytes = self.reader.exactly(N)?;
        bytes.try_into().map_err(|_| invalid("a frame of another size"))
    }
}

fn masked(content: &[u8], mask: [u8; 4]) -> Vec<u8> {
    content.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect()
}

fn invalid(cause: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, cause.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{EchoOrigin, WebSocketClient, accept_value};

    #[test]
    fn rfc6455_1_3_the_accept_value_of_the_example() {
        assert_eq!(accept_value("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn rfc6455_5_2_texts_of_every_length_form_come_back() {
        let origin = EchoOrigin::start().unwrap();
        let mut client = WebSocketClient::connect(origin.address(), "a", "/echo").unwrap();
        for length in [0, 1, 125, 126, 127, 65_535] {
            let text = "s".repeat(length);
            client.send_text(&text).unwrap();
            assert_eq!(client.receive_text().unwrap(), text);
        }
        client.ping(b"still there?").unwrap();
        client.close().unwrap();
    }

    #[test]
    fn a_text_that_needs_64_bits_of_length_is_refused() {
        let origin = EchoOrigin::start().unwrap();
        let mut client = WebSocketClient::connect(origin.address(), "a", "/echo").unwrap();
        assert!(client.send_text(&"s".repeat(65_536)).is_err());
    }

    #[test]
    fn an_ordinary_request_is_no_handshake() {
        let origin = EchoOrigin::start().unwrap();
        let mut client = crate::script::ScriptedClient::connect(origin.address());
        let response = client.get("/echo", "a", &[]);
        assert_eq!(response.status, 426);
        client.expect_end();
    }
}
