//! The store: which responses are held, found by key, inside one byte budget.
//!
//! Lookups write nothing that is shared (see [`crate::index`]). Everything else (admitting,
//! freshening, invalidating, evicting) happens on the way of a miss and takes short locks.
//! No two locks are held at once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use caching::{Freshness, Variant};
use wire::RequestHead;

use crate::budget::{Budget, Charge, Kind};
use crate::content::{Content, ContentReader};
use crate::eviction::Queue;
use crate::flight::{Boarding, Flights};
use crate::index::{Change, Index};
use crate::key::{Key, hash_of};
use crate::stored::{Head, Stored};
use crate::turn::{Reader, Turn, Turns};
use crate::writer::Writer;

/// Variants that one key keeps; the oldest leaves first.
pub const VARIANTS_MAX: usize = 64;

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;

/// Bytes of bookkeeping that a stored response is charged beside its key, head and content: the
/// records with their reference counts, its entry with 48 bytes of the index and 16 of the
/// eviction queue, one chunk's reference and record, and 16 for each of eight allocations.
const OVERHEAD_BYTES: u64 = {
    let records = size_of::<Stored>() + size_of::<Content>() + 2 * 16;
    let entry = size_of::<Entry>() + size_of::<Arc<Stored>>() + 48 + 16;
    let chunk = size_of::<Bytes>() + 24;
    (records + entry + chunk + 8 * 16) as u64
};

/// Places of the generation table: keys that share a place invalidate each other's fetches,
/// which costs a fetch and never serves a wrong byte.
const GENERATIONS: usize = 4_096;

/// What is stored under one key, newest first.
#[derive(Clone, Debug)]
pub struct Entry {
    variants: Box<[Arc<Stored>]>,
}

impl Entry {
    /// The newest stored response that this request selects (RFC 9111 section 4.1).
    pub fn select(&self, request: RequestHead<'_>) -> Option<&Arc<Stored>> {
        self.variants.iter().find(|stored| stored.variant.matches(request))
    }

    /// Every stored response of the key.
    pub fn variants(&self) -> &[Arc<Stored>] {
        &self.variants
    }
}

/// A response as it comes to be stored, or to pass through.
#[derive(Debug)]
pub struct Admission {
    /// Status and field lines.
    pub head: Head,
    /// When it is fresh; `None` passes the response through without an index entry.
    pub freshness: Option<Freshness>,
    /// Which requests it answers.
    pub variant: Variant,
    /// Length in bytes that the origin declared.
    pub declared_length: Option<u64>,
    /// [`Store::generation`] when the request was sent.
    pub generation: u64,
}

/// What is in use, for a status page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Limit of the budget in bytes.
    pub limit: u64,
    /// Bytes of content.
    pub content: u64,
    /// Bytes of head records.
    pub heads: u64,
    /// Bytes of keys, variants and index nodes.
    pub index: u64,
    /// Keys in the index.
    pub keys: u64,
    /// Responses evicted for room since the start.
    pub evicted: u64,
    /// Requests that others wait for now.
    pub flights: u64,
}

/// A store of responses in memory.
#[derive(Debug)]
pub struct Store {
    budget: Arc<Budget>,
    chunk_bytes: usize,
    turns: Arc<Turns>,
    index: Index<Entry>,
    queue: Mutex<Queue>,
    flights: Arc<Flights>,
    generations: Box<[AtomicU64]>,
    evicted: AtomicU64,
}

impl Store {
    /// A store of at most `budget` bytes that `readers` workers look things up in.
    pub fn new(budget: u64, readers: usize) -> Arc<Self> {
        let turns = Turns::new(readers);
        Arc::new(Store {
            budget: Budget::new(budget),
            chunk_bytes: chunk_bytes_for(budget),
            index: Index::new(Arc::clone(&turns)),
            turns,
            queue: Mutex::default(),
            flights: Arc::default(),
            generations: (0..GENERATIONS).map(|_| AtomicU64::new(0)).collect(),
            evicted: AtomicU64::new(0),
        })
    }

    /// A worker's leave to look things up; `None` if all places are taken.
    pub fn reader(&self) -> Option<Reader> {
        self.turns.reader()
    }

