//! What an exchange leaves behind: counters, and its line in the access log.

use wire::RequestHead;

use crate::base::{Counter, Level, Reason};
use crate::exchange::Work;
use crate::exchange::status::{Forwarded, Handling};
use crate::io::Peer;
use crate::log::Record;

/// An exchange that has ended.
#[derive(Clone, Copy)]
pub(crate) struct Ended<'a> {
    /// `None` if the bytes were no request.
    pub(crate) head: Option<RequestHead<'a>>,
    pub(crate) peer: Peer,
    pub(crate) status: u16,
    /// Content bytes of the answer.
    pub(crate) bytes: u64,
    /// Microseconds of the clock when the head was complete.
    pub(crate) started: u64,
    pub(crate) cache_status: &'a [u8],
    pub(crate) request_id: &'a [u8],
    pub(crate) reason: Option<Reason>,
}

/// Counts how a request was handled.
pub(crate) fn count_handling(work: &Work, handling: Handling) {
    let counters = &work.counters;
    counters.add(Counter::Exchanges, 1);
    match handling {
        Handling::Hit { grant: None, .. } => counters.add(Counter::Hits, 1),
        Handling::Hit { grant: Some(_), .. } => counters.add(Counter::StaleHits, 1),
        Handling::Joined { .. } => counters.add(Counter::Joined, 1),
        Handling::Origin { why: Forwarded::Bypass(_), .. } => counters.add(Counter::Passes, 1),
        Handling::Origin { why: Forwarded::Stale(_), .. } => {}
        Handling::Origin { .. } => counters.add(Counter::Misses, 1),
        Handling::Local(reason) => {
            counters.add(Counter::LocalAnswers, 1);
            if let Some(reason) = reason {
                counters.count(reason);
            }
        }
    }
}

/// Writes the exchange's line, if lines are wanted, and tells the operator of what went wrong.
pub(crate) fn log(work: &Work, ended: &Ended<'_>) {
    if let Some(reason) = ended.reason.filter(|reason| reason.level() >= Level::Warn) {
        let target = ended.head.map_or(&b""[..], |head| head.request_target());
        let target = String::from_utf8_lossy(&target[..target.len().min(TOLD_BYTES)]);
        work.tell(reason, &format_args!("{target} for {}", ended.peer));
    }
    let mut log = work.log.borrow_mut();
    let Some(writer) = log.as_mut() else { return };
    let clock = work.io.clock();
    let duration_us = clock.micros().saturating_sub(ended.started);
    let now_ms = u64::try_from(clock.wall_millis()).unwrap_or(0);
    let authority = ended.head.and_then(|head| head.authority());
    let mut host = [0; HOST_BYTES];
    writer.line(&Record {
        wall_ms: now_ms.saturating_sub(duration_us / 1_000),
        client: match ended.peer {
            Peer::Ip(address) => Some(address),
            Peer::Local => None,
        },
        method: ended.head.map_or(b"", |head| head.method_bytes()),
        authority: authority.map_or(b"", |authority| host_port(authority, &mut host)),
        path_query: ended.head.map_or(b"", |head| head.path_query()),
        status: ended.status,
        bytes: ended.bytes,
        duration_us,
        cache_status: ended.cache_status,
        request_id: ended.request_id,
        reason: ended.reason,
    });
}

/// Bytes of a target that a notice shows.
const TOLD_BYTES: usize = 200;

/// A host name has at most 255 bytes, a port 5 digits.
const HOST_BYTES: usize = 262;

/// `host` or `host:port`, on the stack.
fn host_port<'b>(authority: wire::Authority<'_>, buffer: &'b mut [u8; HOST_BYTES]) -> &'b [u8] {
    let host = &authority.host[..authority.host.len().min(255)];
    buffer[..host.len()].copy_from_slice(host);
    let mut len = host.len();
    if let Some(port) = authority.port {
        let mut rest = &mut buffer[len..];
        let before = rest.len();
        // Six bytes always fit behind 255.
        let _ = std::io::Write::write_fmt(&mut rest, format_args!(":{port}"));
        len += before - rest.len();
    }
    &buffer[..len]
}
