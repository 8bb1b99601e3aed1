//! The index as its callers see it: what is found, when values are dropped, what is refused; and
//! real threads over the same keys. The interleavings proper are tried in `loom_tests`.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;

use super::{Change, Index, Table};
use crate::turn::{Reader, Turns};

/// How often a test that tries many things tries: Miri is slow and as strict the first time.
const fn rounds(many: u64, under_miri: u64) -> u64 {
    if cfg!(miri) { under_miri } else { many }
}

fn index_and_reader<V: Send + Sync>() -> (Index<V>, Reader) {
    let turns = Turns::new(2);
    let reader = turns.reader().expect("a place is free");
    (Index::new(turns), reader)
}

fn hash_of(key: &[u8]) -> u64 {
    foldhash::fast::FixedState::default().hash_one(key)
}

fn put<V: Send + Sync>(index: &Index<V>, key: &[u8], value: V) {
    index.update(hash_of(key), key, |_| (Change::Put(value), ()));
}

fn remove<V: Send + Sync>(index: &Index<V>, key: &[u8]) {
    index.update(hash_of(key), key, |_| (Change::Remove, ()));
}

#[test]
fn finds_what_was_put_replaced_or_removed_last() {
    let (index, reader) = index_and_reader();
    let turn = reader.turn();
    let seen = |key: &[u8]| index.lookup(&turn, hash_of(key), key).copied();
    assert_eq!(seen(b"/"), None);
    put(&index, b"/", 1);
    put(&index, b"", 2);
    assert_eq!((seen(b"/"), seen(b""), index.len()), (Some(1), Some(2), 2));
    put(&index, b"/", 3);
    assert_eq!((seen(b"/"), index.len()), (Some(3), 2));
    let told = index.update(hash_of(b"/"), b"/", |value| (Change::Keep, value.copied()));
    assert_eq!((told, seen(b"/")), (Some(3), Some(3)));
    remove(&index, b"/");
    remove(&index, b"/never-there");
    assert_eq!((seen(b"/"), seen(b""), index.len()), (None, Some(2), 1));
    remove(&index, b"");
    assert!(index.is_empty());
}

#[test]
fn keys_with_equal_hashes_are_different_keys() {
    let (index, reader) = index_and_reader();
    let turn = reader.turn();
    let keys: [&[u8]; 5] = [b"a", b"b", b"ab", b"", b"a\0"];
    for (number, key) in keys.iter().enumerate() {
        index.update(7, key, |_| (Change::Put(number), ()));
    }
    index.update(7, keys[1], |_| (Change::Remove, ()));
    for (number, key) in keys.iter().enumerate() {
        let expected = (number != 1).then_some(number);
        assert_eq!(index.lookup(&turn, 7, key).copied(), expected, "{key:?}");
    }
    assert_eq!(index.lookup(&turn, 7, b"c"), None);
}

/// Whether the table keeps what its header promises: counts that agree, a quarter empty, and every
/// entry found from its home slot.
fn assert_sound(index: &Index<u64>) {
    for shard in &index.shards {
        let writer = shard.lock();
        let table: &Table<u64> = shard.table_locked(&writer);
        let empty = table.slots.iter().filter(|slot| slot.load(Ordering::Relaxed).is_null());
        assert_eq!(writer.used, table.slots.len() - empty.count());
        assert_eq!(writer.live, table.entries().count());
        assert!(writer.used <= table.slots.len() / 4 * 3);
    }
}

#[test]
fn agrees_with_a_plain_map_whatever_the_order_of_updates() {
    // Few hashes, so that long runs of slots are shared, removed from and filled again.
    for (hashes, keys) in [(1, 5), (3, 12), (64, 300), (u64::MAX, 3000)] {
        let (index, reader) = index_and_reader();
        let mut plain = HashMap::new();
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        for step in 0..rounds(20_000, 300) {
            random = hash_of(&random.to_le_bytes());
            let number = random % keys;
            let key = number.to_string();
            let hash = hash_of(key.as_bytes()) % hashes;
            if random >> 32 & 1 == 0 {
                index.update(hash, key.as_bytes(), |_| (Change::Put(step), ()));
                plain.insert(key, step);
            } else {
                index.update(hash, key.as_bytes(), |_| (Change::Remove, ()));
                plain.remove(&key);
            }
            reader.quiesce();
            if step % 500 == 0 {
                assert_sound(&index);
            }
        }
        assert_eq!(index.len(), plain.len());
        let turn = reader.turn();
        for number in 0..keys {
            let key = number.to_string();
            let hash = hash_of(key.as_bytes()) % hashes;
            let found = index.lookup(&turn, hash, key.as_bytes());
            assert_eq!(found, plain.get(&key), "key {key} of {keys}, {hashes} hashes");
        }
        let mut shown = HashMap::new();
        index.for_each(|key, value| {
            let key = String::from_utf8(key.to_vec()).expect("keys are decimal");
            assert_eq!(shown.insert(key, *value), None);
        });
        assert_eq!(shown, plain);
    }
}

