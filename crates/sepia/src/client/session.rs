//! The straight path: a session's event is served without task, future or allocation, as far
//! as its requests can be answered at once. One read, one write.
//!
//! Several requests in one read are answered by one write. A session that wants too much in one
//! turn goes to the end of the ready list, so that it cannot starve its neighbours.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use caching::Moment;
use store::Stored;
use wire::RequestSpans;

use super::account::{self, Ended};
use super::decode::{Front, decode_front, may_keep, trusted_id};
use super::deliver::{Part, Pending, Phase, Span, send};
use super::{Clients, task};
use crate::base::{Counter, Reason, limits, millis};
use crate::config::Settings;
use crate::exchange::request::Arrival;
use crate::exchange::respond::{
    Client, Composed, ContentSource, respond_local, respond_refused, respond_stored,
};
use crate::exchange::status::Handling;
use crate::exchange::{Request, Step, begin};
use crate::io::{Peer, SlotId, Stream};
use crate::policy::Asked;

/// The worker's buffers for the event that is being served.
pub(crate) struct Desk {
    input: Box<[u8]>,
    /// Bytes of the input that are in use.
    filled: usize,
    output: Vec<u8>,
    key: Vec<u8>,
    spans: RequestSpans,
}

impl Desk {
    /// Room for the largest head and one whole read behind it.
    pub(crate) fn new(head_bytes: usize) -> Self {
        Desk {
            input: vec![0; head_bytes + limits::READ_BUFFER_BYTES].into_boxed_slice(),
            filled: 0,
            output: Vec::with_capacity(2 * limits::WRITE_BUFFER_BYTES),
            key: Vec::with_capacity(4_096),
            spans: RequestSpans::default(),
        }
    }

    /// The input behind what is served already.
    fn input_from(&self, at: usize) -> &[u8] {
        &self.input[at..self.filled]
    }

    /// Whether a head of so many bytes fits in.
    fn fits(&self, head_bytes: usize) -> bool {
        self.input.len() >= head_bytes + limits::READ_BUFFER_BYTES
    }
}

/// A run through a session's input.
struct Run<'t> {
    stop: Stop,
    /// Content to send behind the output buffer: bytes from the one place to the other.
    large: Option<Part<'t>>,
}

/// Why a run through a session's input ended.
enum Stop {
    /// All input is served.
    Empty,
    /// The input from here on begins a head.
    Partial(usize),
    /// More requests may follow from here on; the turn's share is used up.
    Share(usize),
    /// The session ends after what is in the output buffer.
    Close,
    /// The request from here on, with a head of so many bytes, has to wait for something.
    Wait(usize, usize),
}

/// What becomes of a session after its event.
enum Fate {
    /// It waits for the next event, carrying this over.
    Park(Option<Box<Pending>>),
    /// It has more to do without any event.
    Again(Box<Pending>),
    /// It is closed.
    Close,
    /// Its request goes to a task, with the input behind it.
    Task(Box<Request>, Vec<u8>),
}

/// A session's event, and the time at which it is served.
struct Event<'a> {
    id: SlotId,
    settings: &'a Rc<Settings>,
    site: usize,
    peer: Peer,
    now: Moment,
    started: u64,
}

impl Clients {
    /// A parked session has something to read, or room to write.
    pub(crate) fn handle_ready(self: &Rc<Self>, id: SlotId, site: u16) {
        let head_bytes = self.work.settings.borrow().config.heads.head_bytes;
        let desk = self.desk.take().filter(|desk| desk.fits(head_bytes));
        // The one before was lost with a panic, or a reload has raised the bound.
        let mut desk = desk.unwrap_or_else(|| Box::new(Desk::new(head_bytes)));
        let served = catch_unwind(AssertUnwindSafe(|| self.serve(id, site, &mut desk)));
        let fate = match served {
            Ok(fate) => {
                self.desk.set(Some(desk));
                fate
            }
            Err(_) => {
                self.work.counters.add(Counter::Panics, 1);
                self.work.counters.count(Reason::Panicked);
                Fate::Close
            }
        };
        match fate {
            Fate::Park(pending) => self.park(id, pending),
            Fate::Again(pending) => {
                self.carry(id, pending);
                self.work.io.list(id);
            }
            Fate::Close => self.close(id),
            Fate::Task(request, rest) => {
                let stream = Stream::hold(&self.work.io, id);
                self.work.io.clear_deadline(id);
                task::start(self, stream, *request, rest);
            }
        }
    }

