//! Turns: when may memory be freed that readers without locks may still look at.
//!
//! Quiescent-state-based reclamation. Each worker is a [`Reader`] that says once per turn of its
//! loop that it holds no reference any more; what was unlinked before all of them said so can
//! be freed. A worker's loop has such a moment anyway, so that a lookup pays nothing: no fence, no
//! shared write, no reference count. Hazard pointers and epoch pins cost a fence a lookup.
//!
//! Never here: waiting. A reader that does not pass its turn delays freeing and nothing else;
//! before it blocks it goes [offline](Reader::offline).
//!
//! # Why it is right
//! A writer *unlinks* (makes a thing unreachable for new lookups), then *advances* the epoch: the
//! thing may be freed once every place announces that epoch or a later one, or is offline.
//! - **Reader announced E or later.** What it did before happens before its announcement (Release)
//!   and so before the free (Acquire). What it does later follows its own Acquire load of an
//!   epoch ≥ E, hence the unlinking: it cannot reach the thing.
//! - **Reader seen offline.** What it did before going offline happens before the free, as above.
//!   If it goes online meanwhile, there are two SeqCst fences: the reader's, between announcing and
//!   its first load, and the freeing thread's, between unlinking and reading announcements. If
//!   the latter comes first, the reader's loads see the unlinking; if the former comes first, the
//!   freeing thread sees the announcement and does not find the reader offline.
//!
//! The loom tests of [`crate::index`] try every interleaving of small cases.

use std::cell::Cell;
use std::sync::Arc;

use sync::{AtomicBool, AtomicU64, Ordering, fence};

/// The primitives of this crate's lock-free code: the standard ones, or loom's in its tests.
pub(crate) mod sync {
    #[cfg(loom)]
    pub(crate) use loom::sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence},
    };
    #[cfg(not(loom))]
    pub(crate) use std::sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence},
    };
}

/// Keeps its content on cache lines of its own; two lines, since processors fetch them in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

/// Announced by a reader that holds nothing back: later than every epoch.
const OFFLINE: u64 = u64::MAX;

/// The epoch and the announcements of all readers; shared by the workers and the indexes.
///
/// Made once per process with a place for each worker; lives as long as its last reader or index.
#[derive(Debug)]
pub struct Turns {
    epoch: Padded<AtomicU64>,
    places: Box<[Padded<Place>]>,
}

/// Where one reader announces; written by that reader alone.
#[derive(Debug)]
struct Place {
    taken: AtomicBool,
    announced: AtomicU64,
}

impl Turns {
    /// Turns with room for `readers` readers at a time.
    pub fn new(readers: usize) -> Arc<Self> {
        let place = || Place { taken: AtomicBool::new(false), announced: AtomicU64::new(OFFLINE) };
        Arc::new(Self {
            epoch: Padded(AtomicU64::new(0)),
            places: (0..readers).map(|_| Padded(place())).collect(),
        })
    }

    /// A new reader, online, or `None` if all places are taken. Dropping it gives its place back.
    pub fn reader(self: &Arc<Self>) -> Option<Reader> {
        // Acquire, with the Release of the drop: the former owner's announcements come first.
        let free = |place: &Padded<Place>| {
            place
                .0
                .taken
                .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
        };
        let place = self.places.iter().position(free)?;
        let reader = Reader {
            turns: Arc::clone(self),
            place,
            announced: Cell::new(OFFLINE),
            turns_alive: Cell::new(0),
        };
        reader.online();
        Some(reader)
    }

    /// Opens a new epoch after something was unlinked, and returns it: the unlinked thing may be
    /// freed once [`Turns::passed`] reaches it.
    pub(crate) fn advance(&self) -> u64 {
        // Release: who sees this epoch (or a later one, a read-modify-write of it) sees the
        // unlinking. Wrapping would take 500 years of one update every nanosecond.
        self.epoch.0.fetch_add(1, Ordering::Release) + 1
    }

