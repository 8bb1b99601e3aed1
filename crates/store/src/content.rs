//! Content of a response: written once, readable by any number of readers while it is written.
//!
//! Two lives. *Kept* content (a stored response) holds every byte until it is dropped; when it
//! is finished its chunks become an immutable array that readers use without a lock. *Passing*
//! content (a response that may not be stored, or content on its way to an origin) holds only
//! what its slowest reader has not passed, at most a window: the writer waits, so that TCP
//! closes the window of the peer that sends. A byte that an attached reader has not passed is
//! never freed in either life.
//!
//! Chunks of kept content are exact multiples: all of one size but the last, so that a position
//! finds its chunk by division. Bytes of the chunk that is being filled are copied out for
//! readers that wait at its end; readers further back share chunks without a copy.
//!
//! Never here: a waker called, or dropped with its reader, under the lock.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Context;

use bytes::Bytes;

use crate::budget::Charge;

mod filling;
mod reader;
#[cfg(test)]
mod tests;

pub(crate) use filling::Append;
use filling::{Filling, Wakes};
pub use reader::ContentReader;

/// Chunks of passing content that may wait for its slowest reader.
pub const PASSING_WINDOW_CHUNKS: u64 = 4;

/// Bytes of an unfinished chunk that one piece copies at most: a reader that takes less at a
/// time has them copied again.
pub const COPIED_BYTES_MAX: usize = 16 * 1024;

/// Why content ended before it was complete: a code that the writer chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aborted(pub u16);

/// The code of a writer that was dropped without saying how it ended.
pub const ABORT_DROPPED: u16 = u16::MAX;

/// Content of one response, shared by its writer and its readers.
#[derive(Debug)]
pub struct Content {
    chunk_bytes: usize,
    complete: OnceLock<Complete>,
    /// `None` as soon as `complete` is set: both change under this lock.
    filling: Mutex<Option<Box<Filling>>>,
}

/// Kept content when everything is there.
#[derive(Debug)]
struct Complete {
    chunks: Box<[Bytes]>,
    len: u64,
    trailers: Box<[u8]>,
    charge: Option<Charge>,
}

impl Content {
    /// Empty content that keeps what is written (`keep`) or passes it on, in chunks of
    /// `chunk_bytes`.
    pub fn new(keep: bool, chunk_bytes: usize) -> Arc<Self> {
        Arc::new(Content {
            chunk_bytes,
            complete: OnceLock::new(),
            filling: Mutex::new(Some(Box::new(Filling::new(keep, chunk_bytes)))),
        })
    }

