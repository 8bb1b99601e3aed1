//! Collapsed requests before the response's head is known: one leads, the others wait.
//!
//! The leader says once what became of it; every waiter is woken by that event and looks again.
//! A leader that vanishes (a panic, a lost task) releases its waiters too. A waiter that vanishes
//! leaves nothing behind.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::key::Key;

#[cfg(test)]
mod tests;

/// Waiters that one flight takes; a request beyond them is forwarded by itself.
pub const WAITERS_MAX: usize = 65_536;

/// What became of the request that others waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landing {
    /// Its response is in the index: look it up again.
    Stored,
    /// Its response is not for others: each forwards its own request.
    NotShared,
    /// The origin failed; the code is the leader's.
    Failed(u16),
}

/// A waiter's part in a forwarded request that somebody else leads; dropped, it waits no more.
#[derive(Debug)]
pub struct Flight {
    course: Arc<Course>,
    /// Where this waiter's waker is.
    place: Cell<Option<usize>>,
}

/// What leader and waiters share.
#[derive(Debug, Default)]
struct Course {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    landing: Option<Landing>,
    wakers: Vec<Option<Waker>>,
    /// Places in `wakers` that are free.
    free: Vec<usize>,
}

impl Course {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first landing counts.
    fn land(&self, landing: Landing) {
        let mut state = self.state();
        if state.landing.is_some() {
            return;
        }
        state.landing = Some(landing);
        let wakers = std::mem::take(&mut state.wakers);
        // A waker may run code that comes back here.
        drop(state);
        wakers.into_iter().flatten().for_each(Waker::wake);
    }
}

impl Flight {
    /// Waits for what becomes of the leader's request. The waker of the last call is woken.
    pub fn poll_landing(&self, cx: &Context<'_>) -> Poll<Landing> {
        let mut guard = self.course.state();
        let state = &mut *guard;
        if let Some(landing) = state.landing {
            return Poll::Ready(landing);
        }
        if let Some(place) = self.place.get() {
            state.wakers[place] = Some(cx.waker().clone());
            return Poll::Pending;
        }
        if state.wakers.len() - state.free.len() >= WAITERS_MAX {
            return Poll::Ready(Landing::NotShared);
        }
        let place = state.free.pop().unwrap_or_else(|| {
            state.wakers.push(None);
            state.wakers.len() - 1
        });
        state.wakers[place] = Some(cx.waker().clone());
        self.place.set(Some(place));
        Poll::Pending
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let Some(place) = self.place.get() else { return };
        let mut state = self.course.state();
        // After the landing all wakers have been taken.
        let Some(waker) = state.wakers.get_mut(place).map(Option::take) else { return };
        state.free.push(place);
        drop(state);
        drop(waker);
    }
}

/// Leave to forward the one request of a flight.
#[derive(Debug)]
pub struct Leader {
    flights: Arc<Flights>,
    key: Key,
    course: Arc<Course>,
}

impl Leader {
    /// Says what became of the request and releases everyone who waits.
    pub fn land(self, landing: Landing) {
        self.end(landing);
    }

    /// Ends the flight before it says so: who boards from now on leads, and who leads looks the
    /// key up again first.
    fn end(&self, landing: Landing) {
        let mut map = self.flights.map(self.key.hash());
        if map.get(self.key.bytes()).is_some_and(|course| Arc::ptr_eq(course, &self.course)) {
            map.remove(self.key.bytes());
        }
        drop(map);
        self.course.land(landing);
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        self.end(Landing::NotShared);
    }
}

/// Whether a request leads or waits.
#[derive(Debug)]
pub enum Boarding {
    /// Nobody asks the origin yet: look the key up once more (the last flight may have landed
    /// since), forward, then [`Leader::land`].
    Lead(Leader),
    /// Another request is on its way.
    Wait(Flight),
}

const SHARDS: usize = 16;

type FlightMap = HashMap<Box<[u8]>, Arc<Course>>;

/// All flights of a store.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    shards: [Mutex<FlightMap>; SHARDS],
}

impl Flights {
    fn map(&self, hash: u64) -> MutexGuard<'_, FlightMap> {
        let shard = usize::try_from((hash >> 32) % SHARDS as u64).unwrap_or_default();
        self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn board(self: &Arc<Self>, key: &Key) -> Boarding {
        let mut map = self.map(key.hash());
        if let Some(course) = map.get(key.bytes()) {
            let course = Arc::clone(course);
            return Boarding::Wait(Flight { course, place: Cell::new(None) });
        }
        let course = Arc::<Course>::default();
        map.insert(key.bytes().into(), Arc::clone(&course));
        drop(map);
        Boarding::Lead(Leader { flights: Arc::clone(self), key: key.clone(), course })
    }

    pub(crate) fn len(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner).len())
            .sum()
    }
}
