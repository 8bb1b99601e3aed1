//! One connection to an origin, in the hands of a fetch or a tunnel.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::registry::Origin;
use crate::base::{Counters, Gauge};
use crate::io::Stream;

/// A connection; dropped, it is closed.
#[derive(Debug)]
pub(crate) struct OriginConnection {
    // Taken out when the connection goes into the pool.
    parts: Option<(Stream, Arc<Origin>)>,
    counters: Rc<Counters>,
}

impl OriginConnection {
    /// Takes over a connection that is counted in [`Origin::open`] already.
    pub(crate) fn new(stream: Stream, origin: &Arc<Origin>, counters: &Rc<Counters>) -> Self {
        counters.raise(Gauge::OriginsConnected);
        OriginConnection {
            parts: Some((stream, Arc::clone(origin))),
            counters: Rc::clone(counters),
        }
    }

    /// The byte stream.
    pub(crate) fn stream(&self) -> &Stream {
        &self.parts.as_ref().expect("a connection has its stream until it is taken apart").0
    }

    pub(crate) fn origin(&self) -> &Arc<Origin> {
        &self.parts.as_ref().expect("a connection has its origin until it is taken apart").1
    }

    /// The connection stays open, for the pool.
    pub(super) fn into_parts(mut self) -> (Stream, Arc<Origin>) {
        self.parts.take().expect("a connection is taken apart once")
    }
}

impl Drop for OriginConnection {
    fn drop(&mut self) {
        self.counters.lower(Gauge::OriginsConnected);
        if let Some((_, origin)) = &self.parts {
            origin.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
