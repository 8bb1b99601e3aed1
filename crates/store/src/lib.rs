//! Stored responses in memory: found by key, readable while they are being written, inside one
//! byte budget.
//!
//! - [`Store`] holds responses by [`Key`]; a lookup is valid for one turn of a worker's loop.
//! - [`Stored`] is one response: head record, freshness, variant, [`Content`].
//! - [`Writer`] and [`ContentReader`] are the two ends of content on its way.
//! - [`Flight`] collapses requests for the same key until the response's head is known.
//! - [`index`] and [`turn`] are the only places with `unsafe`.

pub mod budget;
pub mod content;
mod eviction;
pub mod flight;
pub mod index;
pub mod key;
#[cfg(test)]
mod samples;
pub mod store;
pub mod stored;
pub mod turn;
pub mod writer;

pub use budget::Kind;
pub use content::{ABORT_DROPPED, Aborted, Content, ContentReader};
pub use flight::{Boarding, Flight, Landing, Leader};
pub use key::Key;
pub use store::{Admission, Admitted, Entry, Store, Usage};
pub use stored::{Head, Stored};
pub use turn::{Reader, Turn};
pub use writer::{Abandoned, Writer};
