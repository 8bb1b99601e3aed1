//! A connection that a task holds: asynchronous reads and writes over its slot.
//!
//! Dropping a stream closes its connection; [`Stream::park`] gives it back to the loop instead.

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::slots::{Io, SlotId};
use super::wheel::TimerId;

/// A connection in the hands of a task.
#[derive(Debug)]
pub(crate) struct Stream {
    io: Rc<Io>,
    id: SlotId,
    parked: bool,
}

impl Stream {
    /// Takes hold of a slot.
    pub(crate) fn hold(io: &Rc<Io>, id: SlotId) -> Self {
        io.hold(id);
        Stream { io: Rc::clone(io), id, parked: false }
    }

    pub(crate) fn id(&self) -> SlotId {
        self.id
    }

    /// Gives the connection back to the loop.
    pub(crate) fn park(mut self) -> SlotId {
        self.parked = true;
        self.io.park(self.id);
        self.id
    }

    /// Lets reads and writes fail as timed out `millis` after now. Returns when that is, in
    /// milliseconds of the clock.
    pub(crate) fn set_deadline_in(&self, millis: u64) -> u64 {
        let at = self.io.clock().millis().saturating_add(millis);
        self.set_deadline_at(at);
        at
    }

    /// The same at a time that is known, in milliseconds of the clock.
    pub(crate) fn set_deadline_at(&self, at: u64) {
        self.io.set_deadline(self.id, at);
    }

    pub(crate) fn clear_deadline(&self) {
        self.io.clear_deadline(self.id);
    }

    /// Reads at least one byte, or 0 at the peer's end.
    pub(crate) fn poll_read(&self, cx: &Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            if !self.io.poll_readable(self.id, cx)? {
                return Poll::Pending;
            }
            match self.io.try_read(self.id, buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // The peer's end was announced, and yet nothing is there: wait for an event.
                    if self.io.is_readable(self.id) {
                        return Poll::Ready(Ok(0));
                    }
                }
                result => return Poll::Ready(result),
            }
        }
    }

    /// Appends what has come to `buffer`; 0 at the peer's end.
    pub(crate) fn poll_read_more(
        &self,
        cx: &Context<'_>,
        buffer: &mut Vec<u8>,
    ) -> Poll<io::Result<usize>> {
        let mut scratch = self.io.scratch();
        let read = self.poll_read(cx, &mut scratch);
        if let Poll::Ready(Ok(count)) = read {
            buffer.extend_from_slice(&scratch[..count]);
        }
        read
    }

    pub(crate) async fn read_more(&self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        poll_fn(|cx| self.poll_read_more(cx, buffer)).await
    }

    /// Whether the peer has sent its end or is gone; if not, the task is woken when it has. Fails
    /// when the deadline has passed.
    pub(crate) fn poll_end(&self, cx: &Context<'_>) -> io::Result<bool> {
        self.io.poll_read_closed(self.id, cx)
    }

    /// Writes some bytes of several slices.
    pub(crate) fn poll_write(
        &self,
        cx: &Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            if !self.io.poll_writable(self.id, cx)? {
                return Poll::Pending;
            }
            match self.io.try_write_vectored(self.id, slices) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result),
            }
        }
    }

    /// Writes all of `bytes`; every piece that is taken moves the deadline to `millis` from then.
    pub(crate) async fn write_all(&self, mut bytes: &[u8], millis: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            self.set_deadline_in(millis);
            let count = poll_fn(|cx| self.poll_write(cx, &[IoSlice::new(bytes)])).await?;
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// Waits until a connect has come through or failed.
    pub(crate) async fn connected(&self) -> io::Result<()> {
        poll_fn(|cx| match self.io.poll_writable(self.id, cx) {
            Ok(false) => Poll::Pending,
            Ok(true) => {
                Poll::Ready(self.io.with_socket(self.id, |socket| match socket.take_error()? {
                    Some(error) => Err(error),
                    None if socket.is_connected() => Ok(()),
                    None => Err(io::ErrorKind::NotConnected.into()),
                })?)
            }
            Err(error) => Poll::Ready(Err(error)),
        })
        .await
    }

    pub(crate) fn shutdown_write(&self) {
        // A connection that is gone needs no end.
        let _ = self.io.with_socket(self.id, super::socket::Socket::shutdown_write);
    }

    /// The connection ends with a reset, whoever drops it.
    pub(crate) fn reset_on_close(&self) {
        let _ = self.io.with_socket(self.id, super::socket::Socket::reset_on_close);
    }

    /// Takes [`Stream::reset_on_close`] back.
    pub(crate) fn end_on_close(&self) {
        let _ = self.io.with_socket(self.id, super::socket::Socket::end_on_close);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if !self.parked {
            self.io.remove(self.id);
        }
    }
}

/// Waits until the clock shows `at` milliseconds.
pub(crate) struct Sleep {
    io: Rc<Io>,
    at: u64,
    timer: TimerId,
}

impl Sleep {
    pub(crate) fn until(io: &Rc<Io>, at: u64) -> Self {
        Sleep { io: Rc::clone(io), at, timer: TimerId::NONE }
    }

    pub(crate) fn for_millis(io: &Rc<Io>, millis: u64) -> Self {
        Sleep::until(io, io.clock().millis().saturating_add(millis))
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let now = self.io.clock().millis();
        // An entry that fired is gone from the wheel; one that did not is cleared below.
        if now >= self.at {
            return Poll::Ready(());
        }
        let timer = self.io.set_timer(self.at, cx.waker().clone());
        let before = std::mem::replace(&mut self.timer, timer);
        self.io.clear_timer(before);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.io.clear_timer(self.timer);
    }
}