#[test]
fn a_table_grows_with_its_entries_and_shrinks_again() {
    let (index, reader) = index_and_reader();
    let slots = |index: &Index<u64>| -> usize {
        let of_shard = |shard: &super::Shard<u64>| shard.table_locked(&shard.lock()).slots.len();
        index.shards.iter().map(of_shard).sum()
    };
    let many = usize::try_from(rounds(20_000, 400)).expect("small");
    let few = many / 20;
    let keys: Vec<_> = (0..many).map(|number| number.to_le_bytes()).collect();
    for key in &keys {
        put(&index, key, 0);
    }
    let slots_of_empty = 64 * 8;
    let full = slots(&index);
    assert!((many * 4 / 3..=many * 8 / 3 + slots_of_empty).contains(&full), "{full} slots");
    for key in &keys[few..] {
        remove(&index, key);
        reader.quiesce();
    }
    let left = slots(&index);
    assert!(left <= few * 4 + slots_of_empty, "{left} slots of {full}");
    assert_eq!(index.len(), few);
    assert_sound(&index);
}

#[test]
fn a_value_lives_as_long_as_a_turn_may_see_it() {
    let (index, reader) = index_and_reader();
    let value = Arc::new(());
    put(&index, b"key", Arc::clone(&value));
    let turn = reader.turn();
    let seen = index.lookup(&turn, hash_of(b"key"), b"key").expect("was put");
    remove(&index, b"key");
    let other_turn = reader.turn();
    drop(other_turn);
    reader.quiesce();
    index.reclaim();
    assert_eq!((Arc::strong_count(seen), index.retired()), (2, 1));
    drop(turn);
    index.reclaim();
    assert_eq!(Arc::strong_count(&value), 2, "the worker has not said that its turn has passed");
    reader.quiesce();
    index.reclaim();
    assert_eq!((Arc::strong_count(&value), index.retired()), (1, 0));
}

#[test]
fn who_is_offline_or_gone_holds_nothing_back() {
    let (index, reader) = index_and_reader();
    let value = Arc::new(());
    let replace = || put(&index, b"key", Arc::clone(&value));
    replace();
    replace();
    assert_eq!(Arc::strong_count(&value), 3, "an online reader might look at the old one");
    reader.offline();
    index.reclaim();
    assert_eq!(Arc::strong_count(&value), 2);
    replace();
    assert_eq!(Arc::strong_count(&value), 2, "freed at once, with nobody online");
    reader.online();
    replace();
    assert_eq!(Arc::strong_count(&value), 3);
    drop(reader);
    index.reclaim();
    assert_eq!(Arc::strong_count(&value), 2);
}

