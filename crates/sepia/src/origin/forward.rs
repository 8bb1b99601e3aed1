//! Hop 5, forward: request out, response head in.
//!
//! Retry rule (RFC 9110 section 9.2.2): an idempotent request of whose answer no byte was
//! received, and whose content can be sent again, is sent once more on a fresh connection. A
//! connect that failed moves on to the next origin and does not use the retry up.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use caching::Moment;
use store::ContentReader;
use tokio::select;
use wire::{Decoded, Framing, HeadLimits, Method, ResponseHead, ResponseSpans, decode_response};

use super::OriginSide;
use super::connect::{Destination, connect};
use super::connection::OriginConnection;
use super::registry::{Origin, SlotGuard};
use super::upload::{Upload, alongside, send_content};
use crate::base::{Counter, Reason, Retry, limits, millis};
use crate::config::{AddressRule, Timeouts};
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
    /// Takes interim responses (1xx); `None` is our own 100 for an origin that knows none.
    pub(crate) interim: &'a dyn Fn(Option<ResponseHead<'_>>),
    pub(crate) terms: Terms,
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
) -> Result<Incoming, Reason> {
    let way = Way { side, rule: &destination.rule, outgoing };
    let mut failure = Reason::NoOrigin;
    let mut is_retry = false;
    for origin in &destination.origins {
        if matches!(outgoing.framing, Framing::Chunked) && origin.is_http10() {
            return Err(Reason::LengthRequired);
        }
        let slot = wait_for_slot(side, origin).await?;
        let mut attempt = way.attempt(origin, is_retry).await;
        if let Err(Attempt::Failed(failed)) = &attempt
            && may_retry(failed, outgoing, is_retry)
        {
            side.counters.add(Counter::OriginRetries, 1);
            is_retry = true;
            attempt = way.attempt(origin, true).await;
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

/// One request's way to an origin.
#[derive(Clone, Copy)]
struct Way<'a> {
    side: &'a OriginSide,
    rule: &'a AddressRule,
    outgoing: &'a Outgoing<'a>,
}

impl Way<'_> {
    /// Sends the request once, over an idle connection if there is one and `is_fresh` does not ask
    /// for a new one.
    async fn attempt(self, origin: &Arc<Origin>, is_fresh: bool) -> Result<Answer, Attempt> {
        let Way { side, rule, outgoing } = self;
        let idle = match is_fresh {
            true => None,
            false => side.take_idle(origin, outgoing.method.is_idempotent()),
        };
        let connection = match idle {
            Some(connection) => {
                side.counters.add(Counter::OriginReuses, 1);
                connection
            }
            None => connect(side, origin, rule, &outgoing.terms.timeouts)
                .await
                .map_err(Attempt::Unconnected)?,
        };
        self.send_and_wait(Rc::new(connection)).await.map_err(Attempt::Failed)
    }

    async fn send_and_wait(self, connection: Rc<OriginConnection>) -> Result<Answer, Failed> {
        let Way { side, outgoing, .. } = self;
        let timeouts = &outgoing.terms.timeouts;
        let head = (outgoing.encode)(connection.origin());
        let requested = side.io.clock().moment();
        let sent = connection.stream().write_all(&head, millis(timeouts.silence)).await;
        sent.map_err(|error| Failed::before_answer(write_reason(&error)))?;
        side.counters.add(Counter::BytesToOrigins, head.len() as u64);
        let is_http10 = connection.origin().is_http10();
        if outgoing.expects_continue && is_http10 {
            // It will not say 100 by itself (RFC 9110 section 10.1.1).
            (outgoing.interim)(None);
        }
        connection.stream().set_deadline_in(millis(timeouts.first_byte));
        let awaits_continue = outgoing.expects_continue && !is_http10;
        let mut upload = outgoing.content.as_ref().map(|content| {
            let (connection, content) = (Rc::clone(&connection), Rc::clone(content));
            send_content(connection, content, outgoing.framing, awaits_continue, timeouts)
        });
        let mut reading = Reading::default();
        let head_len = self.read_final_head(&connection, &mut reading, &mut upload).await?;
        let head = reading.spans.head(&reading.buffer);
        side.counters.add(Counter::Repairs, u64::from(head.repairs()));
        connection.origin().learn_version(head.version() == wire::Version::Http10);
        connection.stream().clear_deadline();
        let received = side.io.clock().moment();
        Ok(Answer { connection, reading, head_len, requested, received, upload })
    }

    /// Reads heads until one is final, or switches protocols as was asked.
    async fn read_final_head(
        self,
        connection: &OriginConnection,
        reading: &mut Reading,
        upload: &mut Option<Upload>,
    ) -> Result<usize, Failed> {
        let outgoing = self.outgoing;
        loop {
            let head_len = self.read_head(connection, reading, upload).await?;
            let head = reading.spans.head(&reading.buffer);
            if !head.is_interim() || (head.status() == 101 && outgoing.asks_upgrade) {
                return Ok(head_len);
            }
            if head.status() == 101 {
                return Err(reading.failed(Reason::OriginSwitchedUnasked));
            }
            if reading.interims >= limits::INTERIM_RESPONSES {
                return Err(reading.failed(Reason::OriginGarbage));
            }
            (outgoing.interim)(Some(head));
            if upload.is_some() {
                // Perhaps it has only now asked for the content.
                let first_byte = millis(outgoing.terms.timeouts.first_byte);
                connection.stream().set_deadline_in(first_byte);
            }
            reading.next_head(head_len);
        }
    }

    /// Reads until a head is complete, while request content goes out beside it.
    async fn read_head(
        self,
        connection: &OriginConnection,
        reading: &mut Reading,
        upload: &mut Option<Upload>,
    ) -> Result<usize, Failed> {
        let Way { side, outgoing, .. } = self;
        loop {
            let Reading { buffer, spans, .. } = reading;
            match decode_response(buffer, spans, outgoing.method, &outgoing.terms.heads) {
                Ok(Decoded::Complete { head_len }) => return Ok(head_len),
                Ok(Decoded::Partial) => {}
                Err(refusal) => return Err(reading.failed(Reason::of_response(refusal))),
            }
            let more = connection.stream().read_more(&mut reading.buffer);
            let read = alongside(upload, more).await;
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
}

/// Bytes of a response as far as they have come.
#[derive(Default)]
struct Reading {
    buffer: Vec<u8>,
    spans: ResponseSpans,
    /// Interim heads so far.
    interims: usize,
}

impl Reading {
    fn failed(&self, reason: Reason) -> Failed {
        Failed { reason, answer_begun: !self.buffer.is_empty() || self.interims > 0 }
    }

    /// An interim head was passed on; another follows.
    fn next_head(&mut self, head_len: usize) {
        self.interims += 1;
        self.buffer.drain(..head_len);
        self.spans.clear();
    }
}

fn write_reason(error: &io::Error) -> Reason {
    match error.kind() {
        io::ErrorKind::TimedOut => Reason::OriginWriteStalled,
        _ => Reason::OriginReset,
    }
}
