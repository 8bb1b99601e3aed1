//! One connection of a script: a socket with a deadline and a memory of what came over it.
//!
//! It must never block longer than its deadline, and never hold more of the past than a failure
//! message can show.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use socket2::SockRef;

use super::DEADLINE;

/// Bytes of the past that a failure shows.
const REMEMBERED_BYTES: usize = 2_000;

/// A connected socket of either family, or one that the script has closed.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
    Closed,
}

impl Socket {
    fn options(&self) -> io::Result<SockRef<'_>> {
        match self {
            Socket::Tcp(stream) => Ok(SockRef::from(stream)),
            Socket::Unix(stream) => Ok(SockRef::from(stream)),
            Socket::Closed => Err(closed()),
        }
    }
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the script itself closed the connection")
}

/// A socket, the time until which the present expectation may wait, and the last bytes received.
#[derive(Debug)]
pub(super) struct Link {
    socket: Socket,
    deadline: Instant,
    received: u64,
    remembered: Vec<u8>,
}

impl Link {
    pub(super) fn new(socket: Socket) -> io::Result<Link> {
        if let Socket::Tcp(stream) = &socket {
            // Each send of a script is a segment of its own, not one that waits for the next.
            stream.set_nodelay(true)?;
        }
        socket.options()?.set_write_timeout(Some(DEADLINE))?;
        let deadline = Instant::now() + DEADLINE;
        Ok(Link { socket, deadline, received: 0, remembered: Vec::new() })
    }

    pub(super) fn restart_deadline(&mut self) {
        self.deadline = Instant::now() + DEADLINE;
    }

    pub(super) fn into_socket(self) -> Socket {
        self.socket
    }

    pub(super) fn shutdown_writing(&self) -> io::Result<()> {
        self.socket.options()?.shutdown(Shutdown::Write)
    }

    pub(super) fn close(&mut self) {
        self.socket = Socket::Closed;
    }

    /// Closes by a reset (RFC 9293 §3.6) instead of an orderly end.
    pub(super) fn reset(&mut self) -> io::Result<()> {
        self.socket.options()?.set_linger(Some(Duration::ZERO))?;
        self.close();
        Ok(())
    }

    /// What has already arrived, without waiting: `None` when nothing has.
    pub(super) fn read_arrived(&mut self, piece: &mut [u8]) -> io::Result<Option<usize>> {
        self.socket.options()?.set_nonblocking(true)?;
        let outcome = self.receive(piece);
        self.socket.options()?.set_nonblocking(false)?;
        match outcome {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            outcome => outcome.map(Some),
        }
    }

    /// What had come over this connection, for a failure message.
    pub(super) fn transcript(&self) -> String {
        let mut text = format!("{} bytes had been received", self.received);
        if self.received > REMEMBERED_BYTES as u64 {
            let _ = write!(text, ", the last {REMEMBERED_BYTES} of them");
        }
        if self.received > 0 {
            let _ = write!(text, ":\n{}", self.remembered.escape_ascii());
        }
        text
    }

    fn receive(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        let count = match &mut self.socket {
            Socket::Tcp(stream) => stream.read(piece)?,
            Socket::Unix(stream) => stream.read(piece)?,
            Socket::Closed => return Err(closed()),
        };
        self.received += count as u64;
        self.remembered.extend_from_slice(&piece[..count]);
        let forgotten = self.remembered.len().saturating_sub(REMEMBERED_BYTES);
        self.remembered.drain(..forgotten);
        Ok(count)
    }
}

impl Read for Link {
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let waited = format!("waited {DEADLINE:?}");
                return Err(io::Error::new(io::ErrorKind::TimedOut, waited));
            }
            self.socket.options()?.set_read_timeout(Some(left))?;
            match self.receive(piece) {
                // A signal is nothing that a story tells of; a timeout is seen above.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                outcome => return outcome,
            }
        }
    }
}

impl Write for Link {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.socket {
            Socket::Tcp(stream) => stream.write(bytes),
            Socket::Unix(stream) => stream.write(bytes),
            Socket::Closed => Err(closed()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
