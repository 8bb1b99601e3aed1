//! Hop 4, lookup: what the store has for a request. Writes nothing that workers share and
//! allocates nothing. RFC 9111 section 4.

use std::sync::Arc;

use caching::{Moment, RequestDirectives, Reuse, StaleGrant, ValidateRule, reuse_decision};
use store::{Store, Stored, Turn};
use wire::{Known, RequestHead};

/// What was found; references are valid for this turn of the loop.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found<'t> {
    /// May answer at once; stale only by a grant.
    Hit { stored: &'t Arc<Stored>, grant: Option<StaleGrant> },
    /// Fresh, and still being written: join it.
    InFlight(&'t Arc<Stored>),
    /// Has to be validated first, by this rule.
    Stale(&'t Arc<Stored>, ValidateRule),
    /// The key is known, but no variant answers this request.
    VaryMiss,
    /// Nothing.
    Miss,
}

/// Looks `key` up for a request that may be answered from the store.
pub(crate) fn lookup<'t>(
    store: &'t Store,
    turn: &'t Turn<'_>,
    key: &[u8],
    request: RequestHead<'_>,
    now: Moment,
) -> Found<'t> {
    let Some(entry) = store.lookup(turn, key) else { return Found::Miss };
    let Some(stored) = entry.select(request) else { return Found::VaryMiss };
    let Some(freshness) = &stored.freshness else { return Found::Miss };
    let directives = RequestDirectives::decode(request.fields());
    let reuse = reuse_decision(&directives, freshness, now);
    if stored.content.complete_len().is_none() {
        // Being written: fresh ones are joined from their first byte; a range waits for nobody.
        let joins = reuse == Reuse::Fresh
            && !request.fields().has(Known::Range)
            && stored.content.is_joinable();
        return if joins { Found::InFlight(stored) } else { Found::Miss };
    }
    match reuse {
        Reuse::Fresh => Found::Hit { stored, grant: None },
        Reuse::Stale(grant) => Found::Hit { stored, grant: Some(grant) },
        Reuse::Validate(rule) => Found::Stale(stored, rule),
    }
}
