//! The index: from the full bytes of a cache key to a value, looked up by all workers at once.
//!
//! Hop 4, lookup. A lookup takes no lock and writes nothing shared; its reference is valid for the
//! worker's [`Turn`]. Updates are rarer and take the mutex of one shard.
//!
//! Never here: identity by hash (the whole key is compared), a value changed in place (an update
//! puts a new one), a value dropped under a shard's mutex (dropping may be slow or come back here).
//!
//! # Shape
//! 64 shards by the hash's top bits; each has a mutex for writers and a table for readers. A table
//! is a power of two of slots. A slot is one word: empty, *gone* (its entry was removed), or a
//! pointer to an entry, with a tag of 15 bits of the hash above the address, so that a miss
//! seldom leaves the table. Collisions probe linearly. An entry is one allocation: hash, key
//! length, value, key bytes. Entries never move, so that growing copies words into a new table and
//! leaves readers of the old one undisturbed; chained nodes would be relinked under them.
//!
//! # Why a lookup finds what is there
//! Invariant, kept by every single store: *from an entry's home slot to the one before its own,
//! none is empty.* An insertion takes the first slot that is empty or gone, a replacement swaps the
//! word, a removal leaves *gone*, or *empty* if the next slot is empty, where no probe goes on.
//! Stores are Release and loads Acquire, so that an entry is seen complete.
//!
//! # Why nothing is freed too early
//! What leaves the table is retired with the epoch opened after it was unlinked, and freed
//! when all readers have passed that epoch ([`crate::turn`]).
//!
//! # Memory
//! Beside key and value an entry takes 16 B, and 8 B for each slot of a table that is 3/8 to 3/4
//! full as it grows: 27 to 37 B. Removals rebuild it before it is less than a quarter full: 48 B.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::collections::VecDeque;
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::{Arc, PoisonError};

use crate::turn::sync::{AtomicPtr, AtomicUsize, Mutex, MutexGuard, Ordering};
use crate::turn::{Padded, Turn, Turns};

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;

/// Enough that writers seldom meet; the model checker wants as few as possible.
const SHARDS: usize = if cfg!(loom) { 1 } else { 64 };
/// Slots of a new shard: a power of two.
const SLOTS_MIN: usize = if cfg!(loom) { 4 } else { 8 };

/// Bits of an address. Linux hands out no more to a process that does not ask for more.
const ADDRESS_BITS: u32 = 48;
const ADDRESS_MASK: usize = (1 << ADDRESS_BITS) - 1;
/// Set in the tag of every entry, so that neither an empty nor a gone slot has a fitting tag.
const HELD: usize = 1 << (usize::BITS - 1);
/// The address that stands for *gone*; no entry has it, since entries are aligned to 8.
const GONE: usize = 1;

const _: () = assert!(usize::BITS == 64, "tags need pointers of 64 bits");

/// A concurrent map from key bytes to `V`. `V` may change inside only by its own atomics or locks.
///
/// [`lookup`](Self::lookup) for workers; [`update`](Self::update) to put and remove;
/// [`reclaim`](Self::reclaim) from time to time; [`for_each`](Self::for_each) for status.
/// Dropping it drops all values.
///
/// The caller hashes: the same key always with the same hash, keyed with a secret of this process,
/// lest a peer choose keys that collide.
///
/// ```
/// use store::{index::{Change, Index}, turn::Turns};
/// let turns = Turns::new(1);
/// let reader = turns.reader().expect("the only one");
/// let index = Index::new(turns);
/// index.update(7, b"key", |old| (Change::Put(old.map_or(1, |count| count + 1)), ()));
/// let turn = reader.turn();
/// assert_eq!(index.lookup(&turn, 7, b"key"), Some(&1));
/// ```
pub struct Index<V: Send + Sync> {
    turns: Arc<Turns>,
    shards: Box<[Shard<V>]>,
    /// Retired and not yet freed, in all shards; only a hint for [`Index::reclaim`].
    retired: Padded<AtomicUsize>,
}

/// What an [`Index::update`] does with the value it was shown.
#[derive(Debug)]
pub enum Change<V> {
    /// Leaves everything as it is.
    Keep,
    /// Inserts this value, or replaces the old one by it.
    Put(V),
    /// Removes the value, if there is one.
    Remove,
}

