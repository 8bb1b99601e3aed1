//! Response content: from the connection into the writer, as fast as the writer takes it.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::Poll;

use store::{Abandoned, Writer};
use wire::{ContentDecoder, Framing, Known, ResponseHead};

use super::OriginSide;
use super::forward::{Incoming, Terms};
use super::upload::{Upload, alongside};
use crate::base::{Counter, Reason, limits, millis};

/// What the head said about the rest of the message and of the connection.
#[derive(Clone, Copy, Debug)]
struct Outlook {
    framing: Framing,
    keeps: bool,
    keep_for: Option<u64>,
    /// Event streams may be silent for as long as they like.
    is_event_stream: bool,
}

impl Outlook {
    fn of(head: ResponseHead<'_>) -> Self {
        let fields = head.fields();
        let content_type = fields.first(Known::ContentType).unwrap_or_default();
        Outlook {
            framing: head.framing(),
            keeps: head.keep_alive() && !head.ambiguous_length(),
            keep_for: keep_alive_timeout(head),
            is_event_stream: content_type
                .get(..17)
                .is_some_and(|start| start.eq_ignore_ascii_case(b"text/event-stream")),
        }
    }
}

/// The seconds of `Keep-Alive: timeout=N`.
fn keep_alive_timeout(head: ResponseHead<'_>) -> Option<u64> {
    head.fields().members(Known::KeepAlive).find_map(|member| {
        let value = member.get(8..)?;
        if !member[..8].eq_ignore_ascii_case(b"timeout=") {
            return None;
        }
        std::str::from_utf8(value).ok()?.parse().ok()
    })
}

/// Reads the content to its end and into `writer`. A response that ends too early, or as no
/// message may, leaves the store; a connection that can carry another exchange goes to the pool.
pub(crate) async fn pump(
    side: &OriginSide,
    incoming: Incoming,
    mut writer: Writer,
    terms: &Terms,
) -> Result<(), Reason> {
    let outlook = Outlook::of(incoming.head());
    let Incoming { connection, slot, mut buffer, head_len, mut upload, .. } = incoming;
    buffer.drain(..head_len);
    let mut flow = Flow {
        decoder: ContentDecoder::new(outlook.framing, limits::CONTENT),
        buffer,
        silence: (!outlook.is_event_stream).then(|| millis(terms.timeouts.silence)),
    };
    if let Some(upload) = &upload {
        upload.note_answer(flow.silence);
    }
    let moved = flow.run(side, &connection, &mut writer, &mut upload).await;
    if let Err(reason) = moved {
        writer.abort(reason as u16);
        return Err(reason);
    }
    writer.finish(&trailer_lines(&flow.decoder));
    drop(slot);
    if !flow.buffer.is_empty() {
        side.counters.count(Reason::OriginTooMuch);
    } else if outlook.keeps
        && upload.is_none()
        && let Ok(connection) = Rc::try_unwrap(connection)
    {
        side.keep_idle(connection, outlook.keep_for);
    }
    Ok(())
}

struct Flow {
    decoder: ContentDecoder,
    /// Bytes of the message that are not decoded yet; in the end, bytes that belong to nothing.
    buffer: Vec<u8>,
    /// The longest silence in milliseconds.
    silence: Option<u64>,
}

impl Flow {
    async fn run(
        &mut self,
        side: &OriginSide,
        connection: &super::OriginConnection,
        writer: &mut Writer,
        upload: &mut Option<Upload>,
    ) -> Result<(), Reason> {
        loop {
            self.decode_into(writer, upload).await?;
            if self.decoder.is_done() {
                connection.stream().clear_deadline();
                return Ok(());
            }
            if let Some(silence) = self.silence {
                connection.stream().set_deadline_in(silence);
            }
            let more = poll_fn(|cx| match writer.poll_abandoned(cx) {
                Poll::Ready(Abandoned) => Poll::Ready(Err(Reason::ClientGone)),
                Poll::Pending => connection.stream().poll_read_more(cx, &mut self.buffer).map(Ok),
            });
            match alongside(upload, more).await?? {
                Ok(0) => {
                    return self.decoder.handle_end().map_err(Reason::of_response_content);
                }
                Ok(count) => side.counters.add(Counter::BytesFromOrigins, count as u64),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    return Err(Reason::OriginSilent);
                }
                Err(_) => return Err(Reason::OriginTruncated),
            }
            // What waits for room in the writer is no silence of the origin.
            connection.stream().clear_deadline();
        }
    }

    /// Hands all content in the buffer to the writer.
    async fn decode_into(
        &mut self,
        writer: &mut Writer,
        upload: &mut Option<Upload>,
    ) -> Result<(), Reason> {
        let mut used = 0;
        loop {
            let piece = self.decoder.decode(&self.buffer[used..]);
            let piece = piece.map_err(Reason::of_response_content)?;
            if piece.consumed == 0 && piece.content.is_empty() {
                break;
            }
            used += piece.consumed;
            let mut content = piece.content;
            while !content.is_empty() {
                let append = poll_fn(|cx| writer.poll_append(cx, content));
                let count = alongside(upload, append).await?.map_err(|_| Reason::ClientGone)?;
                content = &content[count..];
            }
        }
        self.buffer.drain(..used);
        Ok(())
    }
}

/// Trailers as field lines, without any that frame or route a message (RFC 9110 section 6.5.1).
fn trailer_lines(decoder: &ContentDecoder) -> Vec<u8> {
    let mut lines = Vec::new();
    let Some(trailers) = decoder.trailers() else { return lines };
    for field in trailers.iter() {
        let is_forbidden = matches!(
            field.known,
            Some(
                Known::Host
                    | Known::CacheControl
                    | Known::ContentEncoding
                    | Known::ContentType
                    | Known::ContentRange
                    | Known::SetCookie
                    | Known::Vary
            )
        );
        if !is_forbidden && caching::is_stored_field(field, trailers) {
            wire::encode_field(&mut lines, field.name, field.value);
        }
    }
    lines
}
