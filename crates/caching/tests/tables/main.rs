//! Decisions as tables, a file for each part of RFC 9111 and RFC 9110; properties over arbitrary
//! field values at the end.

mod directives;
mod freshness;
mod heads;
mod precondition;
mod properties;
mod range;
mod reuse;
mod storing;
mod validation;
mod vary;
