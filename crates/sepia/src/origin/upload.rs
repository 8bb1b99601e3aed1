//! Request content on its way to the origin, beside whatever the origin says meanwhile.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use store::ContentReader;
use wire::Framing;

use super::connection::OriginConnection;
use crate::base::{Reason, millis};
use crate::config::Timeouts;

/// The sending of one request's content. It fails if the client breaks its content off or the
/// origin takes none for too long, which ends the exchange. An origin that has closed may still
/// have answered: that is for the reader of the answer.
pub(crate) struct Upload(Pin<Box<dyn Future<Output = Result<(), Reason>>>>);

impl std::fmt::Debug for Upload {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Upload")
    }
}

/// Sends what `content` gives, framed as the request said; then the origin has its time for the
/// first byte of an answer. A client that waits for 100 waits for the origin: until content comes
/// the deadline for the first byte holds.
pub(super) fn send_content(
    connection: Rc<OriginConnection>,
    content: Rc<RefCell<ContentReader>>,
    framing: Framing,
    mut awaits_continue: bool,
    timeouts: &Timeouts,
) -> Upload {
    let (silence, first_byte) = (millis(timeouts.silence), millis(timeouts.first_byte));
    let is_chunked = matches!(framing, Framing::Chunked);
    Upload(Box::pin(async move {
        loop {
            // The client's pace is the client's clock's business.
            if !std::mem::take(&mut awaits_continue) {
                connection.stream().clear_deadline();
            }
            let piece = poll_fn(|cx| content.borrow_mut().poll_piece(cx)).await;
            let Some(piece) = piece.map_err(|aborted| reason_of(aborted.0))? else { break };
            let written = write_piece(&connection, &piece, is_chunked, silence).await;
            if let Err(error) = written {
                return unsent(&error);
            }
            content.borrow_mut().advance(piece.len() as u64);
        }
        if is_chunked {
            let trailers = content.borrow().trailers();
            let end = [wire::LAST_CHUNK, &trailers, b"\r\n"].concat();
            if let Err(error) = connection.stream().write_all(&end, silence).await {
                return unsent(&error);
            }
        }
        connection.stream().set_deadline_in(first_byte);
        Ok(())
    }))
}

/// What becomes of the exchange when content could not be sent.
fn unsent(error: &io::Error) -> Result<(), Reason> {
    match error.kind() {
        io::ErrorKind::TimedOut => Err(Reason::OriginWriteStalled),
        _ => Ok(()),
    }
}

async fn write_piece(
    connection: &OriginConnection,
    piece: &Bytes,
    is_chunked: bool,
    silence: u64,
) -> io::Result<()> {
    if !is_chunked {
        return connection.stream().write_all(piece, silence).await;
    }
    let mut head = Vec::with_capacity(20);
    wire::encode_chunk_head(&mut head, piece.len());
    let mut parts = [IoSlice::new(&head), IoSlice::new(piece), IoSlice::new(b"\r\n")];
    let mut rest = &mut parts[..];
    while !rest.is_empty() {
        connection.stream().set_deadline_in(silence);
        let count = poll_fn(|cx| connection.stream().poll_write(cx, rest)).await?;
        IoSlice::advance_slices(&mut rest, count);
    }
    Ok(())
}

/// The reason behind the code with which content was aborted.
pub(crate) fn reason_of(code: u16) -> Reason {
    Reason::ALL.get(usize::from(code)).copied().unwrap_or(Reason::Panicked)
}

/// Waits for `main` while the upload goes on; ends early if the upload fails.
pub(crate) async fn alongside<T>(
    upload: &mut Option<Upload>,
    main: impl Future<Output = T>,
) -> Result<T, Reason> {
    let mut main = pin!(main);
    poll_fn(|cx| {
        if let Some(sending) = upload
            && let Poll::Ready(sent) = sending.0.as_mut().poll(cx)
        {
            *upload = None;
            if let Err(reason) = sent {
                return Poll::Ready(Err(reason));
            }
        }
        main.as_mut().poll(cx).map(Ok)
    })
    .await
}
