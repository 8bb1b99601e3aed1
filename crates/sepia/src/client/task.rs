//! A request that has to wait for something: the same steps as on the straight path, with waits
//! in between. One task serves one request; then the loop has the session back.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;

use caching::{PassRule, RequestDirectives, ValidateRule};
use store::{Boarding, ContentReader, Flight, Landing, Leader, Stored};
use wire::{Known, Method, Version};

use super::Clients;
use super::account::{self, Ended};
use super::decode::{may_keep, trusted_id};
use super::deliver::{Delivered, Sink};
use super::upload::{ClientUpload, Receiving};
use crate::base::{Counter, Hop, LocalAnswer, Reason, millis};
use crate::exchange::fetch::{self, Errand, awaits_continue};
use crate::exchange::link::{Fetched, News};
use crate::exchange::respond::{Client, Composed, ContentSource, respond_local, respond_stored};
use crate::exchange::status::{Forwarded, Handling};
use crate::exchange::{Request, Step, begin};
use crate::io::Stream;
use crate::origin::upload::reason_of;

/// How often a request waits for another's fetch before it sends its own.
const JOINS_MAX: usize = 3;

/// Gives a request to a task of its own; `rest` was read behind its head.
pub(crate) fn start(clients: &Rc<Clients>, stream: Stream, mut request: Request, rest: Vec<u8>) {
    let work = &clients.work;
    request.id = match trusted_id(request.head(), &request.settings, request.peer) {
        Some(id) => String::from_utf8_lossy(id).into_owned(),
        None => String::from_utf8_lossy(&work.ids.next()).into_owned(),
    };
    let owned = Rc::clone(clients);
    work.io.spawn(async move {
        let lost = Lost(Rc::clone(&owned));
        run(owned, stream, Rc::new(request), rest).await;
        drop(lost);
    });
}

/// Says why a request whose task a panic ended got no answer. Its session is closed and its fetch
/// told by their owners.
struct Lost(Rc<Clients>);

impl Drop for Lost {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.work.counters.count(Reason::Panicked);
        }
    }
}

async fn run(clients: Rc<Clients>, stream: Stream, request: Rc<Request>, rest: Vec<u8>) {
    let work = &clients.work;
    let patience = millis(request.settings.config.timeouts.client);
    let (upload, content) = if request.head().framing().has_content() {
        let (writer, content) = work.store.pipe();
        let receiving = Receiving {
            framing: request.head().framing(),
            patience,
            awaits_continue: awaits_continue(&request),
            with_trailers: request.head().fields().lists(Known::Te, b"trailers"),
            counters: &work.counters,
        };
        (ClientUpload::start(&stream, rest, writer, receiving), content)
    } else {
        (ClientUpload::none(rest), None)
    };
    let serving =
        Serving { clients: &clients, stream: &stream, request: &request, upload, patience };
    match serving.serve(content).await {
        After::Keep(rest) => clients.take_back(stream, rest, true),
        After::Close => clients.take_back(stream, Vec::new(), false),
        After::Gone => {}
    }
}

/// What becomes of the session.
pub(super) enum After {
    /// The next request may come; these bytes of it are here.
    Keep(Vec<u8>),
    /// It closes, so that the client gets all of the answer.
    Close,
    /// It is useless: dropped.
    Gone,
}

/// One request of one session.
pub(super) struct Serving<'s> {
    pub(super) clients: &'s Clients,
    pub(super) stream: &'s Stream,
    pub(super) request: &'s Rc<Request>,
    pub(super) upload: ClientUpload<'s>,
    pub(super) patience: u64,
}

/// A step that outlives its turn of the loop.
enum Held {
    Hit(Arc<Stored>, Handling),
    Local(Result<LocalAnswer, Reason>),
    Join(Arc<Stored>, Handling),
    Validate(Arc<Stored>, ValidateRule),
    Forward(Forwarded),
    Pass(PassRule),
    Tunnel,
}

/// What is to be answered with.
struct Source {
    stored: Arc<Stored>,
    reader: Option<ContentReader>,
    handling: Handling,
}

