//! What content is while it is written: chunks, the one being filled, readers and the writer.
//!
//! Plain state under [`Content`](super::Content)'s lock. Nothing here wakes anybody: what has
//! to be woken is collected in [`Wakes`] and woken when the lock has been given back, since a waker
//! may run code that comes back to this content, such as dropping a reader.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use super::{Aborted, COPIED_BYTES_MAX, Complete, PASSING_WINDOW_CHUNKS};
use crate::budget::Charge;

/// Wakers to be woken once the lock is free.
pub(super) type Wakes = Vec<Waker>;

/// A whole chunk.
#[derive(Debug)]
struct Chunk {
    start: u64,
    bytes: Bytes,
    charge: Charge,
}

impl Chunk {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

/// Where an attached reader stands.
#[derive(Debug)]
struct Place {
    position: u64,
    waker: Option<Waker>,
}

/// How an attempt to append ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Append {
    /// So many bytes were taken.
    Taken(usize),
    /// A chunk of at most so many bytes has to be charged first; then [`super::Content::grow`].
    NeedsChunk(usize),
    /// Readers have to pass bytes first; the writer will be woken.
    Wait,
    /// Nobody reads passing content any more: writing on is useless.
    Abandoned,
}

#[derive(Debug)]
pub(super) struct Filling {
    keep: bool,
    chunk_bytes: usize,
    /// Chunks that are held, without a gap between them nor before the tail. In content that was
    /// kept from the start all have `chunk_bytes`.
    chunks: VecDeque<Chunk>,
    /// The chunk that is being filled; it begins at `tail_start`, behind the last of `chunks`.
    tail: Vec<u8>,
    tail_start: u64,
    /// As many bytes as the tail has memory for; there is one if the tail has any byte.
    tail_charge: Option<Charge>,
    /// The response has left the index: so do bytes that are still to come.
    has_left: bool,
    end: Option<Result<(), Aborted>>,
    trailers: Box<[u8]>,
    /// A reader's number is its place here.
    readers: Vec<Option<Place>>,
    writer: Option<Waker>,
}

impl Filling {
    pub(super) fn new(keep: bool, chunk_bytes: usize) -> Self {
        Filling {
            keep,
            chunk_bytes,
            chunks: VecDeque::new(),
            tail: Vec::new(),
            tail_start: 0,
            tail_charge: None,
            has_left: false,
            end: None,
            trailers: Box::default(),
            readers: Vec::new(),
            writer: None,
        }
    }

    /// Whether what comes is kept, and more may come or everything did.
    pub(super) fn is_joinable(&self) -> bool {
        self.keep && !matches!(self.end, Some(Err(_)))
    }

    fn len(&self) -> u64 {
        self.tail_start + self.tail.len() as u64
    }

    /// The first position that is held.
    fn base(&self) -> u64 {
        self.chunks.front().map_or(self.tail_start, |first| first.start)
    }

    fn slowest(&self) -> Option<u64> {
        self.readers.iter().flatten().map(|place| place.position).min()
    }

    fn place(&mut self, reader: usize) -> Option<&mut Place> {
        self.readers.get_mut(reader)?.as_mut()
    }

    // The writer's side.

    /// Appends as many of `bytes` as the tail has room for; readers see them at once.
    pub(super) fn append(&mut self, cx: &Context<'_>, bytes: &[u8], wakes: &mut Wakes) -> Append {
        if !self.keep && self.slowest().is_none() {
            return Append::Abandoned;
        }
        let left = self.tail_room();
        if left > 0 {
            let count = left.min(bytes.len());
            self.tail.extend_from_slice(&bytes[..count]);
            // A short last chunk of kept content stays open: a chunk may only end short there.
            if self.tail.len() == self.chunk_bytes || (!self.keep && self.tail_room() == 0) {
                self.close_tail();
            }
            self.wake_readers(wakes);
            return Append::Taken(count);
        }
        if self.keep {
            return Append::NeedsChunk(self.chunk_bytes - self.tail.len());
        }
        // Readers may stand beyond what comes: then nobody passes it, and nobody needs it.
        self.free_passed(wakes);
        let held = self.len() - self.base();
        if held <= (PASSING_WINDOW_CHUNKS - 1) * self.chunk_bytes as u64 {
            return Append::NeedsChunk(self.chunk_bytes);
        }
        self.writer = Some(cx.waker().clone());
        Append::Wait
    }

    fn tail_room(&self) -> usize {
        let charged = self.tail_charge.as_ref().map_or(0, Charge::bytes);
        usize::try_from(charged).unwrap_or(self.chunk_bytes).saturating_sub(self.tail.len())
    }

    /// Makes room in the tail for as many bytes as `charge` has.
    pub(super) fn grow(&mut self, charge: Charge) {
        if self.has_left {
            charge.leave();
        }
        if !self.keep {
            self.close_tail();
        }
        let bytes = usize::try_from(charge.bytes()).unwrap_or(self.chunk_bytes);
        self.tail.reserve_exact(bytes);
        match &mut self.tail_charge {
            Some(held) => held.absorb(charge),
            None => self.tail_charge = Some(charge),
        }
    }

    /// Moves the tail among the whole chunks.
    fn close_tail(&mut self) {
        let Some(charge) = self.tail_charge.take() else { return };
        let bytes = Bytes::from(std::mem::take(&mut self.tail));
        if bytes.is_empty() {
            return;
        }
        let start = self.tail_start;
        self.tail_start += bytes.len() as u64;
        self.chunks.push_back(Chunk { start, bytes, charge });
    }

