//! Every origin that the process talks to: its slots, and what has been learned of it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use slots::{Grant, Slots, Ticket};

use crate::base::Reason;
use crate::base::limits;

/// One origin: a host and a port.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) host: String,
    pub(crate) port: u16,
    slots: Mutex<Waiting>,
    is_http10: AtomicBool,
    /// Connections that are open, in work or idle.
    pub(crate) open: AtomicU64,
    pub(crate) idle: AtomicU64,
    pub(crate) failures: AtomicU64,
}

#[derive(Debug)]
struct Waiting {
    slots: Slots,
    /// Who waits: `None` once the slot has passed to it.
    wakers: HashMap<Ticket, Option<Waker>>,
}

impl Origin {
    fn new(host: &str, port: u16) -> Self {
        let slots = Slots::new(limits::SLOTS_PER_ORIGIN, limits::WAITERS_PER_ORIGIN);
        Origin {
            host: host.to_owned(),
            port,
            slots: Mutex::new(Waiting { slots, wakers: HashMap::new() }),
            is_http10: AtomicBool::new(false),
            open: AtomicU64::new(0),
            idle: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Slots that are taken, and requests that wait for one.
    pub(crate) fn load(&self) -> (usize, usize) {
        let waiting = self.waiting();
        (waiting.slots.in_use(), waiting.slots.waiting())
    }

    /// Whether the origin's last response was HTTP/1.0.
    pub(crate) fn is_http10(&self) -> bool {
        self.is_http10.load(Ordering::Relaxed)
    }

    pub(crate) fn learn_version(&self, is_http10: bool) {
        if self.is_http10() != is_http10 {
            self.is_http10.store(is_http10, Ordering::Relaxed);
        }
    }

    /// Waits for a slot, at most as long as the caller polls.
    pub(crate) async fn slot(self: &Arc<Self>) -> Result<SlotGuard, Reason> {
        let ticket = {
            let mut waiting = self.waiting();
            match waiting.slots.handle_request() {
                Grant::Taken => return Ok(SlotGuard(Arc::clone(self))),
                Grant::Refused => return Err(Reason::TooManyWaiters),
                Grant::Queued(ticket) => ticket,
            }
        };
        let place = Place { origin: self, ticket, served: false };
        place.wait().await;
        Ok(SlotGuard(Arc::clone(self)))
    }

    fn release(&self) {
        let mut waiting = self.waiting();
        if let Some(ticket) = waiting.slots.handle_release() {
            // Whoever has not polled yet finds the slot when it does.
            if let Some(waker) = waiting.wakers.insert(ticket, None).flatten() {
                waker.wake();
            }
        }
    }
}

/// A place in the queue for a slot; leaving it early passes on what it was given.
struct Place<'o> {
    origin: &'o Origin,
    ticket: Ticket,
    served: bool,
}

impl Place<'_> {
    async fn wait(mut self) {
        std::future::poll_fn(|cx| self.poll(cx)).await;
    }

    fn poll(&mut self, cx: &Context<'_>) -> Poll<()> {
        let mut waiting = self.origin.waiting();
        if matches!(waiting.wakers.get(&self.ticket), Some(None)) {
            waiting.wakers.remove(&self.ticket);
            self.served = true;
            return Poll::Ready(());
        }
        waiting.wakers.insert(self.ticket, Some(cx.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.served {
            return;
        }
        let was_waiting = {
            let mut waiting = self.origin.waiting();
            waiting.wakers.remove(&self.ticket);
            waiting.slots.handle_leave(self.ticket)
        };
        if !was_waiting {
            self.origin.release();
        }
    }
}

/// Leave to hold one working connection; dropped, it passes to the next who waits.
#[derive(Debug)]
pub(crate) struct SlotGuard(Arc<Origin>);

impl Drop for SlotGuard {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// All origins of the process.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    by_name: Mutex<HashMap<(String, u16), Arc<Origin>>>,
    turn: AtomicU64,
}

impl Origins {
    fn map(&self) -> MutexGuard<'_, HashMap<(String, u16), Arc<Origin>>> {
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The origin of this host and port, new if it was not known.
    pub(crate) fn origin(&self, host: &str, port: u16) -> Arc<Origin> {
        let mut map = self.map();
        let name = (host.to_ascii_lowercase(), port);
        if let Some(origin) = map.get(&name) {
            return Arc::clone(origin);
        }
        if map.len() >= limits::ORIGINS {
            map.retain(|_, origin| Arc::strong_count(origin) > 1);
        }
        let origin = Arc::new(Origin::new(&name.0, port));
        map.insert(name, Arc::clone(&origin));
        origin
    }

    /// A number that goes round, for taking origins in turn.
    pub(crate) fn next_turn(&self) -> u64 {
        self.turn.fetch_add(1, Ordering::Relaxed)
    }

    /// Every known origin.
    pub(crate) fn all(&self) -> Vec<Arc<Origin>> {
        self.map().values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    use super::{Origin, SlotGuard};
    use crate::base::limits::SLOTS_PER_ORIGIN;

    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    fn take_all(origin: &Arc<Origin>) -> Vec<SlotGuard> {
        (0..SLOTS_PER_ORIGIN)
            .map(|_| match poll(pin!(origin.slot())) {
                Poll::Ready(Ok(guard)) => guard,
                _ => panic!("a slot is free"),
            })
            .collect()
    }

    #[test]
    fn a_released_slot_wakes_the_first_who_waits() {
        let origin = Arc::new(Origin::new("a", 80));
        let mut guards = take_all(&origin);
        let mut first = pin!(origin.slot());
        let mut second = pin!(origin.slot());
        assert!(poll(first.as_mut()).is_pending());
        assert!(poll(second.as_mut()).is_pending());
        assert_eq!(origin.load(), (SLOTS_PER_ORIGIN, 2));
        guards.pop();
        assert!(poll(second.as_mut()).is_pending());
        assert!(poll(first.as_mut()).is_ready());
    }

    #[test]
    fn a_slot_that_came_too_late_goes_to_the_next() {
        let origin = Arc::new(Origin::new("a", 80));
        let mut guards = take_all(&origin);
        let mut second = pin!(origin.slot());
        {
            let mut first = Box::pin(origin.slot());
            assert!(poll(first.as_mut()).is_pending());
            assert!(poll(second.as_mut()).is_pending());
            guards.pop();
        }
        assert!(poll(second.as_mut()).is_ready());
        drop(guards);
        assert_eq!(origin.load(), (0, 0));
    }
}
