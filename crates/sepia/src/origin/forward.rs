//! Hop 5, forward: request out, response head in.
//!
//! Retry rule (RFC 9110 section 9.2.2): an idempotent request of whose answer no byte was
//! received, and whose content can be sent again, is sent once more on a fresh connection. A
//! connect that failed moves on to the next origin and does not use the retry up.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use caching::Moment;
use store::ContentReader;
use tokio::select;
use wire::{Decoded, Framing, HeadLimits, Method, ResponseHead, ResponseSpans, decode_response};

use super::OriginSide;
use super::connect::{Destination, connect};
use super::connection::OriginConnection;
use super::registry::{Origin, SlotGuard};
use super::resolve::millis;
use super::upload::{Upload, send_content};
use crate::base::limits;
use crate::base::{Counter, Reason, Retry};
use crate::config::Timeouts;
use crate::io::Sleep;

/// A request on its way out.
pub(crate) struct Outgoing<'a> {
    pub(crate) method: Method,
    /// Writes the head for this origin.
    pub(crate) encode: &'a dyn Fn(&Origin) -> Vec<u8>,
    /// The content as it comes from the client.
    pub(crate) content: Option<Rc<RefCell<ContentReader>>>,
    pub(crate) framing: Framing,
    pub(crate) expects_continue: bool,
    pub(crate) asks_upgrade: bool,
    /// Takes interim responses (1xx), encoded.
    pub(crate) interim: &'a dyn Fn(Vec<u8>),
}

/// Settings of one request's way to the origin.
#[derive(Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) timeouts: Timeouts,
    pub(crate) heads: HeadLimits,
}

/// A response whose head is here; its content follows on the connection.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) connection: Rc<OriginConnection>,
    /// Held until the response is complete.
    pub(crate) slot: SlotGuard,
    pub(crate) buffer: Vec<u8>,
    pub(crate) head_len: usize,
    pub(crate) spans: ResponseSpans,
    pub(crate) requested: Moment,
    pub(crate) received: Moment,
    /// Request content that is still being sent: the origin answered early.
    pub(crate) upload: Option<Upload>,
}

impl Incoming {
    pub(crate) fn head(&self) -> ResponseHead<'_> {
        self.spans.head(&self.buffer)
    }
}

/// Why an attempt failed, and whether another is allowed.
struct Failed {
    reason: Reason,
    answer_begun: bool,
}

impl Failed {
    fn before_answer(reason: Reason) -> Self {
        Failed { reason, answer_begun: false }
    }
}

/// Sends the request to the first origin that takes it and waits for the response's head.
pub(crate) async fn forward(
    side: &OriginSide,
    destination: &Destination,
    outgoing: &Outgoing<'_>,
    terms: &Terms,
) -> Result<Incoming, Reason> {
    let mut failure = Reason::NoOrigin;
    let mut is_retry = false;
    for origin in &destination.origins {
        if matches!(outgoing.framing, Framing::Chunked) && origin.is_http10() {
            return Err(Reason::LengthRequired);
        }
        let slot = wait_for_slot(side, origin).await?;
        let mut attempt = attempt(side, origin, destination, outgoing, (terms, is_retry)).await;
        if let Err(Attempt::Failed(failed)) = &attempt
            && may_retry(failed, outgoing, is_retry)
        {
            side.counters.add(Counter::OriginRetries, 1);
            is_retry = true;
            attempt = self::attempt(side, origin, destination, outgoing, (terms, true)).await;
        }
        match attempt {
            Ok(answer) => return Ok(answer.with_slot(slot)),
            Err(Attempt::Failed(failed)) => return Err(failed.reason),
            Err(Attempt::Unconnected(reason)) if reason.retry() == Retry::Unsent => {
                failure = reason;
            }
            Err(Attempt::Unconnected(reason)) => return Err(reason),
        }
    }
    Err(failure)
}

/// How an attempt ended without an answer.
enum Attempt {
    Unconnected(Reason),
    Failed(Failed),
}

fn may_retry(failed: &Failed, outgoing: &Outgoing<'_>, is_retry: bool) -> bool {
    let replayable =
        outgoing.content.as_ref().is_none_or(|content| content.borrow().position() == 0);
    !is_retry
        && !failed.answer_begun
        && failed.reason.may_retry(outgoing.method.is_idempotent(), replayable)
}

async fn wait_for_slot(side: &OriginSide, origin: &Arc<Origin>) -> Result<SlotGuard, Reason> {
    select! {
        biased;
        slot = origin.slot() => slot,
        () = Sleep::for_millis(&side.io, millis(limits::SLOT_WAIT)) => Err(Reason::SlotsExhausted),
    }
}

async fn attempt(
    side: &OriginSide,
    origin: &Arc<Origin>,
    destination: &Destination,
    outgoing: &Outgoing<'_>,
    (terms, fresh_only): (&Terms, bool),
) -> Result<Answer, Attempt> {
    let idle = match fresh_only {
        true => None,
        false => side.take_idle(origin, outgoing.method.is_idempotent()),
    };
    let connection = match idle {
        Some(connection) => {
            side.counters.add(Counter::OriginReuses, 1);
            connection
        }
        None => connect(side, origin, &destination.rule, &terms.timeouts)
            .await
            .map_err(Attempt::Unconnected)?,
    };
    origin.requests.fetch_add(1, Ordering::Relaxed);
    send_and_wait(side, Rc::new(connection), outgoing, terms).await.map_err(|failed| {
        origin.failures.fetch_add(1, Ordering::Relaxed);
        Attempt::Failed(failed)
    })
}

