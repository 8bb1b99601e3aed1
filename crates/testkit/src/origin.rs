//! The origin server of the generated site: HTTP/1.1 on an ephemeral loopback port.
//!
//! Keep-alive, HEAD, validation by entity tag (304), single ranges (206, 416), chunked streaming,
//! `Expect: 100-continue`, and a form that answers with what was posted (RFC 9110, RFC 9112). It
//! must never be better than an ordinary origin: it sends the fields that the site states, the
//! date and the framing, and nothing that helps a cache beyond that.

mod answer;

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::message::{FieldLines, MessageReader, Request};
use crate::server::Server;
use crate::site::Site;

/// Requests that are remembered; the oldest is forgotten first.
const SEEN_MAX: usize = 10_000;
/// How long an idle connection stays open.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// A request as the origin saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenRequest {
    /// The connection it came over, numbered from 1 in the order they were accepted.
    pub connection: u64,
    /// The method, as sent.
    pub method: String,
    /// The request target, as sent.
    pub target: String,
    /// The field lines of the head.
    pub fields: FieldLines,
    /// The status code of the answer.
    pub status: u16,
}

/// The running origin server; it stops when the value is dropped.
#[derive(Debug)]
pub struct SiteOrigin {
    server: Server,
    seen: Arc<Mutex<VecDeque<SeenRequest>>>,
}

impl SiteOrigin {
    /// Starts to serve the site on a free loopback port, at most 64 connections at a time.
    ///
    /// # Errors
    /// When no port or no thread can be had.
    pub fn start(site: Site) -> io::Result<SiteOrigin> {
        let seen = Arc::<Mutex<VecDeque<SeenRequest>>>::default();
        let own = Arc::clone(&seen);
        let server = Server::start(move |connection, stream| {
            let mut session = Session { connection, site: &site, seen: &own };
            // What goes wrong with one connection is its end, and no other's matter.
            let _ = session.serve(stream);
        })?;
        Ok(SiteOrigin { server, seen })
    }

    /// Where the origin listens.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The last 10,000 requests, in the order their heads were read.
    pub fn seen(&self) -> Vec<SeenRequest> {
        lock(&self.seen).iter().cloned().collect()
    }

    /// The requests since the last call, which are then forgotten.
    pub fn take_seen(&self) -> Vec<SeenRequest> {
        lock(&self.seen).drain(..).collect()
    }

    /// How many connections have been accepted.
    pub fn connections(&self) -> u64 {
        self.server.connections()
    }
}

/// One connection to the origin.
struct Session<'a> {
    connection: u64,
    site: &'a Site,
    seen: &'a Mutex<VecDeque<SeenRequest>>,
}

impl Session<'_> {
    fn serve(&mut self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(IDLE_TIMEOUT))?;
        stream.set_write_timeout(Some(IDLE_TIMEOUT))?;
        let mut output = stream.try_clone()?;
        let mut reader = MessageReader::new(stream);
        while let Some(mut request) = reader.request_head()? {
            if request.field("expect").is_some() && request.version == "HTTP/1.1" {
                answer::send_continue(&mut output)?;
            }
            reader.request_content(&mut request)?;
            let answer = answer::Answer::to(&request, self.site);
            self.remember(&request, answer.status());
            let may_persist = may_persist(&request);
            answer.send(&mut output, may_persist)?;
            if !may_persist {
                break;
            }
        }
        Ok(())
    }

    fn remember(&self, request: &Request, status: u16) {
        let mut seen = lock(self.seen);
        if seen.len() == SEEN_MAX {
            seen.pop_front();
        }
        seen.push_back(SeenRequest {
            connection: self.connection,
            method: request.method.clone(),
            target: request.target.clone(),
            fields: request.fields.clone(),
            status,
        });
    }
}

/// RFC 9112 §9.3. An HTTP/1.0 client gets one answer a connection: the end of the connection is
/// the end of a stream for it.
fn may_persist(request: &Request) -> bool {
    request.version == "HTTP/1.1" && !request.fields.lists("connection", "close")
}

fn lock(seen: &Mutex<VecDeque<SeenRequest>>) -> MutexGuard<'_, VecDeque<SeenRequest>> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
