//! What one worker has for the requests it serves.

use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::rc::Rc;
use std::sync::Arc;

use store::{Reader, Store};

use crate::base::{Counters, Gauge, Hop, Reason};
use crate::config::Settings;
use crate::io::Io;
use crate::log::{LogWriter, Notices};
use crate::origin::OriginSide;

/// One worker's tools, shared by its loop and its tasks.
pub(crate) struct Work {
    pub(crate) io: Rc<Io>,
    pub(crate) store: Arc<Store>,
    pub(crate) reader: Reader,
    pub(crate) counters: Rc<Counters>,
    pub(crate) settings: RefCell<Rc<Settings>>,
    pub(crate) origin: OriginSide,
    pub(crate) log: RefCell<Option<LogWriter>>,
    pub(crate) notices: Option<Arc<Notices>>,
    pub(crate) ids: RequestIds,
    /// Answers are made straight from the readiness event where they can be.
    pub(crate) is_straight: bool,
    /// No further request is taken after those in hand.
    pub(crate) is_draining: Cell<bool>,
}

impl Work {
    /// Counts a session as being at `hop` until the guard is dropped.
    pub(crate) fn at(self: &Rc<Self>, hop: Hop) -> AtHop {
        self.counters.raise(Gauge::at(hop));
        AtHop { work: Rc::clone(self), gauge: Gauge::at(hop) }
    }

    /// Tells the operator of a reason that asks for it; `detail` says where.
    pub(crate) fn tell(&self, reason: Reason, detail: &dyn Display) {
        if let Some(notices) = &self.notices {
            notices.tell(reason, self.io.now().moment, detail);
        }
    }

    pub(crate) fn settings(&self) -> Rc<Settings> {
        Rc::clone(&self.settings.borrow())
    }
}

/// See [`Work::at`].
pub(crate) struct AtHop {
    work: Rc<Work>,
    gauge: Gauge,
}

impl Drop for AtHop {
    fn drop(&mut self) {
        self.work.counters.lower(self.gauge);
    }
}

/// Names for requests: 64 random-looking bits each, so that a name tells nothing of its sender.
pub(crate) struct RequestIds(Cell<u64>);

impl RequestIds {
    /// `seed` should be random.
    pub(crate) fn new(seed: u64) -> Self {
        RequestIds(Cell::new(seed))
    }

    /// The next name, 16 hexadecimal digits. (SplitMix64; Steele, Lea and Flood 2014.)
    pub(crate) fn next(&self) -> [u8; 16] {
        let state = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(state);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let mut name = [0; 16];
        for (place, digit) in name.iter_mut().enumerate() {
            let nibble = (mixed >> (60 - 4 * place)) & 0xf;
            *digit = b"0123456789abcdef"[nibble as usize];
        }
        name
    }
}
