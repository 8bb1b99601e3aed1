//! Heads and content of HTTP/1.1 as strictly as a check needs them: what ends early is no whole
//! message, and what is not framed as RFC 9112 §6 asks fails the test.

use std::io::{self, BufRead, BufReader, Read};
use std::net::TcpStream;

use super::world::index;

/// A start line with its field lines.
#[derive(Debug)]
pub struct Head {
    pub start: String,
    fields: Vec<(String, String)>,
}

impl Head {
    /// Reads a head; `None` if the peer has closed before its first byte.
    ///
    /// # Errors
    /// Those of the stream, and an end within the head.
    pub fn read(stream: &mut BufReader<TcpStream>) -> io::Result<Option<Head>> {
        let Some(start) = line(stream)? else { return Ok(None) };
        let mut fields = Vec::new();
        loop {
            let text = line(stream)?.ok_or(io::ErrorKind::UnexpectedEof)?;
            if text.is_empty() {
                return Ok(Some(Head { start, fields }));
            }
            let (name, value) = text.split_once(": ").expect("a field line");
            fields.push((name.to_ascii_lowercase(), value.to_owned()));
        }
    }

    /// The only value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut values = self.fields.iter().filter(|(known, _)| known == name);
        let value = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "{name} twice: {:?}", self.fields);
        value
    }

    /// The value of a field as a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.field(name).map(|value| value.parse().expect("a number"))
    }

    /// The n-th word of the start line.
    pub fn word(&self, place: usize) -> &str {
        self.start.split(' ').nth(place).expect("a start line of three words")
    }
}

/// Content with whether it came to its end.
pub struct Content {
    pub bytes: Vec<u8>,
    pub is_whole: bool,
}

impl Content {
    /// Reads the content that belongs to `head`.
    pub fn read(stream: &mut BufReader<TcpStream>, head: &Head) -> Content {
        let mut bytes = Vec::new();
        let is_whole = match (head.number("content-length"), head.field("transfer-encoding")) {
            (Some(length), None) => exactly(stream, length, &mut bytes),
            (None, Some("chunked")) => chunked(stream, &mut bytes),
            framing => panic!("framed by {framing:?}: {}", head.start),
        };
        Content { bytes, is_whole }
    }
}

/// A line without its end; `None` at the end of the stream.
fn line(stream: &mut BufReader<TcpStream>) -> io::Result<Option<String>> {
    let mut text = String::new();
    match stream.read_line(&mut text)? {
        0 => Ok(None),
        _ => match text.strip_suffix("\r\n") {
            Some(line) => Ok(Some(line.to_owned())),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        },
    }
}

fn exactly(stream: &mut BufReader<TcpStream>, length: u64, bytes: &mut Vec<u8>) -> bool {
    let before = bytes.len();
    // What has come before a reset counts as well.
    let _ = stream.take(length).read_to_end(bytes);
    bytes.len() - before == index(length)
}

fn chunked(stream: &mut BufReader<TcpStream>, bytes: &mut Vec<u8>) -> bool {
    loop {
        let Ok(Some(size)) = line(stream) else { return false };
        let size = u64::from_str_radix(&size, 16).expect("a chunk size");
        if size > 0 && !exactly(stream, size, bytes) {
            return false;
        }
        match line(stream) {
            Ok(Some(end)) => assert_eq!(end, "", "behind a chunk of {size}"),
            _ => return false,
        }
        if size == 0 {
            return true;
        }
    }
}