    /// Waits for the session's next event. What has come already no event will announce again,
    /// so who could read on does; who waits for room to write must not.
    fn park(&self, id: SlotId, pending: Option<Box<Pending>>) {
        let waits_to_write = pending.as_ref().is_some_and(|pending| pending.has_output());
        if let Some(pending) = pending {
            self.carry(id, pending);
        }
        if !waits_to_write && self.work.io.is_readable(id) {
            self.work.io.list(id);
        }
    }

    /// A parked session's deadline has passed.
    pub(crate) fn handle_timeout(&self, id: SlotId) {
        match self.take_carried(id) {
            Some(pending) if pending.has_output() => {
                self.work.counters.count(Reason::ClientStalled);
                self.recycle(pending);
            }
            Some(pending) if pending.has_begun_head() => {
                return self.refuse_late_head(id, pending);
            }
            Some(pending) if matches!(pending.phase, Phase::Lingering { .. }) => {
                self.recycle(pending);
            }
            carried => {
                self.work.counters.count(Reason::IdleTimeout);
                carried.into_iter().for_each(|pending| self.recycle(pending));
            }
        }
        self.close(id);
    }

    /// Answers a head that was not finished in its time, and ends the session.
    fn refuse_late_head(&self, id: SlotId, mut pending: Box<Pending>) {
        let (reason, now) = (Reason::HeadTimeout, self.work.io.now());
        let Pending { input, output, .. } = &mut *pending;
        let composed = respond_refused(reason, input, now.moment, output);
        account::count_handling(&self.work, Handling::Local(Some(reason)));
        let ended = Ended {
            head: None,
            peer: self.work.io.peer(id),
            status: composed.status,
            bytes: composed.length,
            started: now.micros,
            cache_status: &pending.output[composed.cache_status],
            request_id: b"",
            reason: Some(reason),
        };
        account::log(&self.work, &ended);
        let mut written = 0;
        let flushed = pending.flush(&self.work.io, id, &mut written);
        self.work.counters.add(Counter::BytesToClients, written);
        if matches!(flushed, Ok(true)) {
            return self.linger(id, pending);
        }
        // Whoever takes not even this answer gets no more of our time.
        self.recycle(pending);
        self.close(id);
    }

    /// Closes a session whose slot the loop has.
    pub(crate) fn close(&self, id: SlotId) {
        if let Some(pending) = self.take_carried(id) {
            self.recycle(pending);
        }
        self.work.io.remove(id);
    }

    /// Sends our end and waits for the client's, discarding what it still sends.
    pub(crate) fn linger(&self, id: SlotId, mut pending: Box<Pending>) {
        // A connection that is gone needs no end.
        let _ = self.work.io.with_socket(id, crate::io::Socket::shutdown_write);
        pending.clear();
        pending.phase = Phase::Lingering { left: limits::LINGER_BYTES };
        let at = self.work.io.clock().millis() + millis(limits::LINGER);
        self.work.io.set_deadline(id, at);
        self.carry(id, pending);
        // What has come already is announced no more.
        self.work.io.list(id);
    }

    fn serve(&self, id: SlotId, site: u16, desk: &mut Desk) -> Fate {
        let mut pending = self.take_carried(id);
        if let Some(Phase::Lingering { left }) = pending.as_ref().map(|pending| pending.phase) {
            return self.discard(id, desk, pending, left);
        }
        let settings = Rc::clone(&self.work.settings.borrow());
        if let Some(carried) = &mut pending
            && carried.has_output()
        {
            match self.flush(id, carried, &settings) {
                Ok(true) if carried.phase == Phase::Closing => {
                    return self.end_by_linger(id, pending);
                }
                Ok(true) => {}
                Ok(false) => return Fate::Park(pending),
                Err(()) => return self.give_up(pending),
            }
        }
        if let Err(fate) = self.fill(id, desk, &mut pending, &settings) {
            return fate;
        }
        let now = self.work.io.now();
        let event = Event {
            id,
            settings: &settings,
            site: usize::from(site),
            peer: self.work.io.peer(id),
            now: now.moment,
            started: now.micros,
        };
        self.answer(desk, pending, &event)
    }

