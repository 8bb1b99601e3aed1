//! Hop 8, deliver: answers to the socket, as far as it takes them.
//!
//! What a socket does not take now is a [`Pending`] of its session: bytes of heads, a reference
//! to stored content and a position. A task delivers what is still being written, piece by piece.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use store::{Aborted, ContentReader, Stored};
use wire::RequestSpans;

use crate::base::Reason;
use crate::exchange::respond::StreamFraming;
use crate::io::{Io, SlotId, Stream};

/// Slices of one vectored write.
const SLICES: usize = 16;

/// Where a session stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Requests are taken.
    #[default]
    Serving,
    /// After what is to be sent, no more.
    Closing,
    /// The answer is sent; what still comes is discarded, so that no reset destroys it.
    Lingering {
        /// Bytes that may still be discarded.
        left: u64,
    },
}

/// What a session carries over from one event to the next.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// Bytes that were read and not served yet.
    pub(crate) input: Vec<u8>,
    /// How far a partial head has been decoded.
    pub(crate) spans: RequestSpans,
    /// The input ends inside a head: more must come before it can be served.
    pub(crate) is_partial: bool,
    /// Bytes to send, from `sent` on.
    pub(crate) output: Vec<u8>,
    pub(crate) sent: usize,
    /// Stored content to send behind them.
    pub(crate) content: Option<Span>,
    pub(crate) phase: Phase,
}

/// Bytes `position..end` of complete stored content, to be sent in this turn of the loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'t> {
    pub(crate) stored: &'t Arc<Stored>,
    pub(crate) position: u64,
    pub(crate) end: u64,
}

/// The same for a later turn: the reference is counted.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) stored: Arc<Stored>,
    pub(crate) position: u64,
    pub(crate) end: u64,
}

impl Span {
    fn part(&self) -> Part<'_> {
        Part { stored: &self.stored, position: self.position, end: self.end }
    }
}

impl Pending {
    /// Forgets everything but the buffers; returns their size.
    pub(crate) fn clear(&mut self) -> usize {
        self.input.clear();
        self.spans.clear();
        self.is_partial = false;
        self.output.clear();
        self.sent = 0;
        self.content = None;
        self.phase = Phase::Serving;
        self.input.capacity() + self.output.capacity()
    }

    /// Whether a head was begun and is awaited. An empty line before it is none yet
    /// (RFC 9112 section 2.2): some clients send one behind the content of a request.
    pub(crate) fn has_begun_head(&self) -> bool {
        let is_blank = self.input.iter().all(|byte| matches!(byte, b'\r' | b'\n'));
        self.phase == Phase::Serving && self.is_partial && !is_blank
    }

    /// Whether nothing is in hand: at most the empty line before a head is here.
    pub(crate) fn is_between_requests(&self) -> bool {
        let serves = self.phase == Phase::Serving && self.is_partial;
        serves && !self.has_begun_head() && !self.has_output()
    }

    pub(crate) fn has_output(&self) -> bool {
        self.sent < self.output.len() || self.content.is_some()
    }

    /// Sends what the socket takes; `true` when nothing is left. `written` counts the bytes.
    pub(crate) fn flush(&mut self, io: &Io, id: SlotId, written: &mut u64) -> io::Result<bool> {
        let part = self.content.as_ref().map(Span::part);
        let progress = send(io, id, &self.output[self.sent..], part);
        self.sent += progress.output;
        *written += progress.total();
        if let Some(span) = &mut self.content {
            span.position += progress.content;
            if span.position == span.end {
                self.content = None;
            }
        }
        progress.result
    }
}

/// How far a sending came.
#[derive(Debug)]
pub(crate) struct Progress {
    pub(crate) output: usize,
    pub(crate) content: u64,
    /// Everything was sent, or the socket takes no more now.
    pub(crate) result: io::Result<bool>,
}

impl Progress {
    pub(crate) fn total(&self) -> u64 {
        self.output as u64 + self.content
    }
}

