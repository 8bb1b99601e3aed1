//! Slots of the worker's epoll set, byte sources, timers and the clock.
//!
//! The only place that reads time or calls sockets.

pub mod clock;
pub(crate) mod nested;
pub(crate) mod slots;
pub(crate) mod socket;
pub(crate) mod socket_file;
pub(crate) mod stream;
mod wheel;

pub(crate) use nested::Nested;
pub(crate) use slots::{ENGINE_TOKENS, Io, Owner, SlotId, Wake};
pub(crate) use socket::{Peer, Socket};
pub(crate) use stream::{Sleep, Stream};
