//! A fetch: hops 5 and 6 as a task of its own.
//!
//! The fetch and whoever asked meet at the stored response: the one writes it, the other reads
//! it, and neither calls the other. A client that leaves ends a fetch only if nobody else can use
//! the result.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use caching::{encode_validation_fields, has_validator, is_stored_field};
use store::{Admitted, ContentReader, Landing, Leader, Stored};
use wire::{Known, Method, ResponseHead, Version};

use super::link::{Fetched, Link, Teller};
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

/// Starts a fetch on this worker.
pub(crate) fn start(work: &Rc<Work>, errand: Errand) -> Rc<Link> {
    let link = Rc::new(Link::default());
    let Errand { request, why, stale, leader, content } = errand;
    let fetch = Fetch { work: Rc::clone(work), teller: Teller::new(&link), request, why };
    work.io.spawn(fetch.run(stale, leader, content));
    link
}

struct Fetch {
    work: Rc<Work>,
    teller: Teller,
    request: Rc<Request>,
    why: Forwarded,
}

impl Fetch {
    async fn run(
        self,
        stale: Option<Arc<Stored>>,
        leader: Option<Leader>,
        content: Option<ContentReader>,
    ) {
        let content = content.map(|content| Rc::new(RefCell::new(content)));
        // A 304 to a condition of the client's says nothing about what has no validator.
        let mut stale = stale.filter(|stored| has_validator(stored.head.fields()));
        loop {
            let generation = self.work.store.generation(&self.request.key);
            let is_leader = leader.is_some();
            let forwarded = {
                let _at = self.work.at(Hop::Forward);
                self.forward(stale.as_deref(), content.clone(), is_leader).await
            };
            let incoming = match forwarded {
                Ok(incoming) => incoming,
                Err(reason) => {
                    if let Some(leader) = leader {
                        leader.land(Landing::Failed(reason as u16));
                    }
                    return self.teller.outcome(Err(reason));
                }
            };
            if incoming.head().status() == 101 {
                return self.teller.outcome(Ok(Fetched::Switched(Box::new(incoming))));
            }
            self.invalidate(&incoming);
            if stale.is_some() {
                self.work.counters.add(Counter::Validations, 1);
            }
            if let Some(old) = stale.take_if(|_| incoming.head().status() == 304) {
                match self.freshen(&old, incoming, generation).await {
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
            return self.admit(incoming, generation, leader).await;
        }
    }

    async fn forward(
        &self,
        stale: Option<&Stored>,
        content: Option<Rc<RefCell<ContentReader>>>,
        is_leader: bool,
    ) -> Result<Incoming, Reason> {
        let request = &self.request;
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
        let outbound = Outbound {
            request,
            validation: validation.as_deref(),
            drops_conditions: is_leader,
            asks_upgrade,
        };
        let encode = |origin: &Origin| outbound.encode(origin);
        let interim = |head: Option<ResponseHead<'_>>| {
            self.teller.interim(encode_interim(head, request));
        };
        let outgoing = Outgoing {
            method: head.method(),
            encode: &encode,
            content,
            framing: head.framing(),
            expects_continue: awaits_continue(request),
            asks_upgrade,
            interim: &interim,
            terms: terms(request),
        };
        let destination = destination(request, &self.work);
        forward(&self.work.origin, &destination, &outgoing).await
    }

    /// Drops what an unsafe request has changed from the store.
    fn invalidate(&self, incoming: &Incoming) {
        let request = &self.request;
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
        old: &Arc<Stored>,
        incoming: Incoming,
        generation: u64,
    ) -> Option<Arc<Stored>> {
        let (request, why) = (&self.request, self.why);
        let arrived = arrived(request, &incoming, generation);
        let freshened = freshen(&self.work.store, old, &arrived, &request.settings);
        if let Freshened::Updated(stored) = &freshened {
            self.work.counters.add(Counter::Freshened, 1);
            let handling = Handling::Origin { why, status: 304, is_stored: false, rule: None };
            let stored = Arc::clone(stored);
            self.teller.outcome(Ok(Fetched::Response { stored, reader: None, handling }));
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
    async fn admit(self, incoming: Incoming, generation: u64, leader: Option<Leader>) {
        let Fetch { work, teller, request, why } = self;
        let may_store = match why {
            Forwarded::Bypass(rule) => Err(rule),
            _ => Ok(()),
        };
        let (admitted, rule) = {
            let _at = work.at(Hop::Admit);
            let arrived = arrived(&request, &incoming, generation);
            let key = request.key.clone();
            admit(&work.store, key, &arrived, &request.settings, may_store)
        };
        let is_stored = admitted.stored.is_indexed();
        if is_stored {
            work.counters.add(Counter::Stored, 1);
        }
        if let Some(leader) = leader {
            leader.land(landing(&admitted.stored, &work));
        }
        let status = incoming.head().status();
        let handling = Handling::Origin { why, status, is_stored, rule };
        let Admitted { stored, writer, reader } = admitted;
        teller.outcome(Ok(Fetched::Response { stored, reader, handling }));
        let ended = pump(&work.origin, incoming, writer, &terms(&request)).await;
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

/// An interim response as it goes on: its end-to-end fields and Via; or our own 100.
fn encode_interim(head: Option<ResponseHead<'_>>, request: &Request) -> Vec<u8> {
    let mut out = Vec::new();
    wire::encode_status_line(&mut out, head.map_or(100, ResponseHead::status));
    if let Some(head) = head {
        let fields = head.fields();
        for field in fields.iter().filter(|field| is_stored_field(*field, fields)) {
            wire::encode_field(&mut out, field.name, field.value);
        }
        out.extend_from_slice(request.settings.via_line(head.version()).as_bytes());
    }
    out.extend_from_slice(b"\r\n");
    out
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

/// A request as it goes out, whichever origin takes it.
struct Outbound<'a> {
    request: &'a Request,
    /// Conditional fields that validate a stored response.
    validation: Option<&'a [u8]>,
    /// The whole response is wanted, whatever the client has.
    drops_conditions: bool,
    asks_upgrade: bool,
}

impl Outbound<'_> {
    /// The request head for one origin.
    fn encode(&self, origin: &Origin) -> Vec<u8> {
        let request = self.request;
        let head = request.head();
        let settings = &request.settings;
        let host = host_for(request, origin);
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
            validation: self.validation,
            drops_conditions: self.drops_conditions,
            forwarding: is_reverse.then(|| Forwarding {
                peer: request.peer.ip(),
                is_trusted: settings.trusts(request.peer.ip()),
                authority: head.authority(),
            }),
            asks_upgrade: self.asks_upgrade,
            max_forwards: max_forwards(head).filter(|_| counts_down).map(|count| count - 1),
            passes_expect: awaits_continue(request) && !origin.is_http10(),
        };
        let mut out = Vec::with_capacity(head.bytes().len() + 256);
        encode_request(&relay, &mut out);
        out
    }
}

/// The Host that an origin is told (RFC 9110 section 7.2).
fn host_for(request: &Request, origin: &Origin) -> String {
    let head = request.head();
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
    host.unwrap_or_else(own_host)
}

/// Whether the client holds content back until it is told to go on (RFC 9110 section 10.1.1).
pub(crate) fn awaits_continue(request: &Request) -> bool {
    request.head().expects_continue() && request.head().framing().has_content()
}