#[test]
fn an_update_frees_what_its_shard_retired_before() {
    let (index, reader) = index_and_reader();
    let value = Arc::new(());
    for _ in 0..100 {
        put(&index, b"key", Arc::clone(&value));
        reader.quiesce();
    }
    assert!(Arc::strong_count(&value) <= 3, "{} values alive", Arc::strong_count(&value));
    drop(index);
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn there_are_as_many_readers_as_places() {
    let turns = Turns::new(2);
    let (first, second) = (turns.reader(), turns.reader());
    assert!(first.is_some() && second.is_some() && turns.reader().is_none());
    drop(first);
    let again = turns.reader().expect("a place was given back");
    let _turn = again.turn();
}

#[test]
fn misuse_is_refused_loudly() {
    let (index, reader) = index_and_reader::<u64>();
    let (_other_index, stranger) = index_and_reader::<u64>();
    let refused = |misuse: &dyn Fn()| catch_unwind(AssertUnwindSafe(misuse)).is_err();
    assert!(refused(&|| assert_eq!(index.lookup(&stranger.turn(), 0, b""), None)));
    let turn = reader.turn();
    assert!(refused(&|| reader.offline()), "with a turn alive");
    drop(turn);
    reader.offline();
    assert!(refused(&|| drop(reader.turn())), "offline");
}

#[test]
fn a_panic_in_an_update_changes_nothing_and_blocks_nobody() {
    let (index, reader) = index_and_reader();
    put(&index, b"key", 1);
    let update = || index.update(hash_of(b"key"), b"key", |_| -> (Change<i32>, ()) { panic!() });
    assert!(catch_unwind(AssertUnwindSafe(update)).is_err());
    put(&index, b"other", 2);
    let turn = reader.turn();
    assert_eq!(index.lookup(&turn, hash_of(b"key"), b"key"), Some(&1));
    assert_eq!(index.len(), 2);
}

/// Asks the index something while it is being dropped.
struct Inquisitive(Weak<Index<Inquisitive>>, Arc<AtomicUsize>);

impl Drop for Inquisitive {
    fn drop(&mut self) {
        if let Some(index) = self.0.upgrade() {
            self.1.fetch_add(1 + index.len(), Ordering::Relaxed);
        }
    }
}

#[test]
fn a_value_may_use_the_index_while_it_is_dropped() {
    let index = Arc::new(Index::new(Turns::new(0)));
    let answers = Arc::new(AtomicUsize::new(0));
    put(&index, b"key", Inquisitive(Arc::downgrade(&index), Arc::clone(&answers)));
    remove(&index, b"key");
    assert_eq!(answers.load(Ordering::Relaxed), 1);
}

/// A value that shows when it is looked at half made or after its end.
struct Version {
    number: u64,
    check: AtomicU64,
    dropped: &'static AtomicU64,
}

impl Version {
    fn number(&self) -> u64 {
        assert_eq!(self.check.load(Ordering::Relaxed), !self.number, "torn or dropped");
        self.number
    }
}

impl Drop for Version {
    fn drop(&mut self) {
        self.check.store(0, Ordering::Relaxed);
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Key 0 stays for ever, so that each lookup must find it; others come and go around it.
fn write_versions(index: &Index<Version>, writer: u64) -> u64 {
    let mut made = 0;
    for round in 1..=rounds(20_000, 60) {
        let key = hash_of(&(writer << 32 | round).to_le_bytes()) % 200;
        let go = key != 0 && round % 3 == 0;
        let bytes = key.to_le_bytes();
        made += index.update(hash_of(&bytes) % 1024, &bytes, |old| {
            if go {
                return (Change::Remove, 0);
            }
            let number = old.map_or(0, Version::number) + 1;
            let check = AtomicU64::new(!number);
            (Change::Put(Version { number, check, dropped: &DROPPED }), 1)
        });
    }
    made
}

fn read_versions(index: &Index<Version>, reader: &Reader, stop: &AtomicBool) {
    let mut last = 0;
    let mut lookups = 0_u64;
    while !stop.load(Ordering::Relaxed) || lookups < 100 {
        let turn = reader.turn();
        for key in 0..20_u64 {
            let bytes = key.to_le_bytes();
            let found = index.lookup(&turn, hash_of(&bytes) % 1024, &bytes);
            let number = found.map(Version::number);
            if key == 0 {
                let number = number.expect("key 0 is never removed");
                assert!(number >= last, "an older version came back");
                last = number;
            }
        }
        lookups += 1;
        drop(turn);
        reader.quiesce();
        if lookups.is_multiple_of(64) {
            reader.offline();
            reader.online();
        }
    }
}

#[test]
fn threads_find_whole_values_and_every_value_is_dropped_once() {
    let turns = Turns::new(2);
    let index = Index::new(Arc::clone(&turns));
    let stop = AtomicBool::new(false);
    let first = [0_u8; 8];
    let version = Version { number: 0, check: AtomicU64::new(!0), dropped: &DROPPED };
    index.update(hash_of(&first) % 1024, &first, |_| (Change::Put(version), ()));
    let made = thread::scope(|scope| {
        for _ in 0..2 {
            let (index, stop, reader) = (&index, &stop, turns.reader().expect("two places"));
            scope.spawn(move || read_versions(index, &reader, stop));
        }
        let index = &index;
        let writers: Vec<_> =
            (0..2).map(|writer| scope.spawn(move || write_versions(index, writer))).collect();
        let made: u64 = writers.into_iter().map(|writer| writer.join().expect("writes")).sum();
        stop.store(true, Ordering::Relaxed);
        made
    });
    let alive = u64::try_from(index.len() + index.retired()).expect("few");
    let tables_at_most = 64 * 10;
    let dropped = DROPPED.load(Ordering::Relaxed);
    assert!(made + 1 - dropped <= alive && alive <= made + 1 - dropped + tables_at_most);
    drop(index);
    assert_eq!(DROPPED.load(Ordering::Relaxed), made + 1);
}

#[test]
fn a_reference_may_wait_in_another_thread_while_its_turn_lives() {
    let (index, reader) = index_and_reader();
    put(&index, b"key", OnceLock::new());
    let turn = reader.turn();
    let seen = index.lookup(&turn, hash_of(b"key"), b"key").expect("was put");
    remove(&index, b"key");
    index.reclaim();
    thread::scope(|scope| scope.spawn(|| seen.set(5)).join().expect("sets").expect("first"));
    assert_eq!(seen.get(), Some(&5));
}
