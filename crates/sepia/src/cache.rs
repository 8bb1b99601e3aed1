//! The store as the hops ask it: lookup (hop 4) and admit (hop 6).

pub(crate) mod admit;
pub(crate) mod lookup;
mod reference;

pub(crate) use admit::{Arrived, Freshened, admit, freshen, invalidate};
pub(crate) use lookup::{Found, lookup};
