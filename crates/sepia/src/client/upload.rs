//! Request content: from the session into a bounded pipe, whose other end a fetch reads.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::Poll;

use store::Writer;
use wire::{ContentDecoder, Fields, Framing};

use crate::base::limits;
use crate::base::{Counter, Counters, Reason};
use crate::io::Stream;

/// How the content of a request ended.
#[derive(Debug)]
pub(crate) enum UploadEnd {
    /// All of it was read; these bytes follow it.
    Done(Vec<u8>),
    /// Nobody wants the rest.
    Unwanted,
    /// The client did not send what it announced.
    Failed(Reason),
}

/// How a client's content is received.
#[derive(Clone, Copy)]
pub(crate) struct Receiving<'s> {
    pub(crate) framing: Framing,
    /// Milliseconds that the client is given for each next byte.
    pub(crate) patience: u64,
    /// The client holds its content back until it has seen a 100: its time runs only from then.
    pub(crate) awaits_continue: bool,
    /// Trailers go on to the origin.
    pub(crate) with_trailers: bool,
    pub(crate) counters: &'s Counters,
}

/// Content of one request on its way, beside the answer.
pub(crate) struct ClientUpload<'s> {
    sending: Option<Pin<Box<dyn Future<Output = UploadEnd> + 's>>>,
    end: Option<UploadEnd>,
}

impl<'s> ClientUpload<'s> {
    /// A request without content: what was read behind its head belongs to the next.
    pub(crate) fn none(rest: Vec<u8>) -> Self {
        ClientUpload { sending: None, end: Some(UploadEnd::Done(rest)) }
    }

    /// Moves content into `writer`, first what is in `buffer` already.
    pub(crate) fn start(
        stream: &'s Stream,
        buffer: Vec<u8>,
        writer: Writer,
        receiving: Receiving<'s>,
    ) -> Self {
        let sending = Box::pin(receive(stream, buffer, writer, receiving));
        ClientUpload { sending: Some(sending), end: None }
    }

    /// Whether content is still to come.
    pub(crate) fn is_receiving(&self) -> bool {
        self.sending.is_some()
    }

    /// Whether the client can be asked for its next request after the answer.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.end, Some(UploadEnd::Done(_)))
    }

    /// Bytes behind the request; `None` if its content was not read to the end.
    pub(crate) fn into_rest(self) -> Option<Vec<u8>> {
        match self.end {
            Some(UploadEnd::Done(rest)) => Some(rest),
            _ => None,
        }
    }

    /// Waits for `main` while content comes in. The end of `main` is what counts: a client that
    /// breaks its content off fails the fetch, which tells.
    pub(crate) async fn alongside<T>(&mut self, main: impl Future<Output = T>) -> T {
        let mut main = pin!(main);
        poll_fn(|cx| {
            if let Some(sending) = &mut self.sending
                && let Poll::Ready(end) = sending.as_mut().poll(cx)
            {
                self.sending = None;
                self.end = Some(end);
            }
            main.as_mut().poll(cx)
        })
        .await
    }

    /// Why the client's content ended early, if it did.
    pub(crate) fn failure(&self) -> Option<Reason> {
        match self.end {
            Some(UploadEnd::Failed(reason)) => Some(reason),
            _ => None,
        }
    }
}

async fn receive(
    stream: &Stream,
    mut buffer: Vec<u8>,
    mut writer: Writer,
    receiving: Receiving<'_>,
) -> UploadEnd {
    let mut decoder = ContentDecoder::new(receiving.framing, limits::CONTENT);
    let mut awaits_continue = receiving.awaits_continue && buffer.is_empty();
    loop {
        match hand_over(&mut decoder, &mut buffer, &mut writer).await {
            Ok(true) => {}
            Ok(false) => return UploadEnd::Unwanted,
            Err(reason) => return fail(writer, reason),
        }
        if decoder.is_done() {
            stream.clear_deadline();
            let trailers = decoder.trailers().filter(|_| receiving.with_trailers);
            writer.finish(&trailers.map(trailer_lines).unwrap_or_default());
            return UploadEnd::Done(buffer);
        }
        if !std::mem::take(&mut awaits_continue) {
            stream.set_deadline_in(receiving.patience);
        }
        let read = stream.read_more(&mut buffer).await;
        stream.clear_deadline();
        match read {
            Ok(0) => return fail(writer, Reason::ClientTruncated),
            Ok(count) => receiving.counters.add(Counter::BytesFromClients, count as u64),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                return fail(writer, Reason::ClientSilent);
            }
            Err(_) => return fail(writer, Reason::ClientReset),
        }
    }
}

fn fail(writer: Writer, reason: Reason) -> UploadEnd {
    writer.abort(reason as u16);
    UploadEnd::Failed(reason)
}

/// Decodes what is in the buffer into the pipe; `false` if nobody reads it any more.
async fn hand_over(
    decoder: &mut ContentDecoder,
    buffer: &mut Vec<u8>,
    writer: &mut Writer,
) -> Result<bool, Reason> {
    let mut used = 0;
    loop {
        let piece = decoder.decode(&buffer[used..]).map_err(Reason::of_request)?;
        if piece.consumed == 0 && piece.content.is_empty() {
            break;
        }
        used += piece.consumed;
        let mut content = piece.content;
        while !content.is_empty() {
            match poll_fn(|cx| writer.poll_append(cx, content)).await {
                Ok(count) => content = &content[count..],
                Err(_) => return Ok(false),
            }
        }
    }
    buffer.drain(..used);
    Ok(true)
}

/// Trailers as field lines. A name that means something in a head means nothing behind content:
/// it could overrule what was decided from the head (RFC 9110 section 6.5.1).
fn trailer_lines(trailers: Fields<'_>) -> Vec<u8> {
    let mut lines = Vec::new();
    for field in trailers.iter().filter(|field| field.known.is_none()) {
        wire::encode_field(&mut lines, field.name, field.value);
    }
    lines
}
