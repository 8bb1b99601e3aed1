//! Writes the content of one response: reserves, appends, finishes or aborts with a code.
//!
//! Calling order: [`Writer::poll_append`] until everything is written, then [`Writer::finish`];
//! or [`Writer::abort`]. A writer that is dropped has aborted: a truncated answer is never
//! taken for a complete one. When the budget has no room the response leaves the index and
//! passes through instead, held back by its slowest reader.

use std::sync::Arc;
use std::task::{Context, Poll};

use crate::budget::Kind;
use crate::content::{ABORT_DROPPED, Aborted, Append, Content};
use crate::store::Store;
use crate::stored::Stored;

#[cfg(test)]
mod tests;

/// The least room that passing content asks for: an origin that sends single bytes must not make
/// a chunk of each.
const PASSING_CHUNK_BYTES_MIN: usize = 1024;

/// Nobody reads what is being written, and it is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abandoned;

/// The one writer of a response's content.
#[derive(Debug)]
pub struct Writer {
    store: Arc<Store>,
    content: Arc<Content>,
    /// While the response is kept.
    stored: Option<Arc<Stored>>,
    written: u64,
    declared: Option<u64>,
    ended: bool,
}

impl Writer {
    pub(crate) fn new(
        store: Arc<Store>,
        content: Arc<Content>,
        stored: Option<Arc<Stored>>,
        declared: Option<u64>,
    ) -> Self {
        Writer { store, content, stored, written: 0, declared, ended: false }
    }

    /// Bytes written so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Appends as many of `bytes` as there is room for and says how many: 0 only if there
    /// were none.
    ///
    /// # Errors
    /// [`Abandoned`] if the content is not kept and its last reader has gone.
    pub fn poll_append(
        &mut self,
        cx: &Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, Abandoned>> {
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        loop {
            match self.content.append(cx, bytes) {
                Append::Taken(count) => {
                    self.written += count as u64;
                    return Poll::Ready(Ok(count));
                }
                Append::NeedsChunk(most) => {
                    if !self.grow(cx, bytes.len(), most) {
                        return Poll::Pending;
                    }
                }
                Append::Wait => return Poll::Pending,
                Append::Abandoned => return Poll::Ready(Err(Abandoned)),
            }
        }
    }

    /// Waits until writing on is useless: the content is not kept, and its last reader has gone.
    pub fn poll_abandoned(&self, cx: &Context<'_>) -> Poll<Abandoned> {
        if self.content.is_abandoned(cx) { Poll::Ready(Abandoned) } else { Poll::Pending }
    }

    /// Charges the next chunk, of `most` bytes at most; `false` if readers have to pass bytes
    /// first.
    fn grow(&mut self, cx: &Context<'_>, wanted: usize, most: usize) -> bool {
        if self.stored.as_ref().is_some_and(|stored| !stored.is_indexed()) {
            // Replaced or invalidated meanwhile: only the readers that it has need it still.
            self.stored = None;
            self.content.stop_keeping();
            return true;
        }
        let expected = match (&self.stored, self.declared) {
            (Some(_), Some(declared)) if declared > self.written => {
                usize::try_from(declared - self.written).unwrap_or(most)
            }
            (Some(_), _) => most,
            (None, _) => wanted.max(PASSING_CHUNK_BYTES_MIN),
        };
        let bytes = expected.min(most) as u64;
        let is_too_large = self.stored.is_some() && self.written >= self.store.largest_response();
        if !is_too_large && let Some(charge) = self.store.charge(Kind::Content, bytes) {
            self.content.grow(charge);
            return true;
        }
        if let Some(stored) = self.stored.take() {
            // Too large, at all or for what is left: it passes through and is not stored after all.
            self.store.remove(&stored);
            self.content.stop_keeping();
            return true;
        }
        if self.content.waits_for_readers(cx) {
            return false;
        }
        // Its readers hold nothing back: one chunk is always granted, so that no exchange can
        // wait for another for ever. Concurrent exchanges bound how many such chunks there are.
        self.content.grow(self.store.charge_beyond(Kind::Content, bytes));
        true
    }

    /// Everything is written; `trailers` are field lines, kept beside the content. A response
    /// that did not come to its declared length leaves the index.
    pub fn finish(mut self, trailers: &[u8]) {
        self.ended = true;
        if self.declared.is_some_and(|declared| declared != self.written)
            && let Some(stored) = self.stored.take()
        {
            self.store.remove(&stored);
        }
        self.content.finish(trailers);
    }

    /// Ends early: the response leaves the index and its readers learn `code`.
    pub fn abort(mut self, code: u16) {
        self.end_early(code);
    }

    fn end_early(&mut self, code: u16) {
        self.ended = true;
        if let Some(stored) = self.stored.take() {
            self.store.remove(&stored);
        }
        self.content.abort(Aborted(code));
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.ended {
            self.end_early(ABORT_DROPPED);
        }
    }
}
