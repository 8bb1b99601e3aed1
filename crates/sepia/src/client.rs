//! The client side: sessions over HTTP/1 (hops 2 and 8).
//!
//! [`Clients`] holds what parked sessions carry over from one event to the next, which is
//! nothing for an idle one. An event is served straight ([`session`]); a request that has to wait
//! is given to a task ([`task`]), which parks the session again when it is done.

pub(crate) mod account;
pub(crate) mod decode;
pub(crate) mod deliver;
pub(crate) mod session;
pub(crate) mod switch;
pub(crate) mod task;
pub(crate) mod upload;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::base::limits;
use crate::exchange::Work;
use crate::io::SlotId;
use deliver::{Pending, Phase};
use session::Desk;

/// All sessions of one worker.
pub(crate) struct Clients {
    pub(crate) work: Rc<Work>,
    /// By slot: what a session carries over, if anything.
    carried: RefCell<Vec<Option<Box<Pending>>>>,
    /// Used ones, so that the steady state allocates none.
    #[allow(clippy::vec_box)] // They move between here and `carried` without a copy.
    spare: RefCell<Vec<Box<Pending>>>,
    desk: Cell<Option<Box<Desk>>>,
}

impl Clients {
    pub(crate) fn new(work: Rc<Work>) -> Rc<Self> {
        let desk = Desk::new(work.settings().config.heads.head_bytes);
        Rc::new(Clients {
            work,
            carried: RefCell::default(),
            spare: RefCell::default(),
            desk: Cell::new(Some(Box::new(desk))),
        })
    }

    /// Takes what the session carried over.
    fn take_carried(&self, id: SlotId) -> Option<Box<Pending>> {
        self.carried.borrow_mut().get_mut(id.index())?.take()
    }

    /// Keeps something for the session's next event.
    fn carry(&self, id: SlotId, pending: Box<Pending>) {
        let mut carried = self.carried.borrow_mut();
        if carried.len() <= id.index() {
            carried.resize_with(id.index() + 1, || None);
        }
        carried[id.index()] = Some(pending);
    }

    fn spare_pending(&self) -> Box<Pending> {
        self.spare.borrow_mut().pop().unwrap_or_default()
    }

    /// Puts a used one away for the next who needs one.
    fn recycle(&self, mut pending: Box<Pending>) {
        let mut spare = self.spare.borrow_mut();
        if spare.len() < SPARE_MAX && pending.clear() <= limits::READ_BUFFER_BYTES {
            spare.push(pending);
        }
    }

    /// Whether a parked session waits between requests, in the middle of nothing.
    pub(crate) fn is_idle(&self, id: SlotId) -> bool {
        let carried = self.carried.borrow();
        let pending = carried.get(id.index()).and_then(Option::as_ref);
        pending.is_none_or(|pending| pending.is_between_requests())
    }

    /// Whether a parked session has its answer and waits only for the client's end.
    pub(crate) fn is_lingering(&self, id: SlotId) -> bool {
        let carried = self.carried.borrow();
        let pending = carried.get(id.index()).and_then(Option::as_ref);
        pending.is_some_and(|pending| matches!(pending.phase, Phase::Lingering { .. }))
    }
}

#[cfg(test)]
mod tests;

/// Spare [`Pending`]s that are kept.
const SPARE_MAX: usize = 64;
