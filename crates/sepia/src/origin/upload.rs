//! Request content on its way to the origin, beside whatever the origin says meanwhile.

use std::cell::{Cell, RefCell};
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

/// What the origin's connection waits for, beside room to write, while content is on its way.
#[derive(Clone, Copy, Debug)]
enum Awaited {
    /// The head of the answer.
    Head,
    /// The answer's content; milliseconds of silence that it may have, `None` for any.
    Content(Option<u64>),
}

/// The sending of one request's content. It fails if the client breaks its content off or the
/// origin takes none for too long, which ends the exchange. An origin that has closed may still
/// have answered: that is for the reader of the answer.
pub(crate) struct Upload {
    sending: Pin<Box<dyn Future<Output = Result<(), Reason>>>>,
    awaited: Rc<Cell<Awaited>>,
}

impl Upload {
    /// The answer has begun, before all content was sent: the connection's one deadline is
    /// that of the answer's content from now on; `silence` in milliseconds, `None` for none.
    pub(super) fn note_answer(&self, silence: Option<u64>) {
        self.awaited.set(Awaited::Content(silence));
    }
}

impl std::fmt::Debug for Upload {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Upload")
    }
}

/// Sends what `content` gives, framed as the request said; then the origin has its time for the
/// first byte of an answer, if none has begun. A client that waits for 100 waits for the origin:
/// until content comes the deadline for the first byte holds.
pub(super) fn send_content(
    connection: Rc<OriginConnection>,
    content: Rc<RefCell<ContentReader>>,
    framing: Framing,
    mut awaits_continue: bool,
    timeouts: &Timeouts,
) -> Upload {
    let (silence, first_byte) = (millis(timeouts.silence), millis(timeouts.first_byte));
    let is_chunked = matches!(framing, Framing::Chunked);
    let awaited = Rc::new(Cell::new(Awaited::Head));
    let shared = Rc::clone(&awaited);
    let sending = Box::pin(async move {
        loop {
            match awaited.get() {
                Awaited::Head if std::mem::take(&mut awaits_continue) => {}
                // The client's pace is the client's clock's business.
                Awaited::Head | Awaited::Content(None) => connection.stream().clear_deadline(),
                Awaited::Content(Some(silence)) => {
                    connection.stream().set_deadline_in(silence);
                }
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
        match awaited.get() {
            Awaited::Head => {
                connection.stream().set_deadline_in(first_byte);
            }
            Awaited::Content(None) => connection.stream().clear_deadline(),
            // The last write has set it.
            Awaited::Content(Some(_)) => {}
        }
        Ok(())
    });
    Upload { sending, awaited: shared }
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
        if let Some(running) = upload
            && let Poll::Ready(sent) = running.sending.as_mut().poll(cx)
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
