//! RFC 9111 as pure functions of (request, response, moment, options).
//!
//! The crate answers what a shared cache may do with a message: store it, reuse it, validate it,
//! freshen it, cut a range out of it, invalidate it. It must never read a clock, do I/O or keep
//! state: moments and options come in as arguments, decisions go out as enums that carry the rule
//! which made them, so that a recorded exchange always decides the same way again.
//!
//! The order of an exchange:
//! 1. [`lookup_rule`]: may this request be answered from the store at all?
//! 2. [`Variant::matches`] selects among the stored responses of a key, then [`reuse_decision`]
//!    says whether the selected one is fresh, stale but granted, or to be validated.
//! 3. On the way to the origin [`encode_validation_fields`] makes the request conditional.
//! 4. [`store_decision`] judges what came back; a 304 goes through [`may_freshen`], [`freshen`] and
//!    [`freshened_decision`] instead; [`invalidation()`] judges answers to unsafe methods.
//! 5. For the client: [`evaluate_preconditions`], then [`evaluate_range`].
//!
//! What a reuse needs is computed once, at admission ([`Freshness`], [`Variant`]): the functions of
//! step 2 and 5 allocate nothing and decode no field of the stored response but its validators.
//! All work is linear in the size of the heads, or bounded by the constants of this crate.

#![forbid(unsafe_code)]

mod directives;
mod entity_tag;
mod freshness;
mod invalidation;
mod moment;
mod options;
mod precondition;
mod range;
mod reuse;
mod rules;
mod storing;
mod validation;
mod vary;

pub use directives::{MaxStale, RequestDirectives, ResponseDirectives};
pub use entity_tag::{etag_matches_strong, etag_matches_weak};
pub use freshness::{Arrival, Freshness, LifetimeSource, age_value};
pub use invalidation::{Invalidation, invalidation};
pub use moment::Moment;
pub use options::Options;
pub use precondition::{Precondition, evaluate_preconditions};
pub use range::{RangeOutcome, evaluate_range};
pub use reuse::{Reuse, StaleGrant, ValidateRule, lookup_rule, reuse_decision};
pub use rules::PassRule;
pub use storing::{Received, StoreDecision, freshened_decision, store_decision};
pub use validation::{
    encode_validation_fields, freshen, has_validator, is_stored_field, may_freshen,
};
pub use vary::{VARY_NAMES_MAX, Variant, VaryStar, may_be_taken_away};
