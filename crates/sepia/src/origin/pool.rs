//! Idle connections to origins, last in first out. They are parked slots: no task, no buffer.
//!
//! Anything that an idle connection has to say (its end, or bytes that nobody asked for) makes
//! it useless: it is closed, and its bytes are never taken for an answer.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::OriginSide;
use super::connection::OriginConnection;
use super::registry::Origin;
use crate::base::{Gauge, limits, millis};
use crate::io::{SlotId, Stream};

/// A connection idle for less than this is alive with near certainty: requests that must not be
/// sent twice may use it, in milliseconds.
const SURELY_ALIVE_MILLIS: u64 = 1_000;

/// A connection that waits for work.
#[derive(Debug)]
struct Idle {
    id: SlotId,
    since: u64,
}

/// This worker's idle connections.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    idle: HashMap<(String, u16), Vec<Idle>>,
    owners: HashMap<SlotId, Arc<Origin>>,
}

impl Pool {
    fn push(&mut self, origin: &Arc<Origin>, idle: Idle) -> Option<SlotId> {
        let connections = self.idle.entry((origin.host.clone(), origin.port)).or_default();
        let oldest = (connections.len() >= limits::IDLE_PER_ORIGIN).then(|| connections.remove(0));
        self.owners.insert(idle.id, Arc::clone(origin));
        connections.push(idle);
        oldest.map(|oldest| oldest.id)
    }

    fn pop(&mut self, origin: &Origin, younger_than: Option<u64>) -> Option<SlotId> {
        let name = (origin.host.clone(), origin.port);
        let connections = self.idle.get_mut(&name)?;
        let last = connections.last()?;
        if younger_than.is_some_and(|limit| last.since < limit) {
            return None;
        }
        let taken = connections.pop();
        if connections.is_empty() {
            self.idle.remove(&name);
        }
        let id = taken?.id;
        self.owners.remove(&id);
        Some(id)
    }

    fn forget(&mut self, id: SlotId) -> Option<Arc<Origin>> {
        let origin = self.owners.remove(&id)?;
        let name = (origin.host.clone(), origin.port);
        if let Some(connections) = self.idle.get_mut(&name) {
            connections.retain(|idle| idle.id != id);
            if connections.is_empty() {
                self.idle.remove(&name);
            }
        }
        Some(origin)
    }
}

impl OriginSide {
    /// Takes an idle connection that is still silent. One that must not be retried on takes only
    /// a connection that was in use a moment ago.
    pub(crate) fn take_idle(
        &self,
        origin: &Arc<Origin>,
        is_idempotent: bool,
    ) -> Option<OriginConnection> {
        let now = self.io.clock().millis();
        let younger_than = (!is_idempotent).then(|| now.saturating_sub(SURELY_ALIVE_MILLIS));
        loop {
            let id = self.pool.borrow_mut().pop(origin, younger_than)?;
            self.count_idle(origin, false);
            self.io.clear_deadline(id);
            let silent = self.is_silent(id);
            let connection =
                OriginConnection::new(Stream::hold(&self.io, id), origin, &self.counters);
            if silent {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection whose response is complete. `keep_for` is what the origin's Keep-Alive
    /// field allows, in seconds; a second is taken off, so that we close first.
    pub(crate) fn keep_idle(&self, connection: OriginConnection, keep_for: Option<u64>) {
        let longest = millis(limits::IDLE_AT_ORIGIN);
        let idle = keep_for.map_or(longest, |seconds| {
            seconds.saturating_sub(1).saturating_mul(1_000).min(longest)
        });
        if idle == 0 {
            return;
        }
        let (stream, origin) = connection.into_parts();
        stream.set_deadline_in(idle);
        let id = stream.park();
        self.count_idle(&origin, true);
        let idle = Idle { id, since: self.io.clock().millis() };
        let oldest = self.pool.borrow_mut().push(&origin, idle);
        if let Some(oldest) = oldest {
            self.close_idle(oldest);
        }
    }

    fn count_idle(&self, origin: &Origin, is_more: bool) {
        if is_more {
            origin.idle.fetch_add(1, Ordering::Relaxed);
            self.counters.raise(Gauge::OriginsIdle);
        } else {
            origin.idle.fetch_sub(1, Ordering::Relaxed);
            self.counters.lower(Gauge::OriginsIdle);
        }
    }

    /// An idle connection is ready. An event of its last exchange may come late and mean nothing;
    /// anything that can be read means that it is useless.
    pub(crate) fn handle_idle_ready(&self, id: SlotId) {
        if !self.is_silent(id) {
            self.close_idle(id);
        }
    }

    fn is_silent(&self, id: SlotId) -> bool {
        let read = self.io.try_read(id, &mut [0; 1]);
        read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// An idle connection's time is over, or it has something to say.
    pub(crate) fn close_idle(&self, id: SlotId) {
        if let Some(origin) = self.pool.borrow_mut().forget(id) {
            self.count_idle(&origin, false);
            origin.open.fetch_sub(1, Ordering::Relaxed);
        }
        self.io.remove(id);
    }
}