impl<'s> Serving<'s> {
    async fn serve(mut self, mut content: Option<ContentReader>) -> After {
        let mut is_alone = false;
        let mut waited = None;
        for _ in 0..=JOINS_MAX {
            let (why, stale) = match self.step() {
                Held::Hit(stored, handling) => {
                    stored.touch();
                    let handling = waited.map_or(handling, |why| Handling::Joined { why });
                    return self.answer(Source { stored, reader: None, handling }).await;
                }
                Held::Join(stored, handling) => match stored.content.reader(0) {
                    Some(reader) => {
                        let handling = waited.map_or(handling, |why| Handling::Joined { why });
                        let reader = Some(reader);
                        return self.answer(Source { stored, reader, handling }).await;
                    }
                    // It passes through by now, and its beginning is gone.
                    None => (Forwarded::UriMiss, None),
                },
                Held::Local(answer) => return self.answer_locally(answer).await,
                Held::Tunnel => return self.connect().await,
                Held::Pass(rule) => {
                    return self.fetch(Forwarded::Bypass(rule), None, None, content.take()).await;
                }
                Held::Validate(stored, rule) => (Forwarded::Stale(rule), Some(stored)),
                Held::Forward(why) => (why, None),
            };
            let stale = stale.filter(|_| self.request.head().method() == Method::Get);
            if is_alone || !self.may_collapse(stale.is_some()) {
                return self.fetch(why, stale, None, content.take()).await;
            }
            match self.clients.work.store.board(&self.request.key) {
                // Whoever led before may have landed since the lookup.
                Boarding::Lead(leader) => match self.step() {
                    Held::Forward(_) | Held::Validate(..) => {
                        return self.fetch(why, stale, Some(leader), content.take()).await;
                    }
                    _ => drop(leader),
                },
                Boarding::Wait(flight) => match self.wait_for(&flight).await {
                    Landing::Stored => waited = Some(why),
                    Landing::NotShared => is_alone = true,
                    Landing::Failed(code) => {
                        return self.answer_locally(Err(reason_of(code))).await;
                    }
                },
            }
        }
        let why = waited.unwrap_or(Forwarded::UriMiss);
        self.fetch(why, None, None, content.take()).await
    }

    /// Hops 3 and 4 once more: what was true in another turn of the loop may be so no more.
    fn step(&self) -> Held {
        let work = &self.clients.work;
        let asked = self.request.asked();
        let guard = work.reader.turn();
        let mut key = Vec::new();
        let now = work.io.clock().moment();
        match begin(work, &asked, &guard, &mut key, now) {
            Step::Hit(stored, handling) => Held::Hit(Arc::clone(stored), handling),
            Step::Join(stored, handling) => Held::Join(Arc::clone(stored), handling),
            Step::Validate(stored, rule) => Held::Validate(Arc::clone(stored), rule),
            Step::Local(answer) => Held::Local(Ok(answer)),
            Step::Refuse(reason) => Held::Local(Err(reason)),
            Step::Forward(why) => Held::Forward(why),
            Step::Pass(rule) => Held::Pass(rule),
            Step::Tunnel => Held::Tunnel,
        }
    }

    /// Whether one forwarded request may serve this one and others (RFC 9111 section 4): a plain
    /// GET for the whole that accepts what the cache has.
    fn may_collapse(&self, validates: bool) -> bool {
        let head = self.request.head();
        let directives = RequestDirectives::decode(head.fields());
        head.method() == Method::Get
            && (validates || !head.fields().has(Known::Range))
            && !directives.no_cache
            && !directives.no_store
            && directives.max_age != Some(0)
    }

    async fn wait_for(&mut self, flight: &Flight) -> Landing {
        let _at = self.clients.work.at(Hop::Lookup);
        self.upload.alongside(poll_fn(|cx| flight.poll_landing(cx))).await
    }

    /// Hops 5 and 6: orders a fetch and passes on what it tells.
    async fn fetch(
        mut self,
        why: Forwarded,
        stale: Option<Arc<Stored>>,
        leader: Option<Leader>,
        content: Option<ContentReader>,
    ) -> After {
        let errand = Errand { request: Rc::clone(self.request), why, stale, leader, content };
        let link = fetch::start(&self.clients.work, errand);
        loop {
            let news = self.upload.alongside(poll_fn(|cx| link.poll_news(cx))).await;
            match news {
                News::Interim(head) => {
                    // RFC 9110 section 15.2: HTTP/1.0 knows no interim responses.
                    if self.request.head().version() == Version::Http11 {
                        if self.sink().deliver(&head).await != Delivered::Complete {
                            self.clients.work.counters.count(Reason::ClientGone);
                            return After::Gone;
                        }
                        // A client that was told to go on has its time for content from now.
                        if !self.upload.is_receiving() {
                            self.stream.clear_deadline();
                        }
                    }
                }
                News::Outcome(Ok(Fetched::Response { stored, reader, handling })) => {
                    return self.answer(Source { stored, reader, handling }).await;
                }
                News::Outcome(Ok(Fetched::Switched(incoming))) => {
                    return self.switch(*incoming).await;
                }
                News::Outcome(Err(reason)) => {
                    let reason = self.upload.failure().unwrap_or(reason);
                    return self.answer_locally(Err(reason)).await;
                }
            }
        }
    }

