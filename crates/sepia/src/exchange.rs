//! One request and its steps, as a state machine that knows no socket, no slot and no task.
//!
//! [`begin`] takes a request through hops 3 and 4. What can be answered from there is answered
//! by [`respond`]; everything else names what has to be waited for. The readiness loop calls both
//! straight from an event; a task calls the same two, and waits in between.

pub(crate) mod fetch;
pub(crate) mod link;
pub(crate) mod request;
pub(crate) mod respond;
pub(crate) mod status;
pub(crate) mod work;

use std::sync::Arc;

use caching::{Moment, PassRule, RequestDirectives, ValidateRule};
use store::{Stored, Turn};

use crate::base::{LocalAnswer, Reason};
use crate::cache::{Found, lookup};
use crate::policy::{Asked, Plan, append_key, decide};
use status::{Forwarded, Handling};

pub(crate) use request::Request;
pub(crate) use work::Work;

/// What has to happen next for a request.
#[derive(Debug)]
pub(crate) enum Step<'t> {
    /// Answer from a complete stored response.
    Hit(&'t Arc<Stored>, Handling),
    /// Answer by ourselves.
    Local(LocalAnswer),
    /// Refuse.
    Refuse(Reason),
    /// Answer from a response that is still being written.
    Join(&'t Arc<Stored>, Handling),
    /// Ask the origin whether this response is still good.
    Validate(&'t Arc<Stored>, ValidateRule),
    /// Ask the origin.
    Forward(Forwarded),
    /// Ask the origin and leave the store alone, by this rule.
    Pass(PassRule),
    /// Open a tunnel.
    Tunnel,
}

/// Hops 3 and 4. `key` is a buffer for the cache key, which it holds afterwards. Reads the
/// store, changes nothing, allocates nothing for what can be answered at once.
pub(crate) fn begin<'t>(
    work: &'t Work,
    asked: &Asked<'_>,
    turn: &'t Turn<'_>,
    key: &mut Vec<u8>,
    now: Moment,
) -> Step<'t> {
    match decide(asked) {
        Plan::Local(answer) => return Step::Local(answer),
        Plan::Refuse(reason) => return Step::Refuse(reason),
        Plan::Tunnel(_) => return Step::Tunnel,
        Plan::Serve(may_lookup) => {
            append_key(asked.site, asked.head, key);
            if let Err(rule) = may_lookup {
                return unless_only_if_cached(asked, Step::Pass(rule));
            }
        }
    }
    let step = match lookup(&work.store, turn, key, asked.head, now) {
        Found::Hit { stored, grant } => {
            let remaining = stored.freshness.map_or(0, |freshness| freshness.remaining(now));
            return Step::Hit(stored, Handling::Hit { remaining, grant });
        }
        Found::InFlight(stored) => {
            return Step::Join(stored, Handling::Joined { why: Forwarded::UriMiss });
        }
        Found::Stale(stored, rule) => Step::Validate(stored, rule),
        Found::VaryMiss => Step::Forward(Forwarded::VaryMiss),
        Found::Miss => Step::Forward(Forwarded::UriMiss),
    };
    unless_only_if_cached(asked, step)
}

/// A step that leads to the origin, unless the client wants a stored response or none
/// (RFC 9111 section 5.2.1.7).
fn unless_only_if_cached<'t>(asked: &Asked<'_>, step: Step<'t>) -> Step<'t> {
    let directives = RequestDirectives::decode(asked.head.fields());
    if directives.only_if_cached { Step::Refuse(Reason::OnlyIfCached) } else { step }
}