impl<V: Send + Sync> Index<V> {
    /// An empty index that is read during turns of `turns`.
    pub fn new(turns: Arc<Turns>) -> Self {
        let shards = (0..SHARDS).map(|_| Shard::new()).collect();
        Self { turns, shards, retired: Padded(AtomicUsize::new(0)) }
    }

    /// The value of `key`, valid for `turn`.
    ///
    /// # Panics
    /// If `turn` belongs to other [`Turns`] than this index.
    pub fn lookup<'t>(&'t self, turn: &'t Turn<'_>, hash: u64, key: &[u8]) -> Option<&'t V> {
        assert!(turn.is_of(&self.turns), "a turn of other turns keeps nothing here alive");
        let table = self.shard(hash).table.0.load(Ordering::Acquire);
        // SAFETY: a shard's table is never null and is retired before it is freed; `turn`, which
        // outlives 't, keeps back what is retired after it began.
        let table = unsafe { &*table };
        // SAFETY: the same holds for the entries that are reachable from the table.
        let (_, entry) = unsafe { table.find(hash, key) }?;
        // SAFETY: as above; an entry is never written while it is reachable.
        Some(unsafe { &(*entry.as_ptr()).value })
    }

    /// Shows the value of `key` to `change` and does what it answers; returns the second part of
    /// the answer. Updates of one key come one after another; lookups see the old value or the new.
    ///
    /// `change` runs under a mutex: it must be short and must not touch this index. If it panics
    /// nothing has changed. The old value is dropped once every reader has passed a turn.
    pub fn update<R>(
        &self,
        hash: u64,
        key: &[u8],
        change: impl FnOnce(Option<&V>) -> (Change<V>, R),
    ) -> R {
        let shard = self.shard(hash);
        let mut writer = shard.lock();
        // SAFETY: only the holder of the mutex replaces the table and unlinks entries, so that
        // what is reachable now stays so until we change it.
        let held = unsafe { shard.table_locked(&writer).find(hash, key) };
        // SAFETY: as above.
        let (change, outcome) = change(held.map(|(_, entry)| unsafe { &(*entry.as_ptr()).value }));
        let waiting_before = writer.retired.len();
        match (change, held) {
            (Change::Put(value), Some((at, old))) => {
                let entry = Entry::allocate(hash, key, value);
                shard.table_locked(&writer).hold(at, hash, entry);
                writer.retire(&self.turns, Garbage::Entry(old));
            }
            (Change::Put(value), None) => {
                shard.fit_table(&mut writer, &self.turns);
                let entry = Entry::allocate(hash, key, value);
                writer.used += usize::from(shard.table_locked(&writer).insert(hash, entry));
                writer.live += 1;
            }
            (Change::Remove, Some((at, old))) => {
                writer.used -= shard.table_locked(&writer).vacate(at);
                writer.live -= 1;
                writer.retire(&self.turns, Garbage::Entry(old));
                shard.fit_table(&mut writer, &self.turns);
            }
            (Change::Remove, None) | (Change::Keep, _) => {}
        }
        self.retired.0.fetch_add(writer.retired.len() - waiting_before, Ordering::Relaxed);
        self.free_passed(writer);
        outcome
    }

    /// Frees what every reader has passed. Each update does so for its own shard; this is for the
    /// others: call it now and then, such as once per tick of one worker. Cheap if nothing waits.
    pub fn reclaim(&self) {
        if self.retired() == 0 {
            return;
        }
        for shard in &self.shards {
            self.free_passed(shard.lock());
        }
    }

    /// How many values (and outgrown tables) wait to be freed.
    pub fn retired(&self) -> usize {
        self.retired.0.load(Ordering::Relaxed)
    }

    /// How many values there are. Takes each shard's mutex in turn: for status, not for hits.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().live).sum()
    }

    /// Whether there is no value; at the price of [`len`](Self::len).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Shows every key and value, in no order, a shard at a time under its mutex: a snapshot of
    /// each shard, not of the whole. `show` must not touch this index.
    pub fn for_each(&self, mut show: impl FnMut(&[u8], &V)) {
        for shard in &self.shards {
            let writer = shard.lock();
            for entry in shard.table_locked(&writer).entries() {
                // SAFETY: reachable, and the mutex keeps it so.
                unsafe { show(Entry::key(entry), &(*entry.as_ptr()).value) };
            }
        }
    }

    fn shard(&self, hash: u64) -> &Shard<V> {
        // The top 6 bits; the tag has the next 15, the slot the lowest.
        &self.shards[word_of(hash >> 58) % SHARDS]
    }

    /// Frees what was passed, after it has given the mutex back.
    fn free_passed(&self, mut writer: MutexGuard<'_, Writer<V>>) {
        let passed = writer.take_passed(&self.turns);
        drop(writer);
        self.retired.0.fetch_sub(passed.len(), Ordering::Relaxed);
        drop(passed);
    }
}

