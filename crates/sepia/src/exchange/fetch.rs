//! A fetch: hops 5 and 6 as a task of its own.
//!
//! The fetch and whoever asked meet at the stored response: the one writes it, the other reads
//! it, and neither calls the other. A client that leaves ends a fetch only if nobody else can use
//! the result.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use caching::{encode_validation_fields, has_validator};
use store::{ContentReader, Landing, Leader, Stored};
use wire::{Framing, Known, Method, Version};

use super::request::Request;
use super::status::{Forwarded, Handling};
use super::work::Work;
use crate::base::{Counter, Hop, Reason};
use crate::cache::{Arrived, Freshened, admit, freshen, invalidate};
use crate::config::{AddressRule, HostHeader, Role};
use crate::origin::content::pump;
use crate::origin::request::{Forwarding, Relay, encode_request, host_text};
use crate::origin::{Destination, Incoming, Origin, Outgoing, Terms, forward};
use crate::policy::decide::max_forwards;
use crate::policy::{append_key, append_sibling_key};

/// How a request is to be fetched.
pub(crate) struct Errand {
    pub(crate) request: Rc<Request>,
    pub(crate) why: Forwarded,
    /// The stored response to validate.
    pub(crate) stale: Option<Arc<Stored>>,
    /// Others wait for the outcome.
    pub(crate) leader: Option<Leader>,
    /// Request content as it comes.
    pub(crate) content: Option<ContentReader>,
}

/// What a fetch came to.
pub(crate) enum Fetched {
    /// A response, stored or passing through; the reader is attached from its first byte.
    Response { stored: Arc<Stored>, reader: Option<ContentReader>, handling: Handling },
    /// The origin switched protocols: its connection is a tunnel from here on.
    Switched(Box<Incoming>),
}

/// Between a fetch and the one who ordered it.
#[derive(Default)]
pub(crate) struct Link {
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    interim: VecDeque<Vec<u8>>,
    outcome: Option<Result<Fetched, Reason>>,
    waker: Option<Waker>,
}

/// What a fetch has to tell.
pub(crate) enum News {
    /// An interim response (1xx), encoded.
    Interim(Vec<u8>),
    /// The final outcome.
    Outcome(Result<Fetched, Reason>),
}

