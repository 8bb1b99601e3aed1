//! How many connections an origin gets at once: a pure state machine.
//!
//! A *slot* is leave to hold one working connection. The machine counts slots and those who
//! wait for one; it knows no socket and no clock. The limit is fixed here; whoever asks beyond
//! it waits in the order of asking, and beyond a bounded number of waiters is refused.

#![forbid(unsafe_code)]

use std::collections::VecDeque;

/// The answer to a request for a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// A slot is taken: connect, and [`Slots::handle_release`] it afterwards.
    Taken,
    /// Wait until a release names this ticket.
    Queued(Ticket),
    /// Too many wait already.
    Refused,
}

/// Names one who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// Slots of one origin.
#[derive(Debug)]
pub struct Slots {
    limit: usize,
    waiting_max: usize,
    in_use: usize,
    waiting: VecDeque<Ticket>,
    next: u64,
}

impl Slots {
    /// `limit` connections may work at once; `waiting_max` requests may wait for one.
    pub fn new(limit: usize, waiting_max: usize) -> Self {
        Slots { limit, waiting_max, in_use: 0, waiting: VecDeque::new(), next: 0 }
    }

    /// Slots that are taken.
    pub fn in_use(&self) -> usize {
        self.in_use
    }

    /// Requests that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Somebody wants a slot.
    pub fn handle_request(&mut self) -> Grant {
        if self.in_use < self.limit && self.waiting.is_empty() {
            self.in_use += 1;
            return Grant::Taken;
        }
        if self.waiting.len() >= self.waiting_max {
            return Grant::Refused;
        }
        let ticket = Ticket(self.next);
        self.next += 1;
        self.waiting.push_back(ticket);
        Grant::Queued(ticket)
    }

    /// A slot is given back; it passes to the first who waits, whose ticket is returned.
    pub fn handle_release(&mut self) -> Option<Ticket> {
        match self.waiting.pop_front() {
            Some(ticket) => Some(ticket),
            None => {
                self.in_use = self.in_use.saturating_sub(1);
                None
            }
        }
    }

    /// One who waited has gone. If its ticket had been named already the slot is its own and
    /// it has to release it.
    pub fn handle_leave(&mut self, ticket: Ticket) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| *waiting != ticket);
        before != self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::{Grant, Slots};

    #[test]
    fn slots_pass_to_those_who_wait_in_order() {
        let mut slots = Slots::new(1, 2);
        assert_eq!(slots.handle_request(), Grant::Taken);
        let Grant::Queued(first) = slots.handle_request() else { panic!("queued") };
        let Grant::Queued(second) = slots.handle_request() else { panic!("queued") };
        assert_eq!(slots.handle_request(), Grant::Refused);
        assert_eq!(slots.handle_release(), Some(first));
        assert_eq!(slots.in_use(), 1, "the slot passed on, it was not given back");
        assert_eq!(slots.handle_release(), Some(second));
        assert_eq!(slots.handle_release(), None);
        assert_eq!(slots.in_use(), 0);
    }

    #[test]
    fn one_who_leaves_is_not_called() {
        let mut slots = Slots::new(1, 8);
        slots.handle_request();
        let Grant::Queued(first) = slots.handle_request() else { panic!("queued") };
        let Grant::Queued(second) = slots.handle_request() else { panic!("queued") };
        assert!(slots.handle_leave(first));
        assert_eq!(slots.handle_release(), Some(second));
        assert!(!slots.handle_leave(second), "it was called: the slot is its own");
    }
}