    /// Everything is written. Returns kept content as it will be from now on.
    pub(super) fn finish(&mut self, trailers: &[u8], wakes: &mut Wakes) -> Option<Complete> {
        self.tail.shrink_to_fit();
        if let Some(charge) = &mut self.tail_charge {
            charge.shrink(self.tail.len() as u64);
        }
        self.close_tail();
        self.wake_readers(wakes);
        if !self.keep {
            wakes.extend(self.writer.take());
            self.end = Some(Ok(()));
            self.trailers = trailers.into();
            self.free_passed(wakes);
            return None;
        }
        let len = self.len();
        let mut whole: Option<Charge> = None;
        let mut chunks = Vec::with_capacity(self.chunks.len());
        for Chunk { bytes, charge, .. } in self.chunks.drain(..) {
            chunks.push(bytes);
            match &mut whole {
                Some(whole) => whole.absorb(charge),
                None => whole = Some(charge),
            }
        }
        Some(Complete { chunks: chunks.into(), len, trailers: trailers.into(), charge: whole })
    }

    /// Nothing more will come. Nobody can join any more, so that passed bytes are freed.
    pub(super) fn abort(&mut self, why: Aborted, wakes: &mut Wakes) {
        self.end.get_or_insert(Err(why));
        wakes.extend(self.writer.take());
        self.wake_readers(wakes);
        self.stop_keeping(wakes);
    }

    /// Whether bytes wait for readers of passing content; if so the writer's waker is registered.
    pub(super) fn waits_for_readers(&mut self, cx: &Context<'_>) -> bool {
        let waits = self.slowest().is_some_and(|slowest| slowest < self.len());
        if waits {
            self.writer = Some(cx.waker().clone());
        }
        waits
    }

    /// Whether nobody reads passing content any more; if not, the writer's waker is registered.
    pub(super) fn is_abandoned(&mut self, cx: &Context<'_>) -> bool {
        let is_abandoned = !self.keep && self.slowest().is_none();
        if !is_abandoned {
            self.writer = Some(cx.waker().clone());
        }
        is_abandoned
    }

    pub(super) fn stop_keeping(&mut self, wakes: &mut Wakes) {
        self.keep = false;
        self.free_passed(wakes);
    }

    /// Counts what is held and what is still to come as leaving.
    pub(super) fn leave(&mut self) {
        self.has_left = true;
        let whole = self.chunks.iter().map(|chunk| &chunk.charge);
        whole.chain(&self.tail_charge).for_each(Charge::leave);
    }

    fn wake_readers(&mut self, wakes: &mut Wakes) {
        wakes.extend(self.readers.iter_mut().flatten().filter_map(|place| place.waker.take()));
    }

    // The readers' side.

    /// Attaches a reader, unless bytes from `position` on were freed or will never come.
    pub(super) fn attach(&mut self, position: u64) -> Option<usize> {
        if position < self.base() || matches!(self.end, Some(Err(_))) {
            return None;
        }
        let place = Some(Place { position, waker: None });
        if let Some(free) = self.readers.iter().position(Option::is_none) {
            self.readers[free] = place;
            return Some(free);
        }
        self.readers.push(place);
        Some(self.readers.len() - 1)
    }

    pub(super) fn readers(&self) -> usize {
        self.readers.iter().flatten().count()
    }

    /// Detaches a reader. Its waker is returned to be dropped outside the lock.
    pub(super) fn detach(&mut self, reader: usize, wakes: &mut Wakes) -> Option<Waker> {
        let place = self.readers.get_mut(reader)?.take()?;
        self.free_passed(wakes);
        if !self.keep && self.slowest().is_none() {
            wakes.extend(self.writer.take());
        }
        place.waker
    }

    pub(super) fn poll_piece(
        &mut self,
        reader: usize,
        position: u64,
        cx: &Context<'_>,
    ) -> Poll<Result<Option<Bytes>, Aborted>> {
        if let Some(piece) = self.piece(position) {
            return Poll::Ready(Ok(Some(piece)));
        }
        match self.end {
            Some(Ok(())) => return Poll::Ready(Ok(None)),
            Some(Err(why)) => return Poll::Ready(Err(why)),
            None => {}
        }
        if let Some(place) = self.place(reader) {
            place.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Bytes held from `position` on, one piece.
    fn piece(&self, position: u64) -> Option<Bytes> {
        let offset = |start: u64| usize::try_from(position.checked_sub(start)?).ok();
        if position >= self.tail_start {
            let rest = self.tail.get(offset(self.tail_start)?..)?;
            let piece = &rest[..rest.len().min(COPIED_BYTES_MAX)];
            return (!piece.is_empty()).then(|| Bytes::copy_from_slice(piece));
        }
        let after = self.chunks.partition_point(|chunk| chunk.start <= position);
        let chunk = self.chunks.get(after.checked_sub(1)?)?;
        Some(chunk.bytes.slice(offset(chunk.start)?..))
    }

    /// Notes that a reader has passed everything before `position`.
    pub(super) fn advance(&mut self, reader: usize, position: u64, wakes: &mut Wakes) {
        if let Some(place) = self.place(reader) {
            place.position = position;
        }
        self.free_passed(wakes);
    }

    pub(super) fn trailers(&self) -> Box<[u8]> {
        self.trailers.clone()
    }

    /// Frees what every reader of passing content has passed. Wakes the writer if that was
    /// anything: it only waits while there is something that its last reader would free by going.
    fn free_passed(&mut self, wakes: &mut Wakes) {
        if self.keep {
            return;
        }
        let passed = self.slowest().unwrap_or(u64::MAX);
        let base = self.base();
        while self.chunks.pop_front_if(|first| first.end() <= passed).is_some() {}
        if self.chunks.is_empty() && passed >= self.len() {
            self.tail_start = self.len();
            self.tail = Vec::new();
            self.tail_charge = None;
        }
        if self.base() > base {
            wakes.extend(self.writer.take());
        }
    }
}
