//! What is to happen to a request: rules, listener's role, cache key.
//!
//! Policy decides and never drives I/O.

pub(crate) mod decide;
pub(crate) mod key;

pub(crate) use decide::{Asked, Plan, decide};
pub(crate) use key::{append_key, append_sibling_key};
