//! Hop 3, decide: from a request head to a plan. Reads the request and the settings, nothing
//! else; never does I/O. RFC 9110 sections 7.6, 9.3, 10.1.1; RFC 9112 section 3.2.

use std::net::IpAddr;

use caching::{PassRule, lookup_rule};
use wire::{Authority, Known, Method, RequestHead, Target};

use crate::base::limits;
use crate::base::{LocalAnswer, Reason};
use crate::config::{AddressRule, Forward, Role, Settings, Site};

/// A request with the listener that it came to.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) head: RequestHead<'a>,
    pub(crate) site: &'a Site,
    pub(crate) settings: &'a Settings,
    /// The client's address; `None` for a process on this machine.
    pub(crate) peer: Option<IpAddr>,
}

/// What is to happen to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan<'a> {
    /// Ask the store, then the origin; `Err` says why the store is passed by.
    Serve(Result<(), PassRule>),
    /// A byte tunnel to this host and port.
    Tunnel(Authority<'a>),
    /// An answer of our own.
    Local(LocalAnswer),
    /// No.
    Refuse(Reason),
}

/// Makes the plan for a request.
pub(crate) fn decide<'a>(asked: &Asked<'a>) -> Plan<'a> {
    let request = asked.head;
    let fields = request.fields();
    if fields.has(Known::Via) && has_passed_here(request, &asked.settings.pseudonym) {
        return Plan::Refuse(Reason::LoopDetected);
    }
    if fields.has(Known::Expect) && expects_unknown(request) {
        return Plan::Refuse(Reason::ExpectationFailed);
    }
    if fields.has(Known::MaxForwards) && max_forwards(request) == Some(0) {
        match request.method() {
            Method::Trace => return Plan::Local(LocalAnswer::Trace),
            Method::Options => return Plan::Local(LocalAnswer::Options),
            _ => {}
        }
    }
    match &asked.site.listener.role {
        Role::Reverse(_) => decide_reverse(request),
        Role::Forward(forward) => decide_forward(request, forward, asked.peer),
    }
}

fn decide_reverse(request: RequestHead<'_>) -> Plan<'_> {
    match (request.method(), request.target()) {
        (Method::Connect, _) => Plan::Refuse(Reason::MethodNotAllowed),
        // A resource of https is not to be had over plain http (RFC 9110 section 7.4), and no
        // other scheme has a place in the key.
        (_, Target::Absolute { scheme, .. }) if !scheme.eq_ignore_ascii_case(b"http") => {
            Plan::Refuse(Reason::UnsupportedScheme)
        }
        _ => Plan::Serve(lookup_rule(request)),
    }
}

fn decide_forward<'a>(
    request: RequestHead<'a>,
    forward: &Forward,
    peer: Option<IpAddr>,
) -> Plan<'a> {
    match request.target() {
        Target::Authority(authority) => {
            let port = authority.port.unwrap_or(0);
            if forward.connect_ports.iter().any(|range| range.contains(port)) {
                Plan::Tunnel(authority)
            } else {
                Plan::Refuse(Reason::ConnectPortRefused)
            }
        }
        Target::Absolute { scheme, .. } if scheme.eq_ignore_ascii_case(b"http") => {
            let refuses = |authority| AddressRule::refuses_written(forward, authority, peer);
            if request.authority().is_some_and(refuses) {
                return Plan::Refuse(Reason::PrivateTarget);
            }
            Plan::Serve(lookup_rule(request))
        }
        Target::Absolute { .. } => Plan::Refuse(Reason::UnsupportedScheme),
        Target::Asterisk => Plan::Local(LocalAnswer::Options),
        Target::Origin { .. } => Plan::Local(LocalAnswer::ProxyPage),
    }
}

/// Whether Via names us: its second word is who received the message (RFC 9110 section 7.6.3).
fn has_passed_here(request: RequestHead<'_>, pseudonym: &str) -> bool {
    request.fields().members(Known::Via).any(|member| {
        let mut words = member.split(|byte| matches!(byte, b' ' | b'\t'));
        let received_by = words.by_ref().skip(1).find(|word| !word.is_empty());
        received_by.is_some_and(|word| word.eq_ignore_ascii_case(pseudonym.as_bytes()))
    })
}

fn expects_unknown(request: RequestHead<'_>) -> bool {
    request
        .fields()
        .members(Known::Expect)
        .any(|member| !member.eq_ignore_ascii_case(b"100-continue"))
}

/// The value of Max-Forwards if it is one number (RFC 9110 section 7.6.2).
pub(crate) fn max_forwards(request: RequestHead<'_>) -> Option<u32> {
    let value = request.fields().first(Known::MaxForwards)?;
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = std::str::from_utf8(value).ok()?.parse().unwrap_or(limits::MAX_FORWARDS);
    Some(number.min(limits::MAX_FORWARDS))
}
