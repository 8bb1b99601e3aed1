//! Which stored response leaves first: first in, first out, with a second chance for those
//! that were hit since they were last looked at.
//!
//! A hit only sets a mark; nothing moves. The queue holds weak references, so that a response
//! that left the index in another way costs a place and its bare record, which are swept away when
//! such places come to a quarter of the living.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use crate::stored::Stored;

#[cfg(test)]
mod tests;

/// Places that are never swept.
const SWEPT_PLACES_MIN: usize = 256;

/// Places that one search looks at before it takes what has a mark too: a bound on the time for
/// which the queue is locked when nearly everything was hit.
const LOOKS_MAX: usize = 4_096;

/// The queue of candidates, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    places: VecDeque<Weak<Stored>>,
    /// Length at which dead places are swept next.
    sweep_at: usize,
}

impl Queue {
    pub(crate) fn push(&mut self, stored: &Arc<Stored>) {
        if self.places.len() >= self.sweep_at.max(SWEPT_PLACES_MIN) {
            self.places.retain(|place| place.upgrade().is_some_and(|it| it.is_indexed()));
            self.sweep_at = self.places.len() + self.places.len() / 4;
        }
        self.places.push_back(Arc::downgrade(stored));
    }

    /// The next to leave; its place is given up. `None` if all that was looked at is being
    /// written.
    pub(crate) fn victim(&mut self) -> Option<Arc<Stored>> {
        // Twice round: once to take the marks away, once to find one without.
        let rounds = 2 * self.places.len();
        for look in 0..rounds.min(2 * LOOKS_MAX) {
            let place = self.places.pop_front()?;
            let Some(stored) = place.upgrade().filter(|it| it.is_indexed()) else { continue };
            let is_being_written = stored.content.complete_len().is_none();
            let is_spared = look < LOOKS_MAX && stored.mark.swap(false, Ordering::Relaxed);
            if !is_being_written && !is_spared {
                return Some(stored);
            }
            self.places.push_back(place);
        }
        None
    }
}
