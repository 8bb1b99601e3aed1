//! A client of a few lines: one connection that stays open, whole answers with Content-Length.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::Outcome;
use crate::children::PATIENCE;

/// A head may have no more bytes than this.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// A connection to a server.
pub struct Probe {
    stream: TcpStream,
    request: Vec<u8>,
    received: Vec<u8>,
}

/// An answer, as it came.
pub struct Answer {
    /// Status line and fields, up to and with the empty line.
    pub head: Vec<u8>,
    /// How many bytes of content came behind it.
    pub content_bytes: usize,
}

impl Probe {
    /// Connects, to ask for `path` from then on, in the words of wrk.
    ///
    /// # Errors
    /// When nobody accepts.
    pub fn connect(address: SocketAddr, path: &str) -> Outcome<Probe> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").into_bytes();
        Ok(Probe { stream, request, received: Vec::new() })
    }

    /// Asks once and reads the whole answer.
    ///
    /// # Errors
    /// When the answer is no 200, has no Content-Length, or does not come.
    pub fn ask(&mut self) -> Outcome<Answer> {
        self.stream.write_all(&self.request)?;
        self.received.clear();
        let head_bytes = loop {
            self.read_more()?;
            if let Some(end) = self.received.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            if self.received.len() > HEAD_BYTES_MAX {
                return Err("a head without an end".into());
            }
        };
        let head = self.received[..head_bytes].to_vec();
        let content_bytes = content_length(&head)?;
        while self.received.len() < head_bytes + content_bytes {
            self.read_more()?;
        }
        if self.received.len() > head_bytes + content_bytes {
            return Err("more bytes than one answer has".into());
        }
        Ok(Answer { head, content_bytes })
    }

    fn read_more(&mut self) -> Outcome {
        let mut buffer = [0; 16 * 1024];
        let length = loop {
            match self.stream.read(&mut buffer) {
                Err(fault) if fault.kind() == ErrorKind::Interrupted => {}
                outcome => break outcome?,
            }
        };
        if length == 0 {
            return Err("the connection was closed in the middle of an answer".into());
        }
        self.received.extend_from_slice(&buffer[..length]);
        Ok(())
    }
}

impl Answer {
    /// The value of a field, if it stands in the head.
    pub fn field(&self, name: &str) -> Option<String> {
        field(&self.head, name)
    }
}

fn content_length(head: &[u8]) -> Outcome<usize> {
    let shown = String::from_utf8_lossy(head);
    if shown.split(' ').nth(1) != Some("200") {
        return Err(format!("no 200 but\n{shown}").into());
    }
    let length = field(head, "content-length");
    let length = length.ok_or_else(|| format!("no Content-Length in\n{shown}"))?;
    Ok(length.parse()?)
}

fn field(head: &[u8], name: &str) -> Option<String> {
    let shown = String::from_utf8_lossy(head);
    let mut fields = shown.lines().skip(1).filter_map(|line| line.split_once(':'));
    let found = fields.find(|(field, _)| field.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn answers_are_read_whole_on_one_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address");
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("the probe");
            for _ in 0..2 {
                let mut buffer = [0; 1024];
                let length = stream.read(&mut buffer).expect("a request");
                assert!(buffer[..length].starts_with(b"GET /x HTTP/1.1\r\nHost: 127.0.0.1:"));
                stream.write_all(b"HTTP/1.1 200 OK\r\nAge: 7\r\ncontent-length: 5\r\n\r\nhe").ok();
                stream.write_all(b"llo").ok();
            }
        });
        let mut probe = Probe::connect(address, "/x").expect("a connection");
        for _ in 0..2 {
            let answer = probe.ask().expect("an answer");
            assert_eq!((answer.head.len(), answer.content_bytes), (46, 5));
            assert_eq!(answer.field("AGE").as_deref(), Some("7"));
            assert_eq!(answer.field("Via"), None);
        }
        server.join().expect("the server's own assertions");
    }

    #[test]
    fn other_answers_are_refused() {
        assert!(content_length(b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\n").is_err());
        assert!(content_length(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
