//! Whether a response may be stored (RFC 9111 sections 3, 3.5, 4.2.2 and 7.3).
//!
//! This cache is shared and holds complete responses to GET. It is stricter than the RFC in what it
//! would gain nothing by: a response that no later request could be answered with is not stored,
//! and a status that speaks of one request (a failed precondition, an impossible range) is not
//! stored whatever its directives say, as the cache key knows nothing of those request fields.

use wire::{Fields, Known, Method, RequestHead, ResponseHead};

use crate::directives::{RequestDirectives, ResponseDirectives};
use crate::freshness::{Arrival, Freshness, LifetimeSource, age_value, is_heuristically_cacheable};
use crate::moment::Moment;
use crate::options::Options;
use crate::rules::PassRule;
use crate::validation::has_validator;
use crate::vary::{VaryStar, nominated_names};

/// An exchange with the origin whose response head has arrived.
#[derive(Clone, Copy)]
pub struct Received<'a> {
    /// The request as it was sent.
    pub request: RequestHead<'a>,
    /// The final response, with a Date (added on receipt where the origin sent none).
    pub response: ResponseHead<'a>,
    /// When the request was sent.
    pub requested: Moment,
    /// When the response head was complete.
    pub received: Moment,
}

/// Whether to store a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreDecision {
    /// Store it, with this freshness.
    Store(Freshness),
    /// Pass it on only, because of this rule.
    Pass(PassRule),
}

impl StoreDecision {
    /// Stable name for logs and Cache-Status: the lifetime's source, or the rule against storing.
    pub const fn token(&self) -> &'static str {
        match self {
            StoreDecision::Store(freshness) => freshness.source.token(),
            StoreDecision::Pass(rule) => rule.token(),
        }
    }

    /// The text that asks for the decision.
    pub const fn section(&self) -> &'static str {
        match self {
            StoreDecision::Store(freshness) => freshness.source.section(),
            StoreDecision::Pass(rule) => rule.section(),
        }
    }

    /// The decision as a sentence for a person.
    pub const fn sentence(&self) -> &'static str {
        match self {
            StoreDecision::Store(freshness) => freshness.source.sentence(),
            StoreDecision::Pass(rule) => rule.sentence(),
        }
    }
}

/// Decides whether a response is stored. Trailers and completeness of the content are the caller's
/// to judge: only a response that ended as its framing says may be reused.
pub fn store_decision(exchange: &Received<'_>, options: &Options) -> StoreDecision {
    if exchange.response.ambiguous_length() {
        return StoreDecision::Pass(PassRule::AmbiguousLength);
    }
    let response = exchange.response;
    let judged = Judged { status: response.status(), fields: response.fields() };
    judge(exchange, judged, options).map_or_else(StoreDecision::Pass, StoreDecision::Store)
}

/// The same decision for a stored response that a 304 has freshened: `exchange` is the one that the
/// 304 answered, `status` the stored one's, `updated` the fields that [`crate::freshen`] made. On
/// `Pass` the update must not be kept: the answer serves this client, and the stored response
/// either leaves the store or stays as it was.
pub fn freshened_decision(
    exchange: &Received<'_>,
    status: u16,
    updated: Fields<'_>,
    options: &Options,
) -> StoreDecision {
    let judged = Judged { status, fields: updated };
    judge(exchange, judged, options).map_or_else(StoreDecision::Pass, StoreDecision::Store)
}

/// The response that the exchange is to leave in the store.
#[derive(Clone, Copy)]
struct Judged<'a> {
    status: u16,
    fields: Fields<'a>,
}

fn judge(
    exchange: &Received<'_>,
    judged: Judged<'_>,
    options: &Options,
) -> Result<Freshness, PassRule> {
    let directives = ResponseDirectives::decode(judged.fields);
    judge_request(exchange)?;
    judge_status(judged.status)?;
    judge_directives(exchange.request.fields(), judged.status, &directives)?;
    if judged.fields.has(Known::SetCookie) && !options.store_set_cookie {
        return Err(PassRule::SetCookie);
    }
    if let Err(VaryStar) = nominated_names(judged.fields) {
        return Err(PassRule::VaryStar);
    }
    let arrival = Arrival {
        requested: exchange.requested,
        received: exchange.received,
        age_value: age_value(exchange.response.fields()),
    };
    let freshness =
        Freshness::of_directives(judged.status, judged.fields, &directives, &arrival, options);
    let may_store = freshness.source.is_explicit()
        || directives.public
        || is_heuristically_cacheable(judged.status);
    if !may_store {
        return Err(PassRule::Status);
    }
    judge_use(exchange.request.fields(), judged.fields, &freshness, options)?;
    Ok(freshness)
}

fn judge_request(exchange: &Received<'_>) -> Result<(), PassRule> {
    if !matches!(exchange.request.method(), Method::Get) {
        Err(PassRule::Method)
    } else if exchange.request.framing().has_content() {
        Err(PassRule::RequestContent)
    } else if RequestDirectives::decode(exchange.request.fields()).no_store {
        Err(PassRule::RequestNoStore)
    } else {
        Ok(())
    }
}

fn judge_status(status: u16) -> Result<(), PassRule> {
    match status {
        101 => Err(PassRule::Upgrade),
        206 => Err(PassRule::PartialContent),
        // Interim answers; 304 updates but is not stored; 407, 408, 421, 425 and 426 concern the
        // connection, 412, 416 and 417 the request's own fields; RFC 6585 forbids 428, 429, 431
        // and 511; from 600 on nothing is defined (RFC 9110 section 15).
        0..200 | 304 | 407 | 408 | 412 | 416 | 417 | 421 | 425 | 426 => {
            Err(PassRule::StatusNeverStored)
        }
        428 | 429 | 431 | 511 | 600.. => Err(PassRule::StatusNeverStored),
        _ => Ok(()),
    }
}

fn judge_directives(
    request: Fields<'_>,
    status: u16,
    directives: &ResponseDirectives,
) -> Result<(), PassRule> {
    if directives.must_understand && !is_understood(status) {
        Err(PassRule::MustUnderstand)
    } else if directives.no_store && !directives.must_understand {
        Err(PassRule::NoStore)
    } else if directives.private {
        Err(PassRule::Private)
    } else if request.has(Known::Authorization) && !directives.may_share_authorized() {
        Err(PassRule::Authorization)
    } else {
        Ok(())
    }
}

/// Statuses whose caching requirements are known here: those of RFC 9110 section 15 that
/// [`judge_status`] lets through.
fn is_understood(status: u16) -> bool {
    matches!(
        status,
        200..=205 | 300..=303 | 305 | 307 | 308 | 500..=505
            | 400..=406 | 409..=411 | 413..=415 | 422
    )
}

/// Refuses what could be stored but never be reused.
fn judge_use(
    request: Fields<'_>,
    response: Fields<'_>,
    freshness: &Freshness,
    options: &Options,
) -> Result<(), PassRule> {
    let is_personal = request.has(Known::Cookie) && !options.heuristic_with_cookie;
    if is_personal && !freshness.source.is_explicit() {
        return Err(PassRule::CookieWithoutFreshness);
    }
    if has_validator(response) {
        return Ok(());
    }
    if freshness.must_validate {
        return Err(PassRule::NoValidator);
    }
    // A lifetime that is over on arrival may still be granted stale; one that never was may not.
    match freshness.source {
        LifetimeSource::None => Err(PassRule::NoFreshness),
        _ if freshness.freshness_lifetime == 0 => Err(PassRule::NoFreshness),
        _ => Ok(()),
    }
}