    /// Content that is complete from the start, charged by whoever holds it.
    pub fn complete_from(bytes: Bytes) -> Arc<Self> {
        let (chunk_bytes, len) = (bytes.len().max(1), bytes.len() as u64);
        let chunks = if bytes.is_empty() { Box::default() } else { Box::from([bytes]) };
        let complete = Complete { chunks, len, trailers: Box::default(), charge: None };
        Arc::new(Content {
            chunk_bytes,
            complete: OnceLock::from(complete),
            filling: Mutex::new(None),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<Filling>>> {
        // A panic under this lock leaves plain values that are still consistent.
        self.filling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes content that is not complete, then wakes whom that concerns. `None` if it is.
    fn change<R>(&self, change: impl FnOnce(&mut Filling, &mut Wakes) -> R) -> Option<R> {
        let mut wakes = Wakes::new();
        let outcome = self.lock().as_mut().map(|filling| change(filling, &mut wakes));
        wake_all(wakes);
        outcome
    }

    /// The length in bytes, once everything is here and kept.
    pub fn complete_len(&self) -> Option<u64> {
        self.complete.get().map(|complete| complete.len)
    }

    /// Whether a reader that comes now gets everything: what was written is kept, and the
    /// writing has not been given up. May change at once while content is being written.
    pub fn is_joinable(&self) -> bool {
        self.lock().as_ref().is_none_or(|filling| filling.is_joinable())
    }

    /// A piece of complete content from `position` on; `None` at its end or if not complete.
    /// Takes no lock and no reference.
    pub fn complete_piece(&self, position: u64) -> Option<&[u8]> {
        let complete = self.complete.get()?;
        let (index, offset) = self.locate(position)?;
        complete.chunks.get(index)?.get(offset..).filter(|piece| !piece.is_empty())
    }

    /// The chunk of complete content that `position` is in, and the place in it.
    fn locate(&self, position: u64) -> Option<(usize, usize)> {
        let chunk_bytes = self.chunk_bytes as u64;
        let index = usize::try_from(position / chunk_bytes).ok()?;
        let offset = usize::try_from(position % chunk_bytes).ok()?;
        Some((index, offset))
    }

    /// Attaches a reader at `position`. `None` if bytes from there on were freed, or if the
    /// content was aborted.
    pub fn reader(self: &Arc<Self>, position: u64) -> Option<ContentReader> {
        let place = match self.change(|filling, _| filling.attach(position)) {
            Some(attached) => Some(attached?),
            None => None,
        };
        Some(ContentReader::new(Arc::clone(self), place, position))
    }

    /// How many readers are attached; 0 once the content is complete, when they hold nothing back.
    pub fn readers(&self) -> usize {
        self.lock().as_ref().map_or(0, |filling| filling.readers())
    }

    /// From now on bytes that all readers have passed are freed. Not for complete content.
    pub(crate) fn stop_keeping(&self) {
        self.change(Filling::stop_keeping);
    }

    /// Appends what there is room for; readers see it at once. Registers the writer's waker if
    /// it has to wait.
    pub(crate) fn append(&self, cx: &Context<'_>, bytes: &[u8]) -> Append {
        self.change(|filling, wakes| filling.append(cx, bytes, wakes)).unwrap_or(Append::Abandoned)
    }

    /// Whether bytes wait for readers of passing content; if so the writer's waker is registered.
    pub(crate) fn waits_for_readers(&self, cx: &Context<'_>) -> bool {
        self.change(|filling, _| filling.waits_for_readers(cx)).unwrap_or(false)
    }

    /// Whether nobody reads passing content any more; if not, the writer's waker is registered.
    pub(crate) fn is_abandoned(&self, cx: &Context<'_>) -> bool {
        self.change(|filling, _| filling.is_abandoned(cx)).unwrap_or(false)
    }

    /// Makes room for as many bytes as `charge` has: not more than [`Append::NeedsChunk`] said.
    pub(crate) fn grow(&self, charge: Charge) {
        self.change(|filling, _| filling.grow(charge));
    }

    /// Everything is written; `trailers` are field lines. Kept content becomes immutable.
    pub(crate) fn finish(&self, trailers: &[u8]) {
        let mut wakes = Wakes::new();
        let mut filling = self.lock();
        let complete = filling.as_mut().and_then(|it| it.finish(trailers, &mut wakes));
        let done = complete.and_then(|complete| {
            // Under the lock: who finds no filling finds the complete content.
            let _ = self.complete.set(complete);
            filling.take()
        });
        drop(filling);
        wake_all(wakes);
        // May hold the writer's waker.
        drop(done);
    }

    /// Nothing more will come.
    pub(crate) fn abort(&self, why: Aborted) {
        self.change(|filling, wakes| filling.abort(why, wakes));
    }

    /// Counts its bytes as leaving: evicted, but perhaps still being read.
    pub(crate) fn leave(&self) {
        if self.change(|filling, _| filling.leave()).is_none()
            && let Some(charge) = self.complete.get().and_then(|it| it.charge.as_ref())
        {
            charge.leave();
        }
    }
}

fn wake_all(wakes: Wakes) {
    wakes.into_iter().for_each(std::task::Waker::wake);
}
