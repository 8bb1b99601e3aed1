//! Whether a stored response may answer a request (RFC 9111 sections 4, 4.2.4 and 5.2.1).
//!
//! The hot path: no allocation, and nothing is decoded here but what the caller already has. A
//! stale response is reused by a named grant only; what the origin forbids (no-cache,
//! must-revalidate and its kin) no request directive can grant.

use wire::{Known, Method, RequestHead};

use crate::directives::{MaxStale, RequestDirectives};
use crate::freshness::{Freshness, LifetimeSource};
use crate::moment::Moment;
use crate::rules::{PassRule, rules};

rules! {
    /// Who allowed a stale response to be served (RFC 9111 section 4.2.4).
    StaleGrant {
        MaxStale: "max-stale", "RFC 9111 §5.2.1.2",
            "The request accepts a response this stale.";
    }
}

rules! {
    /// Why a stored response must be validated before it is reused.
    ValidateRule {
        RequestNoCache: "request-no-cache", "RFC 9111 §5.2.1.4",
            "The request wants the origin asked.";
        Invalidated: "invalidated", "RFC 9111 §4.4",
            "The stored response was invalidated after it was stored.";
        NoCache: "no-cache", "RFC 9111 §5.2.2.4",
            "The response wants the origin asked at each reuse.";
        RequestMaxAge: "request-max-age", "RFC 9111 §5.2.1.1",
            "The stored response is older than the request accepts.";
        RequestMinFresh: "request-min-fresh", "RFC 9111 §5.2.1.3",
            "The stored response will not stay fresh for as long as the request wants.";
        MustRevalidate: "must-revalidate", "RFC 9111 §4.2.4",
            "The stored response is stale, and its origin forbids serving it so.";
        NoLifetime: "no-lifetime", "RFC 9111 §4.2.1",
            "The stored response has no freshness lifetime.";
        Expired: "expired", "RFC 9111 §4.2",
            "The stored response is stale.";
    }
}

/// What a stored response may do for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// Answer it: fresh.
    Fresh,
    /// Answer it, although stale, by this grant.
    Stale(StaleGrant),
    /// Ask the origin first, because of this rule.
    Validate(ValidateRule),
}

impl Reuse {
    /// Stable name for logs and Cache-Status details.
    pub const fn token(self) -> &'static str {
        match self {
            Reuse::Fresh => "fresh",
            Reuse::Stale(grant) => grant.token(),
            Reuse::Validate(rule) => rule.token(),
        }
    }

    /// The text that asks for the decision.
    pub const fn section(self) -> &'static str {
        match self {
            Reuse::Fresh => "RFC 9111 §4.2",
            Reuse::Stale(grant) => grant.section(),
            Reuse::Validate(rule) => rule.section(),
        }
    }

    /// The decision as a sentence for a person.
    pub const fn sentence(self) -> &'static str {
        match self {
            Reuse::Fresh => "The stored response is fresh.",
            Reuse::Stale(grant) => grant.sentence(),
            Reuse::Validate(rule) => rule.sentence(),
        }
    }
}

/// Whether a request may be answered from the store, or wait for a fetch that another request
/// started. The error says why it has to reach the origin itself.
pub fn lookup_rule(request: RequestHead<'_>) -> Result<(), PassRule> {
    if !matches!(request.method(), Method::Get | Method::Head) {
        return Err(PassRule::Method);
    }
    if request.framing().has_content() {
        return Err(PassRule::RequestContent);
    }
    let fields = request.fields();
    if fields.has(Known::IfMatch) || fields.has(Known::IfUnmodifiedSince) {
        return Err(PassRule::OriginPrecondition);
    }
    if fields.has(Known::Upgrade) && asks_upgrade(request) {
        return Err(PassRule::Upgrade);
    }
    Ok(())
}

/// Upgrade counts only if Connection lists it (RFC 9110 section 7.8). An offer of h2c is obsolete
/// (RFC 9113 section 3.1) and curl makes it by habit: it alone is no reason to pass the store by.
fn asks_upgrade(request: RequestHead<'_>) -> bool {
    let fields = request.fields();
    fields.lists(Known::Connection, b"upgrade")
        && fields.members(Known::Upgrade).any(|protocol| !protocol.eq_ignore_ascii_case(b"h2c"))
}

/// Decides what the selected stored response may do for a request with these directives.
/// `only-if-cached` is the caller's: with it, `Validate` becomes a 504 (RFC 9111 section 5.2.1.7).
pub fn reuse_decision(directives: &RequestDirectives, freshness: &Freshness, now: Moment) -> Reuse {
    if directives.no_cache {
        return Reuse::Validate(ValidateRule::RequestNoCache);
    }
    if freshness.is_invalidated {
        return Reuse::Validate(ValidateRule::Invalidated);
    }
    if freshness.must_validate {
        return Reuse::Validate(ValidateRule::NoCache);
    }
    let current_age = freshness.current_age(now);
    if directives.max_age.is_some_and(|max_age| current_age > max_age) {
        return Reuse::Validate(ValidateRule::RequestMaxAge);
    }
    let lacks_freshness = |seconds: u32| freshness.remaining(now) < i64::from(seconds);
    if directives.min_fresh.is_some_and(lacks_freshness) {
        return Reuse::Validate(ValidateRule::RequestMinFresh);
    }
    if freshness.is_fresh(now) {
        return Reuse::Fresh;
    }
    stale_decision(directives, freshness, now)
}

fn stale_decision(directives: &RequestDirectives, freshness: &Freshness, now: Moment) -> Reuse {
    if freshness.must_revalidate {
        return Reuse::Validate(ValidateRule::MustRevalidate);
    }
    let is_granted = match directives.max_stale {
        Some(MaxStale::Any) => true,
        Some(MaxStale::Seconds(seconds)) => freshness.staleness(now) <= seconds,
        None => false,
    };
    if is_granted {
        return Reuse::Stale(StaleGrant::MaxStale);
    }
    match freshness.source {
        LifetimeSource::None => Reuse::Validate(ValidateRule::NoLifetime),
        _ => Reuse::Validate(ValidateRule::Expired),
    }
}
