//! A session's or origin's byte source: TCP or unix sockets, later TLS.

use std::io::{self, IoSlice, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::time::Duration;

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};

/// A connected non-blocking socket.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Ip(SocketAddr),
    /// A process on this machine; unix sockets have no address worth showing.
    Local,
}

impl Peer {
    /// The address; `None` for a process on this machine.
    pub(crate) fn ip(self) -> Option<IpAddr> {
        match self {
            Peer::Ip(address) => Some(address.ip()),
            Peer::Local => None,
        }
    }
}

impl std::fmt::Display for Peer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Peer::Ip(address) => address.fmt(formatter),
            Peer::Local => formatter.write_str("unix:"),
        }
    }
}

impl Socket {
    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        match self {
            Socket::Tcp(stream) => stream.register(registry, token, interest),
            Socket::Unix(stream) => stream.register(registry, token, interest),
        }
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.read(buffer),
            Socket::Unix(stream) => stream.read(buffer),
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.write(bytes),
            Socket::Unix(stream) => stream.write(bytes),
        }
    }

    pub(crate) fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.write_vectored(slices),
            Socket::Unix(stream) => stream.write_vectored(slices),
        }
    }

    pub(crate) fn shutdown_write(&self) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Socket::Unix(stream) => stream.shutdown(Shutdown::Write),
        }
    }

    /// The error that a failed connect left, if any.
    pub(crate) fn take_error(&self) -> io::Result<Option<io::Error>> {
        match self {
            Socket::Tcp(stream) => stream.take_error(),
            Socket::Unix(stream) => stream.take_error(),
        }
    }

    /// Whether a connect has come through.
    pub(crate) fn is_connected(&self) -> bool {
        match self {
            Socket::Tcp(stream) => stream.peer_addr().is_ok(),
            Socket::Unix(stream) => stream.peer_addr().is_ok(),
        }
    }

    /// Answers the close with a reset: the peer learns that what it got is not all.
    pub(crate) fn reset_on_close(&self) {
        self.set_linger(Some(Duration::ZERO));
    }

    /// Takes [`Socket::reset_on_close`] back: the close is an orderly end again.
    pub(crate) fn end_on_close(&self) {
        self.set_linger(None);
    }

    fn set_linger(&self, time: Option<Duration>) {
        if let Socket::Tcp(stream) = self {
            // Failing means that the connection is gone already.
            let _ = socket2::SockRef::from(stream).set_linger(time);
        }
    }
}
