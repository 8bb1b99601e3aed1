//! A byte tunnel between a client and an origin: CONNECT (RFC 9110 section 9.3.6) and protocol
//! switches (section 7.8). Bytes pass unread, each direction ends by itself.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;

use tokio::join;

use crate::base::{Counter, Counters, Gauge, Reason, limits, millis};
use crate::io::Stream;

/// The two ends of a tunnel and what was read beyond the heads.
pub(crate) struct Tunnel<'s> {
    pub(crate) client: &'s Stream,
    pub(crate) origin: &'s Stream,
    /// Bytes of the client for the origin, and the other way.
    pub(crate) from_client: Vec<u8>,
    pub(crate) from_origin: Vec<u8>,
    /// Milliseconds without a byte either way after which the tunnel ends.
    pub(crate) idle: u64,
}

/// Runs a tunnel until both directions have ended; returns the bytes that passed, and why it
/// ended if not by itself.
pub(crate) async fn run(tunnel: Tunnel<'_>, counters: &Counters) -> (u64, Option<Reason>) {
    counters.add(Counter::Tunnels, 1);
    counters.raise(Gauge::TunnelsOpen);
    let _open = Open(counters);
    let Tunnel { client, origin, from_client, from_origin, idle } = tunnel;
    let cause = Cell::new(None);
    let there = Way { from: client, to: origin, idle, counters, cause: &cause };
    let back = Way { from: origin, to: client, idle, counters, cause: &cause };
    let (there, back) = join!(there.run(from_client), back.run(from_origin));
    (there + back, cause.get())
}

/// Counts the tunnel as open, also if its task is lost.
struct Open<'c>(&'c Counters);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.lower(Gauge::TunnelsOpen);
    }
}

/// One direction.
struct Way<'s> {
    from: &'s Stream,
    to: &'s Stream,
    idle: u64,
    counters: &'s Counters,
    /// Why the tunnel ended if not by itself.
    cause: &'s Cell<Option<Reason>>,
}

impl Way<'_> {
    /// Carries bytes until this direction ends; returns how many.
    async fn run(&self, mut buffer: Vec<u8>) -> u64 {
        let mut passed = 0;
        loop {
            if let Err(error) = self.write(&buffer).await {
                if self.note(&error) != Reason::TunnelIdle {
                    self.discard(buffer).await;
                }
                return passed;
            }
            self.touch();
            passed += buffer.len() as u64;
            self.counters.add(Counter::TunnelBytes, buffer.len() as u64);
            buffer.clear();
            match self.from.read_more(&mut buffer).await {
                Ok(count) if count > 0 => {}
                ended => {
                    if let Err(error) = ended
                        && self.note(&error) != Reason::TunnelIdle
                    {
                        // The other side gets what was sent to it, then the end; it has a moment
                        // to end too, and is not waited for any longer.
                        self.to.set_deadline_in(millis(limits::LINGER));
                    }
                    self.to.shutdown_write();
                    return passed;
                }
            }
        }
    }

    /// Nobody takes what this side still sends: it is read for a moment and dropped, so that the
    /// side can read what was sent to it.
    async fn discard(&self, mut buffer: Vec<u8>) {
        self.from.set_deadline_in(millis(limits::LINGER));
        buffer.clear();
        while matches!(self.from.read_more(&mut buffer).await, Ok(count) if count > 0) {
            buffer.clear();
        }
    }

    async fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.touch();
            let count = poll_fn(|cx| self.to.poll_write(cx, &[io::IoSlice::new(bytes)])).await?;
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// A byte either way keeps both ends alive.
    fn touch(&self) {
        self.from.set_deadline_in(self.idle);
        self.to.set_deadline_in(self.idle);
    }

    /// The reason behind a failure; the first of either direction is why the tunnel ended.
    fn note(&self, error: &io::Error) -> Reason {
        let reason = match error.kind() {
            io::ErrorKind::TimedOut => Reason::TunnelIdle,
            _ => Reason::TunnelBroken,
        };
        self.cause.set(self.cause.get().or(Some(reason)));
        reason
    }
}
