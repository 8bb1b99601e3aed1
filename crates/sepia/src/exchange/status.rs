//! Cache-Status (RFC 9211): what the cache did with a request, in one field.

use caching::{PassRule, StaleGrant, ValidateRule};
use wire::encode_decimal;

use crate::base::Reason;

/// Why a request went to the origin (RFC 9211 section 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forwarded {
    UriMiss,
    VaryMiss,
    Stale(ValidateRule),
    Bypass(PassRule),
}

impl Forwarded {
    fn token(self) -> &'static str {
        match self {
            Forwarded::UriMiss => "uri-miss",
            Forwarded::VaryMiss => "vary-miss",
            Forwarded::Stale(
                ValidateRule::RequestNoCache
                | ValidateRule::RequestMaxAge
                | ValidateRule::RequestMinFresh,
            ) => "request",
            Forwarded::Stale(_) => "stale",
            Forwarded::Bypass(PassRule::Method) => "method",
            Forwarded::Bypass(_) => "bypass",
        }
    }

    fn detail(self) -> Option<&'static str> {
        match self {
            Forwarded::UriMiss | Forwarded::VaryMiss | Forwarded::Bypass(PassRule::Method) => None,
            Forwarded::Stale(rule) => Some(rule.token()),
            Forwarded::Bypass(rule) => Some(rule.token()),
        }
    }
}

/// What was done with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handling {
    /// Answered from the store; `remaining` seconds of freshness, negative when stale.
    Hit { remaining: i64, grant: Option<StaleGrant> },
    /// Answered from a response that another request was fetching; `why` it would have gone itself.
    Joined { why: Forwarded },
    /// Answered by the origin.
    Origin {
        why: Forwarded,
        /// The origin's status.
        status: u16,
        /// The response is kept for others.
        is_stored: bool,
        /// What kept it out of the store.
        rule: Option<PassRule>,
    },
    /// Answered by the proxy itself.
    Local(Option<Reason>),
}

impl Handling {
    /// Appends the field's value to an answer of this status.
    pub(crate) fn encode(self, answered: u16, out: &mut Vec<u8>) {
        out.extend_from_slice(b"sepia");
        match self {
            Handling::Hit { remaining, grant } => {
                out.extend_from_slice(b"; hit; ttl=");
                if remaining < 0 {
                    out.push(b'-');
                }
                encode_decimal(out, remaining.unsigned_abs());
                detail(out, grant.map(StaleGrant::token));
            }
            Handling::Joined { why } => {
                out.extend_from_slice(b"; fwd=");
                out.extend_from_slice(why.token().as_bytes());
                out.extend_from_slice(b"; collapsed");
                detail(out, why.detail());
            }
            Handling::Origin { why, status, is_stored, rule } => {
                out.extend_from_slice(b"; fwd=");
                out.extend_from_slice(why.token().as_bytes());
                // What a validation came to is worth telling even where the answer shows it.
                if status != answered || matches!(why, Forwarded::Stale(_)) {
                    out.extend_from_slice(b"; fwd-status=");
                    encode_decimal(out, u64::from(status));
                }
                if is_stored {
                    out.extend_from_slice(b"; stored");
                }
                let rule = rule.filter(|rule| why != Forwarded::Bypass(*rule));
                detail(out, why.detail().or(rule.map(PassRule::token)));
            }
            Handling::Local(reason) => detail(out, reason.map(Reason::token).or(Some("local"))),
        }
    }
}

fn detail(out: &mut Vec<u8>, detail: Option<&str>) {
    if let Some(detail) = detail {
        out.extend_from_slice(b"; detail=");
        out.extend_from_slice(detail.as_bytes());
    }
}