impl<V: Send + Sync> fmt::Debug for Index<V> {
    /// Without locks, hence without the values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").field("retired", &self.retired()).finish_non_exhaustive()
    }
}

impl<V: Send + Sync> Drop for Index<V> {
    fn drop(&mut self) {
        for shard in &self.shards {
            let table = shard.table.0.load(Ordering::Relaxed);
            // SAFETY: we have the only reference to the index, hence no lookup is left: the
            // table and its entries are ours, and each entry is in one slot only.
            let table = unsafe { Box::from_raw(table) };
            for entry in table.entries() {
                drop(Garbage::Entry(entry));
            }
        }
        // What is retired drops with the shards' writers.
    }
}

/// A part of the keys. Readers load `table`; writers hold the mutex, on other cache lines.
struct Shard<V> {
    /// Never null. Replaced under the mutex only.
    table: Padded<AtomicPtr<Table<V>>>,
    writer: Padded<Mutex<Writer<V>>>,
}

impl<V> Shard<V> {
    fn new() -> Self {
        let table = Box::into_raw(Box::new(Table::new(SLOTS_MIN)));
        let writer = Writer { live: 0, used: 0, retired: VecDeque::new() };
        Self { table: Padded(AtomicPtr::new(table)), writer: Padded(Mutex::new(writer)) }
    }

    /// Poison means nothing here: a panic under the mutex comes from a caller's closure, or from
    /// making an entry, and both run while table and counts agree.
    fn lock(&self) -> MutexGuard<'_, Writer<V>> {
        self.writer.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The table as the holder of this shard's mutex sees it, until it replaces it.
    fn table_locked<'w>(&'w self, _writer: &'w MutexGuard<'_, Writer<V>>) -> &'w Table<V> {
        // SAFETY: never null; only `fit_table` replaces and retires it, with the guard borrowed
        // mutably, so that the reference has ended by then.
        unsafe { &*self.table.0.load(Ordering::Relaxed) }
    }

    /// Rebuilds the table where three quarters of the slots are used or fewer than a quarter are
    /// live: before an insertion, so that a quarter stays empty, and after a removal.
    fn fit_table(&self, writer: &mut MutexGuard<'_, Writer<V>>, turns: &Turns) {
        let table = self.table_locked(writer);
        let slots = table.slots.len();
        let is_sparse = writer.live < slots / 4 && slots > SLOTS_MIN;
        if writer.used < slots / 4 * 3 && !is_sparse {
            return;
        }
        // From a quarter to a half full, so that a rebuild is paid for by as many updates.
        let fitting = Table::new((writer.live * 2).next_power_of_two().max(SLOTS_MIN));
        for entry in table.entries() {
            // SAFETY: reachable, and the mutex keeps it so.
            let hash = unsafe { (*entry.as_ptr()).hash };
            fitting.insert(hash, entry);
        }
        let old = self.table.0.swap(Box::into_raw(Box::new(fitting)), Ordering::AcqRel);
        writer.used = writer.live;
        let old = NonNull::new(old).expect("a shard always has a table");
        writer.retire(turns, Garbage::Table(old));
    }
}

/// What belongs to the holder of a shard's mutex.
struct Writer<V> {
    /// Slots that hold an entry.
    live: usize,
    /// Slots that are not empty: those that hold an entry or are gone.
    used: usize,
    /// In the order of their epochs. Grows while a reader neither passes a turn nor is offline.
    retired: VecDeque<Retired<V>>,
}

