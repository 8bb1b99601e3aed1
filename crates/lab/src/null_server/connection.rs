//! One connection of the null server: how many bytes it is still owed, and where in a head it is.
//!
//! It must never wait: it reads and writes until the socket would block or has given less than was
//! asked for, and leaves the rest to the next event.

use std::io::{self, Read, Write};

use mio::net::TcpStream;

use super::answer::Answers;

/// How a turn of a connection ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// For the next event.
    Waits,
    /// The client has closed, or the connection failed.
    Ended,
}

/// A client's connection. Per event: `handle_readable` if it is, then `drive`.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    scan: HeadScan,
    /// Bytes of answers not yet written.
    owed: usize,
    /// Since edges are not repeated: there may be bytes that no event will announce again.
    may_read: bool,
    is_read_closed: bool,
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> Connection {
        let scan = HeadScan::default();
        Connection { stream, scan, owed: 0, may_read: false, is_read_closed: false }
    }

    pub(super) fn handle_readable(&mut self, is_read_closed: bool) {
        self.may_read = true;
        self.is_read_closed |= is_read_closed;
    }

    /// Writes what is owed, then reads what has come, until neither can go on. A client that does
    /// not take its answers is not read from.
    pub(super) fn drive(&mut self, buffer: &mut [u8], answers: &Answers) -> Outcome {
        self.poll_io(buffer, answers).unwrap_or(Outcome::Ended)
    }

    fn poll_io(&mut self, buffer: &mut [u8], answers: &Answers) -> io::Result<Outcome> {
        loop {
            while self.owed > 0 {
                match unless_blocked(self.stream.write(answers.next(self.owed)))? {
                    Some(count) => self.owed -= count,
                    None => return Ok(Outcome::Waits),
                }
            }
            if !self.may_read {
                return Ok(Outcome::Waits);
            }
            match unless_blocked(self.stream.read(buffer))? {
                Some(0) => return Ok(Outcome::Ended),
                Some(count) => {
                    self.owed = self.scan.count_heads(&buffer[..count]) * answers.answer_bytes();
                    // A short read has emptied the socket: what comes later is a new edge. Only
                    // the end of the stream may have been announced already.
                    self.may_read = count == buffer.len() || self.is_read_closed;
                }
                None => self.may_read = false,
            }
        }
    }
}

/// The outcome of a call, `None` when the socket would block.
fn unless_blocked(outcome: io::Result<usize>) -> io::Result<Option<usize>> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        outcome => outcome.map(Some),
    }
}

/// Finds the empty lines that end heads, across any split into reads.
#[derive(Debug, Default)]
struct HeadScan {
    /// The present line has a byte besides CR.
    line_has_bytes: bool,
    /// A line of the present head has been seen; empty lines before it do not count.
    is_in_head: bool,
}

impl HeadScan {
    /// How many heads end in `bytes`, which follow those of the last call.
    fn count_heads(&mut self, bytes: &[u8]) -> usize {
        let mut heads = 0;
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', bytes) {
            if self.line_has_bytes || has_bytes(&bytes[start..end]) {
                self.is_in_head = true;
            } else if self.is_in_head {
                self.is_in_head = false;
                heads += 1;
            }
            self.line_has_bytes = false;
            start = end + 1;
        }
        self.line_has_bytes |= has_bytes(&bytes[start..]);
        heads
    }
}

fn has_bytes(line: &[u8]) -> bool {
    line.iter().any(|&byte| byte != b'\r')
}

#[cfg(test)]
mod tests {
    use super::HeadScan;

    #[test]
    fn heads_are_counted_across_every_split() {
        let table: [(&[u8], usize); 6] = [
            (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 1),
            (b"GET / HTTP/1.1\nHost: a\n\n", 1),
            (b"\r\nGET / HTTP/1.1\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\n\r\n", 2),
            (b"GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\nGET /", 2),
            (b"GET / HTTP/1.1\r\nHost: a\r\n", 0),
            (b"\r\n\r\n", 0),
        ];
        for (bytes, heads) in table {
            for place in 0..=bytes.len() {
                let mut scan = HeadScan::default();
                let (first, second) = bytes.split_at(place);
                let found = scan.count_heads(first) + scan.count_heads(second);
                assert_eq!(found, heads, "{} split at {place}", bytes.escape_ascii());
            }
        }
    }
}