    /// Answers what is in the input buffer and writes it.
    fn answer(&self, desk: &mut Desk, pending: Option<Box<Pending>>, event: &Event<'_>) -> Fate {
        desk.output.clear();
        let guard = self.work.reader.turn();
        let Run { stop, large } = self.run(desk, event, &guard);
        let progress = send(&self.work.io, event.id, &desk.output, large);
        self.work.counters.add(Counter::BytesToClients, progress.total());
        let all_sent = match progress.result {
            Ok(all_sent) => all_sent,
            Err(_) => {
                self.work.counters.count(Reason::ClientGone);
                return self.give_up(pending);
            }
        };
        let span = large.filter(|_| !all_sent).map(|part| Span {
            stored: Arc::clone(part.stored),
            position: part.position + progress.content,
            end: part.end,
        });
        drop(guard);
        if all_sent {
            return self.after(desk, pending, stop, event);
        }
        let mut pending = pending.unwrap_or_else(|| self.spare_pending());
        pending.clear();
        pending.output.extend_from_slice(&desk.output[progress.output..]);
        pending.content = span;
        let rest = match stop {
            Stop::Empty => desk.filled,
            Stop::Close => {
                pending.phase = Phase::Closing;
                desk.filled
            }
            Stop::Partial(at) | Stop::Share(at) | Stop::Wait(at, _) => at,
        };
        pending.input.extend_from_slice(desk.input_from(rest));
        self.set_deadline(event.id, event.settings.config.timeouts.client);
        Fate::Park(Some(pending))
    }

    /// What a session does when all its answers are sent.
    fn after(
        &self,
        desk: &mut Desk,
        pending: Option<Box<Pending>>,
        stop: Stop,
        event: &Event<'_>,
    ) -> Fate {
        let timeouts = &event.settings.config.timeouts;
        match stop {
            Stop::Empty => {
                if let Some(pending) = pending {
                    self.recycle(pending);
                }
                self.set_deadline(event.id, timeouts.idle);
                Fate::Park(None)
            }
            Stop::Partial(at) => {
                let mut pending = pending.unwrap_or_else(|| self.spare_pending());
                let had_begun = at == 0 && pending.has_begun_head();
                pending.clear();
                pending.input.extend_from_slice(desk.input_from(at));
                std::mem::swap(&mut pending.spans, &mut desk.spans);
                pending.is_partial = true;
                // The head's time runs from its first byte, however often a byte comes.
                match (had_begun, pending.has_begun_head()) {
                    (false, true) => self.set_deadline(event.id, timeouts.head),
                    (_, false) => self.set_deadline(event.id, timeouts.idle),
                    (true, true) => {}
                }
                Fate::Park(Some(pending))
            }
            Stop::Share(at) => {
                let mut pending = pending.unwrap_or_else(|| self.spare_pending());
                pending.clear();
                pending.input.extend_from_slice(desk.input_from(at));
                // The deadline of the head that has been served is none for what follows it.
                self.set_deadline(event.id, timeouts.idle);
                Fate::Again(pending)
            }
            Stop::Close => self.end_by_linger(event.id, pending),
            Stop::Wait(at, head_len) => {
                if let Some(pending) = pending {
                    self.recycle(pending);
                }
                let behind = at + head_len;
                let arrival = Arrival {
                    peer: event.peer,
                    settings: Rc::clone(event.settings),
                    site: event.site,
                    started: event.started,
                };
                let head = &desk.input[at..behind];
                let request = Request::new(head, desk.spans.clone(), &desk.key, arrival);
                Fate::Task(Box::new(request), desk.input_from(behind).to_vec())
            }
        }
    }