/// Sends `output`, then bytes `position..end` of complete stored content: one write where one is
/// enough, vectored where there is content. Allocates nothing.
pub(crate) fn send(io: &Io, id: SlotId, output: &[u8], content: Option<Part<'_>>) -> Progress {
    let mut progress = Progress { output: 0, content: 0, result: Ok(true) };
    loop {
        let rest = &output[progress.output..];
        let part = content.map(|part| Part { position: part.position + progress.content, ..part });
        let attempt = match part {
            Some(part) if part.position < part.end => send_vectored(io, id, rest, part),
            _ if rest.is_empty() => return progress,
            _ => io.try_write(id, rest),
        };
        match attempt {
            Ok(count) => {
                let of_output = count.min(rest.len());
                progress.output += of_output;
                progress.content += (count - of_output) as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                progress.result = Ok(false);
                return progress;
            }
            Err(error) => {
                progress.result = Err(error);
                return progress;
            }
        }
    }
}

fn send_vectored(io: &Io, id: SlotId, output: &[u8], part: Part<'_>) -> io::Result<usize> {
    let Part { stored, mut position, end } = part;
    let mut slices = [IoSlice::new(&[]); SLICES];
    let mut count = 0;
    if !output.is_empty() {
        slices[0] = IoSlice::new(output);
        count = 1;
    }
    while count < SLICES && position < end {
        let Some(piece) = stored.content.complete_piece(position) else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let wanted = usize::try_from(end - position).unwrap_or(usize::MAX).min(piece.len());
        slices[count] = IoSlice::new(&piece[..wanted]);
        position += wanted as u64;
        count += 1;
    }
    io.try_write_vectored(id, &slices[..count])
}

/// How the delivery of content that was still being written ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivered {
    /// Every byte, and the end as the framing says it.
    Complete,
    /// The content ended too early, with this code: the client must not take it for complete.
    Aborted(u16),
    /// The client does not take it.
    ClientGone,
    /// The client took nothing for too long.
    ClientStalled,
}

/// Where a task delivers to: a connection, and how patient it is with its client.
#[derive(Debug)]
pub(crate) struct Sink<'s> {
    stream: &'s Stream,
    /// Milliseconds that the client is given to take the next byte.
    patience: u64,
    /// Bytes that were taken so far.
    pub(crate) written: u64,
}

impl<'s> Sink<'s> {
    pub(crate) fn new(stream: &'s Stream, patience: u64) -> Self {
        Sink { stream, patience, written: 0 }
    }

    /// Sends bytes that are all here.
    pub(crate) async fn deliver(&mut self, bytes: &[u8]) -> Delivered {
        self.send([bytes, b"", b""]).await
    }

    /// Sends a head and bytes `position..end` of complete stored content.
    pub(crate) async fn deliver_stored(
        &mut self,
        head: &[u8],
        stored: &Stored,
        mut position: u64,
        end: u64,
    ) -> Delivered {
        let mut front = head;
        loop {
            let piece = stored.content.complete_piece(position).unwrap_or_default();
            let wanted = usize::try_from(end - position).unwrap_or(usize::MAX).min(piece.len());
            let sent = self.send([front, &piece[..wanted], b""]).await;
            if sent != Delivered::Complete {
                return sent;
            }
            front = b"";
            position += wanted as u64;
            if position >= end {
                return Delivered::Complete;
            }
            if wanted == 0 {
                return Delivered::Aborted(Reason::Panicked as u16);
            }
        }
    }

    /// Sends a head and content that is still being written, each piece as it comes.
    ///
    /// An orderly end says that content which only the end of the connection delimits is complete
    /// (RFC 9112 section 8). So until it is, whatever ends the connection resets it: a fault of
    /// the origin server, the client's patience, the end of a drain.
    pub(crate) async fn deliver_stream(
        &mut self,
        head: &[u8],
        reader: ContentReader,
        framing: StreamFraming,
    ) -> Delivered {
        let ends_by_close = framing == StreamFraming::UntilClose;
        if ends_by_close {
            self.stream.reset_on_close();
        }
        let delivered = self.deliver_pieces(head, reader, framing).await;
        if ends_by_close && delivered == Delivered::Complete {
            self.stream.end_on_close();
        }
        delivered
    }

