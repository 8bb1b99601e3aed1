//! A gate that holds scripts up until a test opens it. It must never be left waiting for ever.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::DEADLINE;

/// Closed until [`Gate::open`], open from then on; clones are the same gate.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    shared: Arc<(Mutex<bool>, Condvar)>,
}

impl Gate {
    /// A closed gate.
    pub fn new() -> Gate {
        Gate::default()
    }

    /// Lets every waiting script, present and future, go on.
    pub fn open(&self) {
        let (is_open, changed) = &*self.shared;
        *is_open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
    }

    /// Waits until the gate is open.
    ///
    /// # Panics
    /// When nobody opened it within [`DEADLINE`].
    #[track_caller]
    pub fn wait(&self) {
        let (is_open, changed) = &*self.shared;
        let guard = is_open.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = changed.wait_timeout_while(guard, DEADLINE, |is_open| !*is_open);
        let (is_open, _) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(*is_open, "nobody opened the gate within {DEADLINE:?}");
    }
}
