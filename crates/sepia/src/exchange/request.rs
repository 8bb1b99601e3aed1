//! A request that outlives its buffer: a task's own copy of the head, and what goes with it.

use std::rc::Rc;

use store::Key;
use wire::{RequestHead, RequestSpans};

use crate::config::{Settings, Site};
use crate::io::Peer;
use crate::policy::Asked;

/// A request that has to wait for something.
#[derive(Debug)]
pub(crate) struct Request {
    bytes: Box<[u8]>,
    spans: RequestSpans,
    pub(crate) peer: Peer,
    pub(crate) settings: Rc<Settings>,
    site: usize,
    pub(crate) key: Key,
    /// Microseconds of the clock when its head was complete.
    pub(crate) started: u64,
    /// What it is called towards the origin and in the log.
    pub(crate) id: String,
}

/// Whence a request came, and when.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) peer: Peer,
    pub(crate) settings: Rc<Settings>,
    /// Number of the site whose listener took the connection.
    pub(crate) site: usize,
    /// Microseconds of the clock when the head was complete.
    pub(crate) started: u64,
}

impl Request {
    /// Copies a head out of its buffer.
    pub(crate) fn new(bytes: &[u8], spans: RequestSpans, key: &[u8], arrival: Arrival) -> Self {
        let Arrival { peer, settings, site, started } = arrival;
        let (key, id) = (Key::new(key), String::new());
        Request { bytes: bytes.into(), spans, peer, settings, site, key, started, id }
    }

    pub(crate) fn head(&self) -> RequestHead<'_> {
        self.spans.head(&self.bytes)
    }

    pub(crate) fn site(&self) -> &Site {
        &self.settings.sites[self.site]
    }

    pub(crate) fn asked(&self) -> Asked<'_> {
        let peer = self.peer.ip();
        Asked { head: self.head(), site: self.site(), settings: &self.settings, peer }
    }
}
