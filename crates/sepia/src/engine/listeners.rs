//! Listening sockets: made by the main thread, one per worker and address, handed over as a
//! group.
//!
//! Workers share a TCP address by SO_REUSEPORT. The address is first bound once without it, so
//! that an occupied port is an error instead of a silent share of another process's clients.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::Path;

use socket2::{Domain, Protocol, Socket, Type};

use crate::base::limits;
use crate::config::ListenAddress;
use crate::io::socket_file::SocketFile;

/// A listening socket of one worker.
#[derive(Debug)]
pub(super) enum Listening {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A listening socket with the site that it belongs to.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) site: u16,
    pub(super) listening: Listening,
}

/// All listeners of a process.
#[derive(Debug)]
pub(super) struct Listeners {
    workers: usize,
    /// Sockets that no worker has taken yet, by worker.
    waiting: Vec<Vec<Taken>>,
    /// Number of the next site.
    next_site: u16,
    /// The unix sockets' files, by site; dropping one removes it.
    files: HashMap<u16, SocketFile>,
}

impl Listeners {
    pub(super) fn new(workers: usize) -> Self {
        Listeners {
            workers,
            waiting: (0..workers).map(|_| Vec::new()).collect(),
            next_site: 0,
            files: HashMap::new(),
        }
    }

    /// Binds an address for every worker as the next site. Returns the address with the port
    /// that it got.
    pub(super) fn bind(&mut self, address: &ListenAddress) -> io::Result<ListenAddress> {
        let site = self.next_site;
        let (bound, sockets) = match address {
            ListenAddress::Tcp(address) => {
                let (bound, sockets) =
                    bind_tcp(*address, self.workers).map_err(|error| explain(address, &error))?;
                let sockets = sockets.into_iter().map(Listening::Tcp).collect::<Vec<_>>();
                (ListenAddress::Tcp(bound), sockets)
            }
            ListenAddress::Unix(path) => {
                let (sockets, file) = bind_unix(path, self.workers)
                    .map_err(|error| explain(&format_args!("unix:{}", path.display()), &error))?;
                self.files.insert(site, file);
                let sockets = sockets.into_iter().map(Listening::Unix).collect();
                (ListenAddress::Unix(path.clone()), sockets)
            }
        };
        for (waiting, listening) in self.waiting.iter_mut().zip(sockets) {
            waiting.push(Taken { site, listening });
        }
        self.next_site = site.checked_add(1).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(bound)
    }

    /// The sockets that this worker has not taken yet.
    pub(super) fn take(&mut self, worker: usize) -> Vec<Taken> {
        std::mem::take(&mut self.waiting[worker])
    }

    /// Gives up what was bound and not taken: a reload that failed half way.
    pub(super) fn forget_waiting(&mut self, first_site: u16) {
        for waiting in &mut self.waiting {
            waiting.clear();
        }
        for site in first_site..self.next_site {
            self.close(site);
        }
        self.next_site = first_site;
    }

    pub(super) fn next_site(&self) -> u16 {
        self.next_site
    }

    /// A site's sockets are closed by their workers; what it left in the file system goes here.
    pub(super) fn close(&mut self, site: u16) {
        self.files.remove(&site);
    }
}

fn explain(address: &dyn std::fmt::Display, error: &io::Error) -> io::Error {
    let hint = match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another program listens there: stop it or choose another address"
        }
        io::ErrorKind::AlreadyExists => "only a socket that nobody uses is replaced",
        io::ErrorKind::PermissionDenied => {
            "this user may not: a port below 1024 needs CAP_NET_BIND_SERVICE, a socket its folder"
        }
        io::ErrorKind::AddrNotAvailable => "no interface of this machine has this address",
        _ => "the system refused",
    };
    io::Error::new(error.kind(), format!("cannot listen on {address}: {hint} ({error})"))
}

fn bind_tcp(address: SocketAddr, workers: usize) -> io::Result<(SocketAddr, Vec<TcpListener>)> {
    let probe = bound_socket(address, false)?;
    let bound = probe.local_addr()?.as_socket().unwrap_or(address);
    if workers == 1 {
        return Ok((bound, vec![listening(probe)?]));
    }
    // Bound without listening it takes no clients; it has to go before the shared ones come.
    drop(probe);
    let sockets = (0..workers).map(|_| listening(bound_socket(bound, true)?));
    Ok((bound, sockets.collect::<io::Result<Vec<_>>>()?))
}

fn bound_socket(address: SocketAddr, is_shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(is_shared)?;
    if address.is_ipv6() {
        // `[::]` and `0.0.0.0` are two listeners, whatever the system's default is.
        socket.set_only_v6(true)?;
    }
    // Accepted sockets inherit it: an answer is written whole and should leave at once.
    socket.set_tcp_nodelay(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

fn listening(socket: Socket) -> io::Result<TcpListener> {
    socket.listen(limits::BACKLOG)?;
    Ok(socket.into())
}

fn bind_unix(path: &Path, workers: usize) -> io::Result<(Vec<UnixListener>, SocketFile)> {
    let (listener, file) = SocketFile::bind(path, |path| UnixListener::bind(path))?;
    listener.set_nonblocking(true)?;
    let mut sockets = Vec::new();
    for _ in 1..workers {
        sockets.push(listener.try_clone()?);
    }
    sockets.push(listener);
    Ok((sockets, file))
}

/// The kernel's own cap on accept queues, if it is lower than a busy listener needs.
pub(super) fn low_backlog_cap() -> Option<i32> {
    let text = fs::read_to_string("/proc/sys/net/core/somaxconn").ok()?;
    let cap = text.trim().parse().ok()?;
    (cap < limits::BACKLOG_WARN_BELOW).then_some(cap)
}
