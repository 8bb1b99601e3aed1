//! The worker's epoll set as one descriptor inside the runtime, while tasks live.
//!
//! The only unsafe registration of the program.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use mio::Registry;
use tokio::io::Interest;
use tokio::io::unix::{AsyncFd, AsyncFdReadyGuard};

/// The epoll set, registered for reading with the runtime of the current context.
#[derive(Debug)]
pub(crate) struct Nested(AsyncFd<OwnedFd>);

impl Nested {
    /// Must be called in the context of the worker's runtime.
    pub(crate) fn new(registry: &Registry) -> io::Result<Self> {
        let duplicate = registry.as_fd().try_clone_to_owned()?;
        // SAFETY: the descriptor is a duplicate that the AsyncFd owns from here on. It is open,
        // nobody else can close or replace it, an OwnedFd always names the same descriptor, and
        // it is dropped only after the AsyncFd has taken its registration back.
        let registered = unsafe { AsyncFd::register_with_interest(duplicate, Interest::READABLE) };
        Ok(Nested(registered?))
    }

    /// Waits until the set has something to tell. The readiness may be cleared only after an
    /// inner wait has returned nothing.
    pub(crate) async fn readable(&self) -> io::Result<AsyncFdReadyGuard<'_, OwnedFd>> {
        self.0.readable().await
    }
}