    /// Serves one request after the other out of the input buffer, into the output buffer.
    fn run<'t>(
        &'t self,
        desk: &mut Desk,
        event: &Event<'_>,
        guard: &'t store::Turn<'_>,
    ) -> Run<'t> {
        let end = |stop| Run { stop, large: None };
        let mut at = 0;
        for answers in 0.. {
            let share_used = answers >= limits::ANSWERS_PER_TURN
                || desk.output.len() >= limits::WRITE_BUFFER_BYTES;
            if share_used && at < desk.filled {
                return end(Stop::Share(at));
            }
            let limits = &event.settings.config.heads;
            let bytes = &desk.input[at..desk.filled];
            let head_len = match decode_front(bytes, &mut desk.spans, limits) {
                Front::Empty => break,
                Front::Partial => return end(Stop::Partial(at)),
                Front::Head(head_len) => head_len,
                Front::Malformed(reason) => {
                    self.refuse(desk, at, reason, event);
                    return end(Stop::Close);
                }
            };
            let Some((composed, stored)) = self.answer_at_once(desk, at, event, guard) else {
                return end(Stop::Wait(at, head_len));
            };
            self.log(desk, Some(at), &composed, event);
            let keeps = composed.keeps;
            at += head_len;
            if let (Some(stored), ContentSource::Stored { first, end: last }) =
                (stored, composed.content)
                && !append_small(stored, first, last, &mut desk.output)
            {
                let stop = if keeps { Stop::Share(at) } else { Stop::Close };
                let large = Part { stored, position: first, end: last };
                return Run { stop, large: Some(large) };
            }
            if !keeps {
                return end(Stop::Close);
            }
        }
        end(Stop::Empty)
    }

    /// Hops 3, 4 and 7 for a request that need not wait; `None` for one that does.
    fn answer_at_once<'t>(
        &'t self,
        desk: &mut Desk,
        at: usize,
        event: &Event<'_>,
        guard: &'t store::Turn<'_>,
    ) -> Option<(Composed, Option<&'t Arc<Stored>>)> {
        let head = desk.spans.head(&desk.input[at..]);
        let site = event.settings.sites.get(event.site)?;
        let peer = event.peer.ip();
        let asked = Asked { head, site, settings: event.settings, peer };
        let step = begin(&self.work, &asked, guard, &mut desk.key, event.now);
        if head.framing().has_content() || !self.work.is_straight {
            return None;
        }
        let may_keep = may_keep(head, &site.listener.role, self.work.is_draining.get());
        let client = Client { head, may_keep, now: event.now };
        let (handling, composed, stored) = match step {
            Step::Hit(stored, handling) => {
                stored.touch();
                let composed = respond_stored(&client, stored, handling, &mut desk.output);
                (handling, composed, Some(stored))
            }
            Step::Local(answer) => {
                let composed = respond_local(&client, Ok(answer), &mut desk.output);
                (Handling::Local(None), composed, None)
            }
            Step::Refuse(reason) => {
                let composed = respond_local(&client, Err(reason), &mut desk.output);
                (Handling::Local(Some(reason)), composed, None)
            }
            _ => return None,
        };
        account::count_handling(&self.work, handling);
        Some((composed, stored))
    }

    fn refuse(&self, desk: &mut Desk, at: usize, reason: Reason, event: &Event<'_>) {
        let request = &desk.input[at..desk.filled];
        let composed = respond_refused(reason, request, event.now, &mut desk.output);
        account::count_handling(&self.work, Handling::Local(Some(reason)));
        self.log(desk, None, &composed, event);
    }

    /// Writes an answer's line. It stands in the output buffer now and is written next, so that
    /// the time of its write is the only part of its way that the line does not tell.
    fn log(&self, desk: &Desk, at: Option<usize>, composed: &Composed, event: &Event<'_>) {
        if self.work.log.borrow().is_none() && composed.reason.is_none() {
            return;
        }
        let head = at.map(|at| desk.spans.head(&desk.input[at..]));
        let name = self.work.ids.next();
        let ended = Ended {
            head,
            peer: event.peer,
            status: composed.status,
            bytes: composed.length,
            started: event.started,
            cache_status: &desk.output[composed.cache_status.clone()],
            request_id: head
                .and_then(|head| trusted_id(head, event.settings, event.peer))
                .unwrap_or(&name),
            reason: composed.reason,
        };
        account::log(&self.work, &ended);
    }

    /// Brings what was carried over and what can be read into the input buffer; says what becomes
    /// of the session if there is nothing to serve.
    fn fill(
        &self,
        id: SlotId,
        desk: &mut Desk,
        pending: &mut Option<Box<Pending>>,
        settings: &Settings,
    ) -> Result<(), Fate> {
        let mut serves_first = false;
        desk.filled = 0;
        desk.spans.clear();
        if let Some(pending) = pending {
            desk.filled = pending.input.len();
            desk.input[..desk.filled].copy_from_slice(&pending.input);
            serves_first = desk.filled > 0 && !pending.is_partial;
            std::mem::swap(&mut pending.spans, &mut desk.spans);
        }
        if serves_first {
            return Ok(());
        }
        match self.work.io.try_read(id, &mut desk.input[desk.filled..]) {
            Ok(0) => Err(self.end_of_client(pending.take())),
            Ok(count) => {
                self.work.counters.add(Counter::BytesFromClients, count as u64);
                desk.filled += count;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if desk.filled > 0
                    && let Some(mut carried) = pending.take()
                {
                    std::mem::swap(&mut carried.spans, &mut desk.spans);
                    return Err(Fate::Park(Some(carried)));
                }
                self.give_up(pending.take());
                self.set_deadline(id, settings.config.timeouts.idle);
                Err(Fate::Park(None))
            }
            Err(_) => {
                self.work.counters.count(Reason::ClientReset);
                Err(self.give_up(pending.take()))
            }
        }
    }

    /// The client has sent its end between two requests, or inside a head.
    fn end_of_client(&self, pending: Option<Box<Pending>>) -> Fate {
        if pending.as_ref().is_some_and(|pending| pending.is_partial) {
            self.work.counters.count(Reason::ClientGone);
        }
        self.give_up(pending)
    }

    fn give_up(&self, pending: Option<Box<Pending>>) -> Fate {
        if let Some(pending) = pending {
            self.recycle(pending);
        }
        Fate::Close
    }

    fn flush(&self, id: SlotId, pending: &mut Pending, settings: &Settings) -> Result<bool, ()> {
        let mut written = 0;
        let flushed = pending.flush(&self.work.io, id, &mut written);
        self.work.counters.add(Counter::BytesToClients, written);
        match flushed {
            Ok(all_sent) => {
                if !all_sent && written > 0 {
                    self.set_deadline(id, settings.config.timeouts.client);
                }
                Ok(all_sent)
            }
            Err(_) => {
                self.work.counters.count(Reason::ClientGone);
                Err(())
            }
        }
    }

    fn end_by_linger(&self, id: SlotId, pending: Option<Box<Pending>>) -> Fate {
        let pending = pending.unwrap_or_else(|| self.spare_pending());
        self.linger(id, pending);
        // It is carried already.
        Fate::Park(None)
    }

    fn discard(
        &self,
        id: SlotId,
        desk: &mut Desk,
        pending: Option<Box<Pending>>,
        mut left: u64,
    ) -> Fate {
        for _ in 0..limits::ANSWERS_PER_TURN {
            match self.work.io.try_read(id, &mut desk.input) {
                Ok(0) => return self.give_up(pending),
                Ok(count) => {
                    left = left.saturating_sub(count as u64);
                    if left == 0 {
                        return self.give_up(pending);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return self.lingering(pending, left, false);
                }
                Err(_) => return self.give_up(pending),
            }
        }
        self.lingering(pending, left, true)
    }

    fn lingering(&self, pending: Option<Box<Pending>>, left: u64, again: bool) -> Fate {
        let mut pending = pending.unwrap_or_else(|| self.spare_pending());
        pending.phase = Phase::Lingering { left };
        if again { Fate::Again(pending) } else { Fate::Park(Some(pending)) }
    }

    fn set_deadline(&self, id: SlotId, after: std::time::Duration) {
        self.work.io.set_deadline(id, self.work.io.now().millis() + millis(after));
    }

    /// A task gives its session back: with input that was read already, or to be closed.
    pub(crate) fn take_back(&self, stream: Stream, rest: Vec<u8>, keeps: bool) {
        let id = stream.id();
        let mut pending = self.spare_pending();
        if !keeps {
            stream.park();
            return self.linger(id, pending);
        }
        stream.clear_deadline();
        if rest.is_empty() {
            self.recycle(pending);
        } else {
            pending.input = rest;
            self.carry(id, pending);
            self.work.io.list(id);
        }
        self.set_deadline(id, self.work.settings().config.timeouts.idle);
        stream.park();
    }
}

/// Copies content behind its head if it is small, so that both are one write.
fn append_small(stored: &Stored, first: u64, end: u64, output: &mut Vec<u8>) -> bool {
    if end - first > limits::SMALL_CONTENT_BYTES as u64 {
        return false;
    }
    let mut position = first;
    while position < end {
        let Some(piece) = stored.content.complete_piece(position) else { return false };
        let wanted = usize::try_from(end - position).unwrap_or(usize::MAX).min(piece.len());
        output.extend_from_slice(&piece[..wanted]);
        position += wanted as u64;
    }
    true
}