    fn sink(&self) -> Sink<'s> {
        Sink::new(self.stream, self.patience)
    }

    fn client(&self) -> Client<'_> {
        let work = &self.clients.work;
        let role = &self.request.site().listener.role;
        let keeps = may_keep(self.request.head(), role, work.is_draining.get());
        Client {
            head: self.request.head(),
            may_keep: keeps && self.upload.is_done(),
            now: work.io.clock().moment(),
        }
    }

    pub(super) async fn answer_locally(self, answer: Result<LocalAnswer, Reason>) -> After {
        let mut out = Vec::new();
        let composed = respond_local(&self.client(), answer, &mut out);
        account::count_handling(&self.clients.work, Handling::Local(answer.err()));
        let mut sink = self.sink();
        let delivered = sink.deliver(&out).await;
        let written = sink.written;
        self.end(&composed, &out, delivered, written)
    }

    /// Hops 7 and 8.
    async fn answer(mut self, source: Source) -> After {
        let work = Rc::clone(&self.clients.work);
        let _at = work.at(Hop::Deliver);
        let Source { stored, reader, handling } = source;
        let mut out = Vec::with_capacity(stored.head.lines().len() + 256);
        let composed = respond_stored(&self.client(), &stored, handling, &mut out);
        // Before its last byte, as on the straight path: who has the answer finds it counted.
        account::count_handling(&work, handling);
        let mut sink = self.sink();
        let delivery = async {
            match (composed.content, reader) {
                (ContentSource::Stream(framing), Some(reader)) => {
                    sink.deliver_stream(&out, reader, framing).await
                }
                (ContentSource::Stream(_), None) => Delivered::Aborted(Reason::Panicked as u16),
                (ContentSource::None, reader) => {
                    drop(reader);
                    sink.deliver(&out).await
                }
                (ContentSource::Stored { first, end }, reader) => {
                    drop(reader);
                    sink.deliver_stored(&out, &stored, first, end).await
                }
            }
        };
        let delivered = self.upload.alongside(delivery).await;
        let written = sink.written;
        self.end(&composed, &out, delivered, written)
    }

    /// Logs the exchange, counts how it ended, and says what becomes of the session.
    fn end(self, composed: &Composed, out: &[u8], delivered: Delivered, written: u64) -> After {
        let work = &self.clients.work;
        work.counters.add(Counter::BytesToClients, written);
        let reason = match delivered {
            Delivered::Complete => composed.reason,
            Delivered::Aborted(code) => Some(reason_of(code)),
            Delivered::ClientGone => Some(Reason::ClientGone),
            Delivered::ClientStalled => Some(Reason::ClientStalled),
        };
        if matches!(delivered, Delivered::ClientGone | Delivered::ClientStalled)
            && let Some(reason) = reason
        {
            work.counters.count(reason);
        }
        let head_len = head_len(out);
        account::log(
            work,
            &Ended {
                head: Some(self.request.head()),
                peer: self.request.peer,
                status: composed.status,
                bytes: written.saturating_sub(head_len),
                started: self.request.started,
                cache_status: &out[composed.cache_status.clone()],
                request_id: self.request.id.as_bytes(),
                reason,
            },
        );
        match delivered {
            Delivered::Complete if composed.keeps => match self.upload.into_rest() {
                Some(rest) => After::Keep(rest),
                None => After::Close,
            },
            Delivered::Complete => After::Close,
            _ => After::Gone,
        }
    }
}

/// Bytes of the head at the front of an answer.
fn head_len(out: &[u8]) -> u64 {
    let end = out.windows(4).position(|window| window == b"\r\n\r\n");
    end.map_or(out.len(), |at| at + 4) as u64
}