impl<V> Writer<V> {
    /// To be called after `garbage` was unlinked.
    fn retire(&mut self, turns: &Turns, garbage: Garbage<V>) {
        self.retired.push_back(Retired { epoch: turns.advance(), _garbage: garbage });
    }

    /// What may be freed, for the caller to drop when it has given the mutex back.
    fn take_passed(&mut self, turns: &Turns) -> Vec<Retired<V>> {
        if self.retired.is_empty() {
            return Vec::new();
        }
        let passed = turns.passed();
        let count = self.retired.partition_point(|retired| retired.epoch <= passed);
        self.retired.drain(..count).collect()
    }
}

/// Something unlinked, with the epoch that all readers must have passed before it is dropped.
struct Retired<V> {
    epoch: u64,
    _garbage: Garbage<V>,
}

/// Owns what no lookup may begin to reach. Dropped only when none reaches it any more: that is what
/// [`Writer::take_passed`] and the index's own drop see to.
enum Garbage<V> {
    Entry(NonNull<Entry<V>>),
    /// The table alone: its entries are also in the table that took its place.
    Table(NonNull<Table<V>>),
}

// SAFETY: it is the owner of a value or of mere words; readers that may still look at them are on
// other threads already, which `Index` allows for `V: Sync` alone.
unsafe impl<V: Send> Send for Garbage<V> {}

impl<V> Drop for Garbage<V> {
    fn drop(&mut self) {
        match *self {
            // SAFETY: by this type's contract we are the last who has the pointer.
            Self::Entry(entry) => unsafe { Entry::free(entry) },
            // SAFETY: as above; it came from `Box::into_raw`.
            Self::Table(table) => drop(unsafe { Box::from_raw(table.as_ptr()) }),
        }
    }
}

/// Slots of which at least a quarter is empty. Does not own the entries.
struct Table<V> {
    slots: Box<[AtomicPtr<Entry<V>>]>,
}

impl<V> Table<V> {
    fn new(slots: usize) -> Self {
        Self { slots: (0..slots).map(|_| AtomicPtr::new(ptr::null_mut())).collect() }
    }

    /// Every slot once, beginning with the home slot of `hash`.
    fn probe(&self, hash: u64) -> impl Iterator<Item = usize> + use<V> {
        let mask = self.slots.len() - 1;
        let home = word_of(hash);
        (0..=mask).map(move |step| home.wrapping_add(step) & mask)
    }

    /// The slot and the entry of `key`.
    ///
    /// # Safety
    /// What is reachable from this table is not freed: a turn or the shard's mutex is held.
    unsafe fn find(&self, hash: u64, key: &[u8]) -> Option<(usize, NonNull<Entry<V>>)> {
        let tag = tag_of(hash);
        for at in self.probe(hash) {
            let word = self.slots[at].load(Ordering::Acquire);
            if word.is_null() {
                return None;
            }
            let Some(entry) = entry_of(word) else { continue };
            if word.addr() & !ADDRESS_MASK != tag {
                continue;
            }
            // SAFETY: reachable, hence not freed, says the caller.
            if unsafe { (*entry.as_ptr()).hash == hash && Entry::key(entry) == key } {
                return Some((at, entry));
            }
        }
        None
    }

    /// Puts an entry whose key is not in the table into the first slot that has none, and returns
    /// whether that was an empty one. For the holder of the mutex.
    fn insert(&self, hash: u64, entry: NonNull<Entry<V>>) -> bool {
        let word = |at: &usize| self.slots[*at].load(Ordering::Relaxed);
        let free = self.probe(hash).find(|at| entry_of(word(at)).is_none());
        let at = free.expect("a quarter of the slots is empty");
        let was_empty = word(&at).is_null();
        self.hold(at, hash, entry);
        was_empty
    }

    /// Lets slot `at` hold `entry`, whatever it was before. For the holder of the mutex.
    fn hold(&self, at: usize, hash: u64, entry: NonNull<Entry<V>>) {
        let word = entry.as_ptr().map_addr(|address| address | tag_of(hash));
        // Release: who finds the entry finds it complete.
        self.slots[at].store(word, Ordering::Release);
    }