    /// What is stored under the key `bytes`, valid for this turn.
    pub fn lookup<'t>(&'t self, turn: &'t Turn<'_>, bytes: &[u8]) -> Option<&'t Entry> {
        self.index.lookup(turn, hash_of(bytes), bytes)
    }

    /// Leads or joins the one request that is forwarded for `key`.
    pub fn board(&self, key: &Key) -> Boarding {
        self.flights.board(key)
    }

    /// The generation of `key`: take it when a request is sent.
    pub fn generation(&self, key: &Key) -> u64 {
        self.generation_cell(key).load(Ordering::Acquire)
    }

    fn generation_cell(&self, key: &Key) -> &AtomicU64 {
        let place = key.hash() % GENERATIONS as u64;
        &self.generations[usize::try_from(place).unwrap_or_default()]
    }

    /// Takes in a response. It enters the index if it has a freshness, if there is room, and if
    /// its key was not invalidated since its request was sent; else it passes through.
    pub fn admit(self: &Arc<Self>, key: Key, admission: Admission) -> Admitted {
        let generation = admission.generation;
        let current = self.generation(&key) == generation;
        let charges = if current && admission.freshness.is_some() {
            self.charges_for(&key, &admission)
        } else {
            None
        };
        let keep = charges.is_some();
        let stored = Arc::new(Stored {
            key,
            head: admission.head,
            freshness: admission.freshness,
            variant: admission.variant,
            declared_length: admission.declared_length,
            content: Content::new(keep, self.chunk_bytes),
            mark: AtomicBool::new(false),
            indexed: AtomicBool::new(keep),
            charges,
        });
        // The reader is attached first: passing content without one counts as abandoned.
        let reader = stored.content.reader(0);
        if keep {
            self.insert(&stored, generation, None);
        }
        let writer = Writer::new(
            Arc::clone(self),
            Arc::clone(&stored.content),
            keep.then(|| Arc::clone(&stored)),
            stored.declared_length,
        );
        Admitted { stored, writer, reader }
    }

    fn charges_for(&self, key: &Key, admission: &Admission) -> Option<[Charge; 2]> {
        if admission.declared_length.is_some_and(|length| length > self.largest_response()) {
            return None;
        }
        // The key is in the record and in the index.
        let index = 2 * key.bytes().len() + admission.variant.bytes().len();
        Some([
            self.charge(Kind::Heads, admission.head.cost())?,
            self.charge(Kind::Index, index as u64 + OVERHEAD_BYTES)?,
        ])
    }

    /// Bytes of content above which a response is not kept: half of the budget, so that an endless
    /// one cannot evict everything before it is found out.
    pub(crate) fn largest_response(&self) -> u64 {
        self.budget.limit() / 2
    }

    /// Puts a response first among the variants of its key, in place of those it replaces: one of
    /// the same variant and `updated`, which must still be there.
    fn insert(&self, stored: &Arc<Stored>, generation: u64, updated: Option<&Arc<Stored>>) {
        let key = &stored.key;
        let is_updated = |old: &Arc<Stored>| updated.is_some_and(|it| Arc::ptr_eq(it, old));
        let mut replaced = Vec::new();
        let is_in = self.index.update(key.hash(), key.bytes(), |entry| {
            let olds = entry.map(Entry::variants).unwrap_or_default();
            // Again under the shard's lock: an invalidation comes either before, and is seen
            // here, or after, and removes what is put in now.
            let is_overtaken = self.generation(key) != generation;
            if is_overtaken || (updated.is_some() && !olds.iter().any(is_updated)) {
                return (Change::Keep, false);
            }
            let mut variants = vec![Arc::clone(stored)];
            for old in olds {
                let is_same = old.variant.bytes() == stored.variant.bytes();
                if is_same || is_updated(old) || variants.len() == VARIANTS_MAX {
                    replaced.push(Arc::clone(old));
                } else {
                    variants.push(Arc::clone(old));
                }
            }
            (Change::Put(Entry { variants: variants.into() }), true)
        });
        if !is_in {
            // Nobody else has seen it yet.
            stored.indexed.store(false, Ordering::Relaxed);
            return;
        }
        for old in replaced {
            old.leave();
            if !Arc::ptr_eq(&old.content, &stored.content) {
                old.content.leave();
            }
        }
        self.queue().push(stored);
    }

    /// Swaps the head record of `old` for an updated one that shares its content
    /// (RFC 9111 section 4.3.4). If `old` has left the index meanwhile, the new record does not
    /// enter it. `None` if there is no room for the record, or if the content is still being
    /// written: its writer answers for `old` alone.
    pub fn freshen(
        self: &Arc<Self>,
        old: &Arc<Stored>,
        admission: Admission,
    ) -> Option<Arc<Stored>> {
        old.content.complete_len()?;
        let generation = admission.generation;
        let charges = self.charges_for(&old.key, &admission)?;
        let stored = Arc::new(Stored {
            key: old.key.clone(),
            head: admission.head,
            freshness: admission.freshness,
            variant: admission.variant,
            declared_length: old.declared_length,
            content: Arc::clone(&old.content),
            mark: AtomicBool::new(true),
            indexed: AtomicBool::new(true),
            charges: Some(charges),
        });
        self.insert(&stored, generation, Some(old));
        Some(stored)
    }

    /// Invalidates everything under the key `bytes` (RFC 9111 section 4.4), and every response
    /// to a request for it that has been sent already. Says whether anything was stored.
    pub fn invalidate(&self, bytes: &[u8]) -> bool {
        let key = Key::new(bytes);
        self.generation_cell(&key).fetch_add(1, Ordering::AcqRel);
        let removed = self.index.update(key.hash(), bytes, |entry| match entry {
            Some(entry) => (Change::Remove, Some(entry.clone())),
            None => (Change::Keep, None),
        });
        let Some(entry) = removed else { return false };
        entry.variants().iter().for_each(left);
        true
    }

    /// Takes one response out of the index. Says whether it was still in it.
    pub fn remove(&self, stored: &Arc<Stored>) -> bool {
        let key = &stored.key;
        let is_removed = self.index.update(key.hash(), key.bytes(), |entry| {
            let olds = entry.map(Entry::variants).unwrap_or_default();
            let others: Box<[Arc<Stored>]> =
                olds.iter().filter(|old| !Arc::ptr_eq(old, stored)).cloned().collect();
            match others.len() {
                same if same == olds.len() => (Change::Keep, false),
                0 => (Change::Remove, true),
                _ => (Change::Put(Entry { variants: others }), true),
            }
        });
        // Else somebody took it out before, and its content may be in use for an updated record.
        if is_removed {
            left(stored);
        }
        is_removed
    }

    /// Charges `bytes`, evicting for them if need be. `None` if they do not fit, or not before
    /// what leaves has left.
    pub(crate) fn charge(&self, kind: Kind, bytes: u64) -> Option<Charge> {
        if bytes > self.budget.limit() {
            return None;
        }
        if self.budget.lacks(bytes) {
            self.evict_for(bytes);
        }
        self.budget.charge(kind, bytes).or_else(|| {
            // What was evicted before may have been passed by all workers meanwhile.
            self.index.reclaim();
            self.budget.charge(kind, bytes)
        })
    }

    pub(crate) fn charge_beyond(&self, kind: Kind, bytes: u64) -> Charge {
        self.budget.charge_beyond(kind, bytes)
    }

    fn evict_for(&self, bytes: u64) {
        while self.budget.lacks(bytes) {
            let Some(victim) = self.queue().victim() else { break };
            if self.remove(&victim) {
                self.evicted.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Frees what has left the index and what no worker looks at any more. Evictions and other
    /// updates free in passing; this is for quiet times: call it now and then, such as once per
    /// tick of one worker.
    pub fn reclaim(&self) {
        self.index.reclaim();
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A bounded pipe for content that is on its way and never stored, and its only reader.
    pub fn pipe(self: &Arc<Self>) -> (Writer, Option<ContentReader>) {
        let content = Content::new(false, self.chunk_bytes);
        let reader = content.reader(0);
        (Writer::new(Arc::clone(self), content, None, None), reader)
    }

    /// What is in use now.
    pub fn usage(&self) -> Usage {
        Usage {
            limit: self.budget.limit(),
            content: self.budget.used(Kind::Content),
            heads: self.budget.used(Kind::Heads),
            index: self.budget.used(Kind::Index),
            keys: self.index.len() as u64,
            evicted: self.evicted.load(Ordering::Relaxed),
            flights: self.flights.len() as u64,
        }
    }
}

/// `stored` was in the index and is so no more; its bytes go with its last reader.
fn left(stored: &Arc<Stored>) {
    stored.leave();
    stored.content.leave();
}

/// What [`Store::admit`] gives.
#[derive(Debug)]
pub struct Admitted {
    /// The response, for whoever asked first.
    pub stored: Arc<Stored>,
    /// Its content's writer.
    pub writer: Writer,
    /// A reader of the content from its first byte, attached before anything is written.
    pub reader: Option<ContentReader>,
}

/// Chunks of 4 to 64 KiB: a thousandth of the budget, so that a small one holds many chunks.
fn chunk_bytes_for(budget: u64) -> usize {
    let wanted = usize::try_from(budget / 1024).unwrap_or(usize::MAX);
    wanted.clamp(4 * 1024, 64 * 1024).next_power_of_two().min(64 * 1024)
}