/// An answer without its slot yet.
struct Answer {
    connection: Rc<OriginConnection>,
    reading: Reading,
    head_len: usize,
    requested: Moment,
    received: Moment,
    upload: Option<Upload>,
}

impl Answer {
    fn with_slot(self, slot: SlotGuard) -> Incoming {
        Incoming {
            connection: self.connection,
            slot,
            buffer: self.reading.buffer,
            head_len: self.head_len,
            spans: self.reading.spans,
            requested: self.requested,
            received: self.received,
            upload: self.upload,
        }
    }
}

async fn send_and_wait(
    side: &OriginSide,
    connection: Rc<OriginConnection>,
    outgoing: &Outgoing<'_>,
    terms: &Terms,
) -> Result<Answer, Failed> {
    let head = (outgoing.encode)(connection.origin());
    let requested = side.io.clock().moment();
    let silence = millis(terms.timeouts.silence);
    let sent = connection.stream().write_all(&head, silence).await;
    sent.map_err(|error| Failed::before_answer(write_reason(&error)))?;
    side.counters.add(Counter::BytesToOrigins, head.len() as u64);
    if outgoing.expects_continue && connection.origin().is_http10() {
        // It will not say 100 by itself (RFC 9110 section 10.1.1).
        (outgoing.interim)(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec());
    }
    connection.stream().set_deadline_in(millis(terms.timeouts.first_byte));
    let mut upload = outgoing.content.as_ref().map(|content| {
        let content = Rc::clone(content);
        send_content(Rc::clone(&connection), content, outgoing, &terms.timeouts)
    });
    let mut reading = Reading { buffer: Vec::new(), spans: ResponseSpans::default(), interims: 0 };
    let head_len = loop {
        let head_len =
            read_head(side, &connection, &mut reading, &mut upload, (outgoing, terms)).await?;
        let head = reading.spans.head(&reading.buffer);
        if !head.is_interim() {
            break head_len;
        }
        if head.status() == 101 {
            if outgoing.asks_upgrade {
                break head_len;
            }
            return Err(reading.failed(Reason::OriginSwitchedUnasked));
        }
        reading.interims += 1;
        if reading.interims > limits::INTERIM_RESPONSES {
            return Err(reading.failed(Reason::OriginGarbage));
        }
        (outgoing.interim)(encode_interim(head));
        if upload.is_some() {
            // Perhaps it has only now asked for the content.
            connection.stream().set_deadline_in(millis(terms.timeouts.first_byte));
        }
        reading.drop_head(head_len);
    };
    let head = reading.spans.head(&reading.buffer);
    side.counters.add(Counter::Repairs, u64::from(head.repairs()));
    connection.origin().learn_version(head.version() == wire::Version::Http10);
    connection.stream().clear_deadline();
    let received = side.io.clock().moment();
    Ok(Answer { connection, reading, head_len, requested, received, upload })
}

/// Bytes of a response as far as they have come.
struct Reading {
    buffer: Vec<u8>,
    spans: ResponseSpans,
    interims: usize,
}

impl Reading {
    fn failed(&self, reason: Reason) -> Failed {
        Failed { reason, answer_begun: !self.buffer.is_empty() || self.interims > 0 }
    }

    fn drop_head(&mut self, head_len: usize) {
        self.buffer.drain(..head_len);
        self.spans.clear();
    }
}

/// Reads until a head is complete, while request content goes out beside it.
async fn read_head(
    side: &OriginSide,
    connection: &Rc<OriginConnection>,
    reading: &mut Reading,
    upload: &mut Option<Upload>,
    (outgoing, terms): (&Outgoing<'_>, &Terms),
) -> Result<usize, Failed> {
    loop {
        let decoded =
            decode_response(&mut reading.buffer, &mut reading.spans, outgoing.method, &terms.heads);
        match decoded {
            Ok(Decoded::Complete { head_len }) => return Ok(head_len),
            Ok(Decoded::Partial) => {}
            Err(refusal) => return Err(reading.failed(Reason::of_response(refusal))),
        }
        let more = connection.stream().read_more(&mut reading.buffer);
        let read = super::upload::alongside(upload, more).await;
        match read.map_err(|reason| reading.failed(reason))? {
            Ok(0) => return Err(reading.failed(Reason::OriginClosedEarly)),
            Ok(count) => side.counters.add(Counter::BytesFromOrigins, count as u64),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                return Err(reading.failed(Reason::OriginHeadTimeout));
            }
            Err(_) => return Err(reading.failed(Reason::OriginReset)),
        }
    }
}

/// An interim response as it goes on: its end-to-end fields only.
fn encode_interim(head: ResponseHead<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    wire::encode_status_line(&mut out, head.status());
    let fields = head.fields();
    for field in fields.iter().filter(|field| caching::is_stored_field(*field, fields)) {
        wire::encode_field(&mut out, field.name, field.value);
    }
    out.extend_from_slice(b"\r\n");
    out
}

fn write_reason(error: &io::Error) -> Reason {
    match error.kind() {
        io::ErrorKind::TimedOut => Reason::OriginWriteStalled,
        _ => Reason::OriginReset,
    }
}