impl Link {
    fn tell(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.borrow_mut();
        change(&mut state);
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    /// The next that the fetch has to tell; the outcome comes last and once.
    pub(crate) fn poll_news(&self, cx: &Context<'_>) -> Poll<News> {
        let mut state = self.state.borrow_mut();
        if let Some(interim) = state.interim.pop_front() {
            return Poll::Ready(News::Interim(interim));
        }
        if let Some(outcome) = state.outcome.take() {
            return Poll::Ready(News::Outcome(outcome));
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// Tells the worst if the fetch's task is lost.
struct Teller(Rc<Link>);

impl Drop for Teller {
    fn drop(&mut self) {
        self.0.tell(|state| {
            state.outcome.get_or_insert(Err(Reason::Panicked));
        });
    }
}

/// Starts a fetch on this worker.
pub(crate) fn start(work: &Rc<Work>, errand: Errand) -> Rc<Link> {
    let link = Rc::new(Link::default());
    let teller = Teller(Rc::clone(&link));
    let owned = Rc::clone(work);
    work.io.spawn(async move {
        let fetch = Fetch { work: owned, link: teller };
        fetch.run(errand).await;
    });
    link
}

struct Fetch {
    work: Rc<Work>,
    link: Teller,
}

impl Fetch {
    fn tell(&self, outcome: Result<Fetched, Reason>) {
        self.link.0.tell(|state| state.outcome = Some(outcome));
    }

    async fn run(self, errand: Errand) {
        let Errand { request, why, stale, mut leader, content } = errand;
        let content = content.map(|content| Rc::new(RefCell::new(content)));
        // A 304 to a condition of the client's says nothing about what has no validator.
        let mut stale = stale.filter(|stored| has_validator(stored.head.fields()));
        loop {
            let generation = self.work.store.generation(&request.key);
            let is_leader = leader.is_some();
            let incoming = {
                let _at = self.work.at(Hop::Forward);
                self.forward(&request, stale.as_deref(), content.clone(), is_leader).await
            };
            let incoming = match incoming {
                Ok(incoming) => incoming,
                Err(reason) => {
                    if let Some(leader) = leader {
                        leader.land(Landing::Failed(reason as u16));
                    }
                    return self.tell(Err(reason));
                }
            };
            if incoming.head().status() == 101 {
                return self.tell(Ok(Fetched::Switched(Box::new(incoming))));
            }
            self.invalidate(&request, &incoming);
            if let Some(old) = stale.take_if(|_| incoming.head().status() == 304) {
                match self.freshen(&request, &old, incoming, (generation, why)).await {
                    Some(freshened) => {
                        if let Some(leader) = leader {
                            leader.land(landing(&freshened, &self.work));
                        }
                        return;
                    }
                    // The 304 was about something else: ask for the whole response.
                    None => continue,
                }
            }
            if let Some(old) = stale.filter(|_| supersedes(incoming.head().status())) {
                self.work.store.remove(&old);
            }
            return self.admit(&request, incoming, (generation, why), leader.take()).await;
        }
    }

    async fn forward(
        &self,
        request: &Request,
        stale: Option<&Stored>,
        content: Option<Rc<RefCell<ContentReader>>>,
        is_leader: bool,
    ) -> Result<Incoming, Reason> {
        let head = request.head();
        // RFC 9110 section 7.8: an Upgrade of HTTP/1.0 is ignored.
        let asks_upgrade = head.version() == Version::Http11
            && head.fields().has(Known::Upgrade)
            && head.fields().lists(Known::Connection, b"upgrade");
        let validation = stale.map(|stale| {
            let mut lines = Vec::new();
            encode_validation_fields(stale.head.fields(), &mut lines);
            lines
        });
        let encode = |origin: &Origin| {
            encode_for(request, origin, (validation.as_deref(), is_leader, asks_upgrade))
        };
        let interim = |bytes: Vec<u8>| self.link.0.tell(|state| state.interim.push_back(bytes));
        let outgoing = Outgoing {
            method: head.method(),
            encode: &encode,
            content,
            framing: head.framing(),
            expects_continue: awaits_continue(request),
            asks_upgrade,
            interim: &interim,
        };
        let destination = destination(request, &self.work);
        forward(&self.work.origin, &destination, &outgoing, &terms(request)).await
    }

    /// Drops what an unsafe request has changed from the store.
    fn invalidate(&self, request: &Request, incoming: &Incoming) {
        let count = invalidate(&self.work.store, request.head(), incoming.head(), |sibling| {
            let mut key = Vec::new();
            match sibling {
                None => append_key(request.site(), request.head(), &mut key),
                Some(path) => append_sibling_key(request.site(), request.head(), path, &mut key),
            }
            key
        });
        self.work.counters.add(Counter::Invalidated, count);
    }

    /// Takes a 304 in. `None` if it did not freshen anything.
    async fn freshen(
        &self,
        request: &Request,
        old: &Arc<Stored>,
        incoming: Incoming,
        (generation, why): (u64, Forwarded),
    ) -> Option<Arc<Stored>> {
        self.work.counters.add(Counter::Validations, 1);
        let arrived = arrived(request, &incoming, generation);
        let freshened = freshen(&self.work.store, old, &arrived, &request.settings);
        if let Freshened::Updated(stored) = &freshened {
            self.work.counters.add(Counter::Freshened, 1);
            let handling = Handling::Origin { why, status: 304, is_stored: false, rule: None };
            self.tell(Ok(Fetched::Response { stored: Arc::clone(stored), reader: None, handling }));
        }
        // A 304 has no content; this only gives its connection back.
        let (writer, _reader) = self.work.store.pipe();
        let ended = pump(&self.work.origin, incoming, writer, &terms(request)).await;
        if let Err(reason) = ended {
            self.work.counters.count(reason);
        }
        match freshened {
            Freshened::Updated(stored) => Some(stored),
            Freshened::Useless => None,
        }
    }

    /// Takes a response in, tells everybody, and moves its content.
    async fn admit(
        self,
        request: &Request,
        incoming: Incoming,
        (generation, why): (u64, Forwarded),
        leader: Option<Leader>,
    ) {
        let may_store = match why {
            Forwarded::Bypass(rule) => Err(rule),
            _ => Ok(()),
        };
        let (admitted, rule) = {
            let _at = self.work.at(Hop::Admit);
            let arrived = arrived(request, &incoming, generation);
            let key = request.key.clone();
            admit(&self.work.store, key, &arrived, &request.settings, may_store)
        };
        let is_stored = admitted.stored.is_indexed();
        if is_stored {
            self.work.counters.add(Counter::Stored, 1);
        }
        if let Some(leader) = leader {
            leader.land(landing(&admitted.stored, &self.work));
        }
        let status = incoming.head().status();
        let handling = Handling::Origin { why, status, is_stored, rule };
        self.tell(Ok(Fetched::Response {
            stored: admitted.stored,
            reader: admitted.reader,
            handling,
        }));
        let work = Rc::clone(&self.work);
        drop(self);
        let ended = pump(&work.origin, incoming, admitted.writer, &terms(request)).await;
        // Who stopped reading has counted that, or got the 304 that spared the content.
        if let Err(reason) = ended
            && reason != Reason::ClientGone
        {
            work.counters.count(reason);
        }
    }
}

fn arrived<'a>(request: &'a Request, incoming: &'a Incoming, generation: u64) -> Arrived<'a> {
    Arrived {
        request: request.head(),
        response: incoming.head(),
        requested: incoming.requested,
        received: incoming.received,
        generation,
    }
}

/// Whether a full answer to a validation says that the stored response suits no more, be the answer
/// stored or not (RFC 9111 section 4.3.3). Errors say nothing of the target, but that it is gone.
fn supersedes(status: u16) -> bool {
    matches!(status, 200..400 | 404 | 410)
}

/// Those who wait may use a response that is in the index and fresh; else each asks by itself.
fn landing(stored: &Stored, work: &Work) -> Landing {
    let now = work.io.clock().moment();
    let is_fresh = stored
        .freshness
        .is_some_and(|freshness| freshness.is_fresh(now) && !freshness.must_validate);
    if stored.is_indexed() && is_fresh { Landing::Stored } else { Landing::NotShared }
}

fn terms(request: &Request) -> Terms {
    Terms { timeouts: request.settings.config.timeouts, heads: request.settings.config.heads }
}

/// The origins that may answer, in the order in which they are tried.
fn destination(request: &Request, work: &Work) -> Destination {
    match &request.site().listener.role {
        Role::Reverse(reverse) => {
            let count = reverse.to.len();
            let first = usize::try_from(work.origin.origins.next_turn()).unwrap_or(0) % count;
            let origins = (0..count)
                .map(|step| &reverse.to[(first + step) % count])
                .map(|address| work.origin.origins.origin(&address.host, address.port))
                .collect();
            Destination { origins, rule: AddressRule::Any }
        }
        Role::Forward(role) => {
            let Some(authority) = request.head().authority() else {
                return Destination { origins: Vec::new(), rule: AddressRule::Any };
            };
            let rule = AddressRule::of_forward(role, authority, request.peer.ip());
            let host = String::from_utf8_lossy(authority.host);
            let port = authority.port.unwrap_or(80);
            Destination { origins: vec![work.origin.origins.origin(&host, port)], rule }
        }
    }
}

/// The request head for one origin.
fn encode_for(
    request: &Request,
    origin: &Origin,
    (validation, is_leader, asks_upgrade): (Option<&[u8]>, bool, bool),
) -> Vec<u8> {
    let head = request.head();
    let settings = &request.settings;
    let own_host = || match origin.port {
        80 => origin.host.clone(),
        port => format!("{}:{port}", origin.host),
    };
    let host = match &request.site().listener.role {
        Role::Reverse(reverse) => match &reverse.host_header {
            HostHeader::Keep => head.authority().map(host_text),
            HostHeader::Origin => None,
            HostHeader::Value(value) => Some(value.clone()),
        },
        Role::Forward(_) => head.authority().map(host_text),
    };
    let host = host.unwrap_or_else(own_host);
    let is_reverse = matches!(request.site().listener.role, Role::Reverse(_));
    let mut path_query = Vec::new();
    crate::policy::key::append_path_query(head, &mut path_query);
    let counts_down = matches!(head.method(), Method::Trace | Method::Options);
    let relay = Relay {
        request: head,
        path_query: &path_query,
        host: host.as_bytes(),
        via_line: settings.via_line(head.version()),
        request_id: &request.id,
        validation,
        drops_conditions: is_leader,
        forwarding: is_reverse.then(|| Forwarding {
            peer: request.peer.ip(),
            is_trusted: settings.trusts(request.peer.ip()),
            authority: head.authority(),
        }),
        asks_upgrade,
        max_forwards: max_forwards(head).filter(|_| counts_down).map(|count| count - 1),
        passes_expect: awaits_continue(request) && !origin.is_http10(),
    };
    let mut out = Vec::with_capacity(head.bytes().len() + 256);
    encode_request(&relay, &mut out);
    out
}

/// Whether a request has content that has to be sent.
pub(crate) fn has_content(request: &Request) -> bool {
    !matches!(request.head().framing(), Framing::None | Framing::Length(0))
}

/// Whether the client holds content back until it is told to go on (RFC 9110 section 10.1.1).
pub(crate) fn awaits_continue(request: &Request) -> bool {
    request.head().expects_continue() && has_content(request)
}