    async fn deliver_pieces(
        &mut self,
        head: &[u8],
        mut reader: ContentReader,
        framing: StreamFraming,
    ) -> Delivered {
        let mut front = head.to_vec();
        loop {
            self.stream.clear_deadline();
            let piece = match self.next_piece(&mut reader, !front.is_empty()).await {
                Ok(Some(piece)) => piece,
                Ok(None) => {
                    append_end(&mut front, framing, &reader.trailers());
                    return self.deliver(&front).await;
                }
                Err(Aborted(code)) if code == Reason::ClientGone as u16 => {
                    return Delivered::ClientGone;
                }
                Err(aborted) => {
                    // What came before the fault is the client's all the same.
                    let _ = self.deliver(&front).await;
                    return Delivered::Aborted(aborted.0);
                }
            };
            let is_chunked = matches!(framing, StreamFraming::Chunked { .. }) && !piece.is_empty();
            if is_chunked {
                wire::encode_chunk_head(&mut front, piece.len());
            }
            let tail: &[u8] = if is_chunked { b"\r\n" } else { b"" };
            let sent = self.send([&front, &piece, tail]).await;
            if sent != Delivered::Complete {
                return sent;
            }
            front.clear();
            reader.advance(piece.len() as u64);
        }
    }

    /// The next piece of content; an empty one if a head waits to be sent and no piece is here.
    /// A client that has sent its end may only have closed its half: it is given its patience for
    /// the next piece, so that an endless stream does not outlive everybody who wanted it.
    async fn next_piece(
        &self,
        reader: &mut ContentReader,
        head_waits: bool,
    ) -> Result<Option<Bytes>, Aborted> {
        let mut has_ended = false;
        poll_fn(|cx| match reader.poll_piece(cx) {
            Poll::Pending if head_waits => Poll::Ready(Ok(Some(Bytes::new()))),
            Poll::Pending => match self.stream.poll_end(cx) {
                Ok(true) => {
                    if !std::mem::replace(&mut has_ended, true) {
                        self.stream.set_deadline_in(self.patience);
                    }
                    Poll::Pending
                }
                Ok(false) => Poll::Pending,
                Err(_) => Poll::Ready(Err(Aborted(Reason::ClientGone as u16))),
            },
            ready => ready,
        })
        .await
    }

    /// Writes all parts; each piece that is taken gives the client its time anew.
    ///
    /// A connection has one deadline, and content of the request that still comes in beside moves
    /// and clears it: ours is set again whenever that may have happened.
    async fn send(&mut self, parts: [&[u8]; 3]) -> Delivered {
        let mut slices = parts.map(IoSlice::new);
        let mut rest = &mut slices[..];
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            let until = self.stream.set_deadline_in(self.patience);
            let taken = poll_fn(|cx| {
                let polled = self.stream.poll_write(cx, rest);
                if polled.is_pending() {
                    self.stream.set_deadline_at(until);
                }
                polled
            });
            match taken.await {
                Ok(count) => {
                    self.written += count as u64;
                    IoSlice::advance_slices(&mut rest, count);
                }
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    return Delivered::ClientStalled;
                }
                Err(_) => return Delivered::ClientGone,
            }
        }
        Delivered::Complete
    }
}

/// The end of content: the last chunk, with trailers for those who asked for them.
fn append_end(front: &mut Vec<u8>, framing: StreamFraming, trailers: &[u8]) {
    if let StreamFraming::Chunked { with_trailers } = framing {
        front.extend_from_slice(wire::LAST_CHUNK);
        if with_trailers {
            front.extend_from_slice(trailers);
        }
        front.extend_from_slice(b"\r\n");
    }
}
