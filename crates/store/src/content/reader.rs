//! A reader of one content: takes pieces, says what it has passed, detaches when dropped.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;

use super::{Aborted, Complete, Content};

/// A reader of one content, attached until it is dropped.
///
/// Calling order: [`poll_piece`](Self::poll_piece), use the piece, [`advance`](Self::advance) by
/// what was used, drop the piece; at the end [`trailers`](Self::trailers).
#[derive(Debug)]
pub struct ContentReader {
    content: Arc<Content>,
    /// Its place among the readers; `None` if the content was complete when it came.
    place: Option<usize>,
    position: u64,
}

impl ContentReader {
    pub(super) fn new(content: Arc<Content>, place: Option<usize>, position: u64) -> Self {
        ContentReader { content, place, position }
    }

    /// The next byte that will be read.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Bytes from the position on (not yet passed: [`ContentReader::advance`]) or `None` at the
    /// end.
    ///
    /// # Errors
    /// Why the content ended early, after all bytes that came before.
    pub fn poll_piece(&mut self, cx: &Context<'_>) -> Poll<Result<Option<Bytes>, Aborted>> {
        if self.content.complete.get().is_none()
            && let Some(place) = self.place
            && let Some(polled) =
                self.content.change(|filling, _| filling.poll_piece(place, self.position, cx))
        {
            return polled;
        }
        let complete = self.content.complete.get();
        Poll::Ready(Ok(complete.and_then(|complete| self.complete_piece(complete))))
    }

    fn complete_piece(&self, complete: &Complete) -> Option<Bytes> {
        let (index, offset) = self.content.locate(self.position)?;
        let chunk = complete.chunks.get(index)?;
        (offset < chunk.len()).then(|| chunk.slice(offset..))
    }

    /// Passes `bytes` bytes: they may be freed if nobody else needs them.
    pub fn advance(&mut self, bytes: u64) {
        self.position = self.position.saturating_add(bytes);
        if let Some(place) = self.place.filter(|_| self.content.complete.get().is_none()) {
            self.content.change(|filling, wakes| filling.advance(place, self.position, wakes));
        }
    }

    /// Trailer field lines, once the end was reached; empty if there were none.
    pub fn trailers(&self) -> Box<[u8]> {
        if let Some(trailers) = self.content.change(|filling, _| filling.trailers()) {
            return trailers;
        }
        self.content.complete.get().map(|complete| complete.trailers.clone()).unwrap_or_default()
    }
}

impl Drop for ContentReader {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            let waker = self.content.change(|filling, wakes| filling.detach(place, wakes));
            drop(waker);
        }
    }
}
