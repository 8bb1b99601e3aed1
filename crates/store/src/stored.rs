//! A stored response: its head record, its freshness, its variant and its content.
//!
//! The head record has the status and field lines only: no version, no framing, no field that
//! concerns one connection. A 304 swaps the record and shares the content, so a record never
//! changes once it is made.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use caching::{Freshness, Variant};
use wire::{FieldSpans, Fields};

use crate::budget::Charge;
use crate::content::Content;
use crate::key::Key;

/// Field lines of a response as they are stored: `Name: value\r\n`, one after the other.
#[derive(Debug)]
pub struct Head {
    status: u16,
    lines: Box<[u8]>,
    spans: FieldSpans,
}

impl Head {
    /// A record of `status` and complete field lines.
    pub fn new(status: u16, lines: Vec<u8>) -> Self {
        let lines = lines.into_boxed_slice();
        let spans = FieldSpans::decode_lines(&lines);
        Head { status, lines, spans }
    }

    /// The status code.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The field lines as bytes, ready to be sent in HTTP/1.
    pub fn lines(&self) -> &[u8] {
        &self.lines
    }

    /// The field lines as fields.
    pub fn fields(&self) -> Fields<'_> {
        self.spans.of(&self.lines)
    }

    /// Bytes that the record takes beside [`Stored`] itself: lines, and a span of 16 bytes for
    /// each, in a vector that doubled as it grew.
    pub(crate) fn cost(&self) -> u64 {
        let spans = self.fields().len().next_power_of_two().max(4);
        (self.lines.len() + 16 * spans) as u64
    }
}

/// One response under one key: in the index, or on its way through (then no lookup finds it).
#[derive(Debug)]
pub struct Stored {
    pub(crate) key: Key,
    /// Status and fields.
    pub head: Head,
    /// How old it is and when it is fresh; `None` if it was never to be stored. What found no room
    /// has one and is not to be reused all the same: see [`Stored::is_indexed`].
    pub freshness: Option<Freshness>,
    /// Which requests it answers.
    pub variant: Variant,
    /// Length in bytes that the origin declared, if it did.
    pub declared_length: Option<u64>,
    /// The content, shared with records that a 304 replaced.
    pub content: Arc<Content>,
    pub(crate) mark: AtomicBool,
    pub(crate) indexed: AtomicBool,
    /// For the head record and for the place in the index; `None` if it was never to be stored.
    pub(crate) charges: Option<[Charge; 2]>,
}

impl Stored {
    /// Whether a lookup can still find it.
    pub fn is_indexed(&self) -> bool {
        self.indexed.load(Ordering::Relaxed)
    }

    /// Remembers a hit. Tested before it is set, so that a hot response is only read.
    pub fn touch(&self) {
        if !self.mark.load(Ordering::Relaxed) {
            self.mark.store(true, Ordering::Relaxed);
        }
    }

    /// To be called once it has been taken out of the index; its content is left to the caller.
    pub(crate) fn leave(&self) {
        self.indexed.store(false, Ordering::Relaxed);
        self.charges.iter().flatten().for_each(Charge::leave);
    }
}
