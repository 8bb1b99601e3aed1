//! The one byte budget: everything that the store holds is charged here, by kind.
//!
//! A charge is a value: while it lives the bytes are counted, when it is dropped they are given
//! back, so that nothing can be forgotten.
//!
//! Bytes of a response that has left the index are *leaving*: they are freed when its last reader
//! is done and, whoever reads, not before every worker has passed a turn. Evicting more would not
//! free them sooner, so that room is made as if they were gone. They are in use all the same: if
//! they counted for nothing, slow readers could pin any amount beyond the limit. So room is made
//! a little early ([`HEADROOM_SHARE`]), which what leaves in one turn has time to leave in.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What a charged byte is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Content of responses, stored or passing through.
    Content,
    /// Head records: field lines and their spans.
    Heads,
    /// Keys, variants and the index's own nodes.
    Index,
}

impl Kind {
    /// Every kind, in the order of [`Budget::used`].
    pub const ALL: [Kind; 3] = [Kind::Content, Kind::Heads, Kind::Index];

    /// The word that a status page shows.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Content => "content",
            Kind::Heads => "heads",
            Kind::Index => "index",
        }
    }
}

/// Room is made for new bytes when less than this part of the limit is free: one sixteenth.
pub const HEADROOM_SHARE: u64 = 16;

/// The budget of one store, in bytes.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    total: AtomicU64,
    leaving: AtomicU64,
    used: [AtomicU64; Kind::ALL.len()],
}

impl Budget {
    /// A budget of `limit` bytes.
    pub fn new(limit: u64) -> Arc<Self> {
        Arc::new(Budget {
            limit,
            total: AtomicU64::new(0),
            leaving: AtomicU64::new(0),
            used: Default::default(),
        })
    }

    /// The most bytes that may be charged.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes in use for `kind` now.
    pub fn used(&self, kind: Kind) -> u64 {
        self.used[kind as usize].load(Ordering::Relaxed)
    }

    /// Bytes in use now, for whatever.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Whether room has to be made for `bytes` more: they would leave less free than the
    /// headroom, not counting bytes that are leaving anyway.
    pub fn lacks(&self, bytes: u64) -> bool {
        let staying = self.total().saturating_sub(self.leaving.load(Ordering::Relaxed));
        staying.saturating_add(bytes) > self.limit - self.limit / HEADROOM_SHARE
    }

    /// Charges `bytes` if the limit allows it.
    pub fn charge(self: &Arc<Self>, kind: Kind, bytes: u64) -> Option<Charge> {
        let room = |total: u64| total.checked_add(bytes).filter(|sum| *sum <= self.limit);
        self.total.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).ok()?;
        Some(self.charged(kind, bytes))
    }

    /// Charges `bytes` whatever the limit says: for the one chunk without which an exchange in
    /// hand could never end.
    pub fn charge_beyond(self: &Arc<Self>, kind: Kind, bytes: u64) -> Charge {
        self.total.fetch_add(bytes, Ordering::Relaxed);
        self.charged(kind, bytes)
    }

    fn charged(self: &Arc<Self>, kind: Kind, bytes: u64) -> Charge {
        self.used[kind as usize].fetch_add(bytes, Ordering::Relaxed);
        Charge { budget: Arc::clone(self), kind, bytes, leaving: AtomicBool::new(false) }
    }
}

/// Bytes charged to a [`Budget`]; dropped, they are given back.
#[derive(Debug)]
pub struct Charge {
    budget: Arc<Budget>,
    kind: Kind,
    bytes: u64,
    leaving: AtomicBool,
}

impl Charge {
    /// How many bytes are charged.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Says that the bytes go as soon as their last reader does.
    pub fn leave(&self) {
        if !self.leaving.swap(true, Ordering::Relaxed) {
            self.budget.leaving.fetch_add(self.bytes, Ordering::Relaxed);
        }
    }

    /// Takes over the bytes of another charge of the same budget and kind. If one of them was
    /// leaving, all are.
    pub fn absorb(&mut self, mut other: Charge) {
        debug_assert!(self.kind == other.kind && Arc::ptr_eq(&self.budget, &other.budget));
        if *self.leaving.get_mut() || *other.leaving.get_mut() {
            self.leave();
            other.leave();
        }
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Gives back all but `bytes`.
    pub fn shrink(&mut self, bytes: u64) {
        let freed = self.bytes.saturating_sub(bytes);
        self.give_back(freed);
        self.bytes -= freed;
    }

    fn give_back(&self, bytes: u64) {
        self.budget.total.fetch_sub(bytes, Ordering::Relaxed);
        self.budget.used[self.kind as usize].fetch_sub(bytes, Ordering::Relaxed);
        if self.leaving.load(Ordering::Relaxed) {
            self.budget.leaving.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::{Budget, Kind};

    #[test]
    fn a_charge_is_given_back_when_dropped() {
        let budget = Budget::new(100);
        let charge = budget.charge(Kind::Content, 60).expect("room");
        assert_eq!(budget.used(Kind::Content), 60);
        assert!(budget.charge(Kind::Heads, 41).is_none());
        drop(charge);
        assert_eq!(budget.used(Kind::Content), 0);
        assert!(budget.charge(Kind::Heads, 100).is_some());
    }

    #[test]
    fn bytes_that_leave_make_eviction_stop_and_stay_in_use() {
        let budget = Budget::new(160);
        let charge = budget.charge(Kind::Content, 100).expect("room");
        assert!(!budget.lacks(50) && budget.lacks(51), "a sixteenth stays free");
        charge.leave();
        charge.leave();
        assert!(!budget.lacks(150), "evicting more would not help");
        assert!(budget.charge(Kind::Content, 61).is_none(), "they are still there");
        let other = budget.charge(Kind::Content, 60).expect("room up to the limit");
        drop(charge);
        assert!(!budget.lacks(90) && budget.lacks(91), "what has left counts no more as leaving");
        drop(other);
        assert_eq!((budget.total(), budget.lacks(150)), (0, false));
    }

    #[test]
    fn absorbed_bytes_are_counted_once() {
        for (first_leaves, second_leaves) in
            [(false, false), (true, false), (false, true), (true, true)]
        {
            let budget = Budget::new(160);
            let mut first = budget.charge(Kind::Content, 30).expect("room");
            let second = budget.charge(Kind::Content, 20).expect("room");
            if first_leaves {
                first.leave();
            }
            if second_leaves {
                second.leave();
            }
            first.absorb(second);
            assert_eq!((first.bytes(), budget.total(), budget.used(Kind::Content)), (50, 50, 50));
            assert_eq!(budget.lacks(150), !(first_leaves || second_leaves));
            first.shrink(10);
            assert_eq!(budget.total(), 10);
            drop(first);
            assert_eq!((budget.total(), budget.used(Kind::Content)), (0, 0));
            assert!(!budget.lacks(150) && budget.lacks(151), "nothing is leaving any more");
        }
    }

    #[test]
    fn a_charge_beyond_the_limit_is_in_use_too() {
        let budget = Budget::new(160);
        let charge = budget.charge_beyond(Kind::Content, 200);
        assert_eq!(budget.total(), 200);
        assert!(budget.charge(Kind::Content, 1).is_none());
        drop(charge);
        assert_eq!(budget.total(), 0);
    }

    #[test]
    fn shrinking_gives_back_the_rest() {
        let budget = Budget::new(100);
        let mut charge = budget.charge(Kind::Content, 64).expect("room");
        charge.shrink(10);
        assert_eq!((charge.bytes(), budget.used(Kind::Content)), (10, 10));
        drop(charge);
        assert_eq!(budget.used(Kind::Content), 0);
    }
}