    /// The epoch that every reader has passed; `u64::MAX` if none is online.
    pub(crate) fn passed(&self) -> u64 {
        // Against the fence of `Reader::online`; see the header.
        fence(Ordering::SeqCst);
        let announced = |place: &Padded<Place>| place.0.announced.load(Ordering::Acquire);
        self.places.iter().map(announced).min().unwrap_or(OFFLINE)
    }
}

/// One worker's leave to look things up. `Send`, not `Sync`: it belongs to one thread at a time.
///
/// The owner takes a [`Turn`] before lookups, calls [`quiesce`](Self::quiesce) once per turn of its
/// loop, and goes [offline](Self::offline) before it blocks.
#[derive(Debug)]
pub struct Reader {
    turns: Arc<Turns>,
    place: usize,
    /// What the place says, so that an unchanged epoch is not written again.
    announced: Cell<u64>,
    turns_alive: Cell<usize>,
}

impl Reader {
    /// Begins to hold references: what lookups return stays valid while the turn lives. Several
    /// may live at once. Costs a count in this reader alone.
    ///
    /// # Panics
    /// If the reader is offline.
    pub fn turn(&self) -> Turn<'_> {
        assert!(self.announced.get() != OFFLINE, "a turn was taken by a reader that is offline");
        // Checked, since forgotten turns (mem::forget) count for ever.
        let alive = self.turns_alive.get().checked_add(1).expect("fewer turns than addresses");
        self.turns_alive.set(alive);
        Turn { reader: self }
    }

    /// Says that the worker holds no reference from before. Does nothing while a turn is alive or
    /// when offline, which is safe and only delays freeing.
    pub fn quiesce(&self) {
        if self.turns_alive.get() != 0 || self.announced.get() == OFFLINE {
            return;
        }
        // Acquire: lookups from here on see what was unlinked before this epoch began.
        let epoch = self.turns.epoch.0.load(Ordering::Acquire);
        if epoch != self.announced.get() {
            self.announce(epoch);
        }
    }

    /// Holds nothing back until [`online`](Self::online): for the time of a blocking wait.
    ///
    /// # Panics
    /// If a turn is alive.
    pub fn offline(&self) {
        assert_eq!(self.turns_alive.get(), 0, "a reader goes offline while one of its turns lives");
        self.announce(OFFLINE);
    }

    /// Ends [`offline`](Self::offline). Does nothing if the reader is online.
    pub fn online(&self) {
        if self.announced.get() != OFFLINE {
            return;
        }
        self.announce(self.turns.epoch.0.load(Ordering::Acquire));
        // Against the fence of `Turns::passed`; see the header.
        fence(Ordering::SeqCst);
    }

    fn announce(&self, epoch: u64) {
        self.announced.set(epoch);
        // Release: what this reader has read, it has read before a free that sees this.
        self.turns.places[self.place].0.announced.store(epoch, Ordering::Release);
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // References from turns borrow the reader: none is left, even if turns were forgotten.
        self.announce(OFFLINE);
        self.turns.places[self.place].0.taken.store(false, Ordering::Release);
    }
}

/// A time during which references from lookups stay valid; they borrow it. Ends by being dropped.
///
/// A reference cannot be kept beyond its turn, nor a turn be taken to another thread:
/// ```compile_fail,E0505
/// use store::{index::Index, turn::Turns};
/// let turns = Turns::new(1);
/// let (reader, index) = (turns.reader().unwrap(), Index::<u32>::new(turns));
/// let turn = reader.turn();
/// let seen = index.lookup(&turn, 7, b"key");
/// drop(turn);
/// assert!(seen.is_none());
/// ```
/// ```compile_fail,E0277
/// let reader = store::turn::Turns::new(1).reader().unwrap();
/// let turn = reader.turn();
/// std::thread::scope(|scope| scope.spawn(|| drop(turn)).join().unwrap());
/// ```
#[derive(Debug)]
pub struct Turn<'r> {
    reader: &'r Reader,
}

impl Turn<'_> {
    /// Whether this is a turn of one of `turns`' readers.
    pub(crate) fn is_of(&self, turns: &Arc<Turns>) -> bool {
        Arc::ptr_eq(&self.reader.turns, turns)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.reader.turns_alive.set(self.reader.turns_alive.get() - 1);
    }
}
