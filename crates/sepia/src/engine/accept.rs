//! Hop 1, accept: a connection becomes a session of this worker.

use std::io::{self, Write};

use mio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use mio::{Interest, Registry, Token};

use super::listeners::{Listening, Taken};
use super::mail::MAILBOX_TOKEN;
use crate::base::{Counter, Reason, limits, millis};
use crate::client::Clients;
use crate::exchange::respond::respond_refused;
use crate::io::{Owner, Peer, Socket};

/// Milliseconds after which a listener without a descriptor left is tried again.
const RETRY_MILLIS: u64 = 50;

/// Batches in which the longest queue is accepted.
const QUEUE_BATCHES: usize = limits::BACKLOG as usize / limits::ACCEPTS_PER_TURN + 1;

/// The listeners of one worker.
#[derive(Default)]
pub(super) struct Accepting {
    listeners: Vec<Option<Accepter>>,
}

struct Accepter {
    socket: Listener,
    site: u16,
    /// More may wait in the queue without any further event.
    again: bool,
    /// Milliseconds of the clock until which nothing is accepted, for want of descriptors.
    paused_until: u64,
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Accepting {
    /// Takes up listening sockets.
    pub(super) fn open(&mut self, registry: &Registry, taken: Vec<Taken>) -> io::Result<()> {
        for Taken { site, listening } in taken {
            // A place that a reload has left is taken again; a late event for it costs one look.
            let free = self.listeners.iter().position(Option::is_none);
            let index = free.unwrap_or(self.listeners.len());
            let token = Token(MAILBOX_TOKEN.0 + 1 + index);
            let mut socket = match listening {
                Listening::Tcp(socket) => Listener::Tcp(TcpListener::from_std(socket)),
                Listening::Unix(socket) => Listener::Unix(UnixListener::from_std(socket)),
            };
            match &mut socket {
                Listener::Tcp(socket) => registry.register(socket, token, Interest::READABLE)?,
                Listener::Unix(socket) => registry.register(socket, token, Interest::READABLE)?,
            }
            let accepter = Some(Accepter { socket, site, again: true, paused_until: 0 });
            match self.listeners.get_mut(index) {
                Some(place) => *place = accepter,
                None => self.listeners.push(accepter),
            }
        }
        Ok(())
    }

    /// Closes the listeners of a site, or all. Who is in their queues already is still accepted:
    /// a closed queue resets its connections.
    pub(super) fn close(&mut self, site: Option<u16>, clients: &Clients, now: u64) {
        for place in &mut self.listeners {
            let closes = |listener: &mut Accepter| site.is_none_or(|site| listener.site == site);
            if let Some(mut listener) = place.take_if(closes) {
                listener.empty(clients, now);
            }
        }
    }

    /// The listener of this token has something in its queue.
    pub(super) fn handle_event(&mut self, token: Token) {
        let index = token.0 - MAILBOX_TOKEN.0 - 1;
        if let Some(Some(listener)) = self.listeners.get_mut(index) {
            listener.again = true;
        }
    }

    /// Milliseconds until somebody may have to be accepted; `None` if only an event can tell.
    pub(super) fn wait(&self, now: u64) -> Option<u64> {
        let waiting = self.listeners.iter().flatten().filter(|listener| listener.again);
        waiting.map(|listener| listener.paused_until.saturating_sub(now)).min()
    }

    /// Accepts what waits, a batch per listener.
    pub(super) fn run(&mut self, clients: &Clients, now: u64) {
        for listener in self.listeners.iter_mut().flatten() {
            if listener.again && now >= listener.paused_until {
                listener.run(clients, now);
            }
        }
    }
}

impl Accepter {
    /// Accepts everybody in the queue, whatever events have told.
    fn empty(&mut self, clients: &Clients, now: u64) {
        self.again = true;
        for _ in 0..QUEUE_BATCHES {
            if !self.again || now < self.paused_until {
                break;
            }
            self.run(clients, now);
        }
    }

    fn run(&mut self, clients: &Clients, now: u64) {
        for _ in 0..limits::ACCEPTS_PER_TURN {
            let accepted = match &self.socket {
                Listener::Tcp(socket) => {
                    socket.accept().map(|(stream, peer)| (Socket::Tcp(stream), Peer::Ip(peer)))
                }
                Listener::Unix(socket) => {
                    socket.accept().map(|(stream, _)| (Socket::Unix(stream), Peer::Local))
                }
            };
            match accepted {
                Ok((socket, peer)) => self.admit(clients, socket, peer),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.again = false;
                    return;
                }
                Err(error) if is_exhausted(&error) => {
                    clients.work.counters.count(Reason::DescriptorsExhausted);
                    clients.work.tell(Reason::DescriptorsExhausted, &error);
                    self.paused_until = now + RETRY_MILLIS;
                    return;
                }
                // The client has gone before it was accepted, or the like.
                Err(_) => {}
            }
        }
    }

    fn admit(&self, clients: &Clients, socket: Socket, peer: Peer) {
        let work = &clients.work;
        work.counters.add(Counter::SessionsAccepted, 1);
        let settings = work.settings.borrow();
        let share = settings.config.max_sessions.div_ceil(settings.config.workers.max(1));
        if work.io.sessions() >= share {
            return refuse(clients, socket, Reason::TooManySessions);
        }
        match work.io.insert(socket, peer, Owner::Session(self.site)) {
            Ok(id) => {
                let idle = settings.config.timeouts.idle;
                let millis = millis(idle);
                work.io.set_deadline(id, work.io.clock().millis() + millis);
            }
            Err(_) => work.counters.count(Reason::DescriptorsExhausted),
        }
    }
}

/// Says no in one write and closes: there is no room for a session that could linger.
fn refuse(clients: &Clients, socket: Socket, reason: Reason) {
    let work = &clients.work;
    work.counters.count(reason);
    work.tell(reason, &"a new connection");
    let mut answer = Vec::new();
    respond_refused(reason, b"", work.io.clock().moment(), &mut answer);
    // A socket that takes nothing gets nothing.
    let _ = match socket {
        Socket::Tcp(mut stream) => TcpStream::write(&mut stream, &answer),
        Socket::Unix(mut stream) => UnixStream::write(&mut stream, &answer),
    };
}

/// No descriptor or memory left, in this process or in the system.
fn is_exhausted(error: &io::Error) -> bool {
    const ENOMEM: i32 = 12;
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    const ENOBUFS: i32 = 105;
    matches!(error.raw_os_error(), Some(ENOMEM | ENFILE | EMFILE | ENOBUFS))
}