    /// Unlinks the entry of slot `at` and returns how many slots became empty: none, where probes
    /// have to go on; else this one and the gone ones before it. For the holder of the mutex.
    fn vacate(&self, at: usize) -> usize {
        let mask = self.slots.len() - 1;
        let next = self.slots[at.wrapping_add(1) & mask].load(Ordering::Relaxed);
        if !next.is_null() {
            self.slots[at].store(ptr::without_provenance_mut(GONE), Ordering::Release);
            return 0;
        }
        let mut emptied = 0;
        let mut at = at;
        // Ends: going round it would come to the empty slot behind the first.
        loop {
            self.slots[at].store(ptr::null_mut(), Ordering::Release);
            emptied += 1;
            at = at.wrapping_sub(1) & mask;
            if self.slots[at].load(Ordering::Relaxed).addr() != GONE {
                return emptied;
            }
        }
    }

    /// Every entry. For the holder of the mutex.
    fn entries(&self) -> impl Iterator<Item = NonNull<Entry<V>>> {
        self.slots.iter().filter_map(|slot| entry_of(slot.load(Ordering::Relaxed)))
    }
}

/// The entry that a slot's word points to, if it holds one.
fn entry_of<V>(word: *mut Entry<V>) -> Option<NonNull<Entry<V>>> {
    if word.addr() & HELD == 0 {
        return None;
    }
    NonNull::new(word.map_addr(|address| address & ADDRESS_MASK))
}

/// The tag of a hash, in its place above the address: 15 bits that neither the shard nor the
/// slot of a table of up to 2^43 slots is chosen by.
fn tag_of(hash: u64) -> usize {
    (word_of(hash >> 43) << ADDRESS_BITS) & !ADDRESS_MASK | HELD
}

#[expect(clippy::cast_possible_truncation, reason = "words have 64 bits, asserted above")]
fn word_of(bits: u64) -> usize {
    bits as usize
}

/// One key and its value, immutable while reachable; the key's bytes follow in the same allocation.
#[repr(C)]
struct Entry<V> {
    hash: u64,
    key_len: usize,
    value: V,
}

impl<V> Entry<V> {
    /// The allocation of an entry, and where in it the key begins.
    fn layout(key_len: usize) -> (Layout, usize) {
        let key = Layout::array::<u8>(key_len).expect("a key is no longer than a slice");
        Layout::new::<Self>().extend(key).expect("an entry fits the address space")
    }

    fn allocate(hash: u64, key: &[u8], value: V) -> NonNull<Self> {
        let (layout, key_offset) = Self::layout(key.len());
        // SAFETY: the layout is not empty: it has the hash and the length.
        let memory = unsafe { alloc(layout) };
        let Some(entry) = NonNull::new(memory.cast::<Self>()) else { handle_alloc_error(layout) };
        // A wider address (52 bits on request, tagged memory) would not leave room for our tag.
        assert!(memory.addr() & !ADDRESS_MASK == 0, "an address has more than 48 bits");
        // SAFETY: `memory` is ours, aligned and large enough for the fields and, from
        // `key_offset`, for the key's bytes.
        unsafe {
            entry.as_ptr().write(Self { hash, key_len: key.len(), value });
            ptr::copy_nonoverlapping(key.as_ptr(), memory.add(key_offset), key.len());
        }
        entry
    }

    /// The key's bytes. Takes the pointer, since a reference to the entry does not extend to them.
    ///
    /// # Safety
    /// `entry` came from [`Entry::allocate`] and is not freed during `'e`.
    unsafe fn key<'e>(entry: NonNull<Self>) -> &'e [u8] {
        // SAFETY: the caller's promise; layout as in `allocate`: bytes need no alignment, so that
        // they begin right behind the fields.
        unsafe {
            let key_len = (*entry.as_ptr()).key_len;
            let key = entry.as_ptr().cast::<u8>().add(size_of::<Self>());
            std::slice::from_raw_parts(key, key_len)
        }
    }

    /// Drops the value and gives the memory back.
    ///
    /// # Safety
    /// `entry` came from [`Entry::allocate`], and nobody uses it any more.
    unsafe fn free(entry: NonNull<Self>) {
        // SAFETY: the caller's promise; the layout is that of `allocate`.
        unsafe {
            let (layout, _) = Self::layout((*entry.as_ptr()).key_len);
            ptr::drop_in_place(&raw mut (*entry.as_ptr()).value);
            dealloc(entry.as_ptr().cast(), layout);
        }
    }
}
