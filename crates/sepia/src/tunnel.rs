//! A byte tunnel between a client and an origin: CONNECT (RFC 9110 section 9.3.6) and protocol
//! switches (section 7.8). Bytes pass unread, each direction ends by itself.

use std::future::poll_fn;
use std::io;

use tokio::join;

use crate::base::{Counter, Counters, Gauge, Reason};
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
    let there = Way { from: client, to: origin, idle, counters };
    let back = Way { from: origin, to: client, idle, counters };
    let (there, back) = join!(there.run(from_client), back.run(from_origin));
    let reason = [there.1, back.1].into_iter().flatten().next();
    (there.0 + back.0, reason)
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
}

impl Way<'_> {
    async fn run(&self, mut buffer: Vec<u8>) -> (u64, Option<Reason>) {
        let mut passed = 0;
        loop {
            if let Err(error) = self.write(&buffer).await {
                return (passed, Some(self.broken(&error)));
            }
            passed += buffer.len() as u64;
            self.counters.add(Counter::TunnelBytes, buffer.len() as u64);
            buffer.clear();
            self.touch();
            match self.from.read_more(&mut buffer).await {
                Ok(0) => {
                    self.to.shutdown_write();
                    return (passed, None);
                }
                Ok(_) => {}
                Err(error) => return (passed, Some(self.broken(&error))),
            }
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

    /// A failure of one direction ends the other too: both ends are reset or idle.
    fn broken(&self, error: &io::Error) -> Reason {
        self.to.reset_on_close();
        self.from.reset_on_close();
        self.to.end();
        self.from.end();
        match error.kind() {
            io::ErrorKind::TimedOut => Reason::TunnelIdle,
            _ => Reason::TunnelBroken,
        }
    }
}
