//! Every interleaving of small cases, by loom's model of the memory orderings:
//! `RUSTFLAGS="--cfg loom" cargo test -p store --release --lib loom`
//!
//! A value is a cell whose accesses loom checks: read by lookups, written by its drop. A free that
//! is not ordered after every read is reported as a race even where the bytes would still be right.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use super::{Change, Index};
use crate::turn::{Reader, Turns};

struct Probe {
    number: u64,
    seen: UnsafeCell<()>,
}

// SAFETY: that the cell is shared rightly is what loom checks; nothing reads or writes through it.
unsafe impl Sync for Probe {}

impl Probe {
    fn new(number: u64) -> Self {
        Self { number, seen: UnsafeCell::new(()) }
    }

    fn number(&self) -> u64 {
        self.seen.with(|_| ());
        self.number
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.seen.with_mut(|_| ());
    }
}

/// All keys have the same home slot.
const HASH: u64 = 0;

fn put(index: &Index<Probe>, key: &[u8], number: u64) {
    index.update(HASH, key, |_| (Change::Put(Probe::new(number)), ()));
}

fn remove(index: &Index<Probe>, key: &[u8]) {
    index.update(HASH, key, |_| (Change::Remove, ()));
}

fn number_in_a_turn(index: &Index<Probe>, reader: &Reader, key: &[u8]) -> Option<u64> {
    let turn = reader.turn();
    index.lookup(&turn, HASH, key).map(Probe::number)
}

/// Runs `read` on a thread with a reader and `write` on the main one, over an index with `keys`.
fn check(
    keys: &'static [&'static [u8]],
    read: impl Fn(&Index<Probe>, &Arc<Turns>, Reader) + Copy + Send + Sync + 'static,
    write: impl Fn(&Index<Probe>) + Send + Sync + 'static,
) {
    loom::model(move || {
        let turns = Turns::new(1);
        let index = Arc::new(Index::new(Arc::clone(&turns)));
        for (number, key) in (0..).zip(keys) {
            put(&index, key, number);
        }
        let reader = turns.reader().expect("the only one");
        let reading = thread::spawn({
            let index = Arc::clone(&index);
            move || read(&index, &turns, reader)
        });
        write(&index);
        reading.join().expect("what the reader asserts");
        index.reclaim();
        assert_eq!(index.retired(), 0, "with no reader left nothing is held back");
    });
}

#[test]
fn loom_a_replaced_value_outlives_the_turn_that_sees_it() {
    check(
        &[b"a"],
        |index, _, reader| {
            let first = number_in_a_turn(index, &reader, b"a").expect("always there");
            reader.quiesce();
            let second = number_in_a_turn(index, &reader, b"a").expect("always there");
            assert!(second >= first, "an older value came back");
            reader.quiesce();
        },
        |index| {
            put(index, b"a", 1);
            put(index, b"a", 2);
        },
    );
}

#[test]
fn loom_a_removed_value_outlives_the_turn_that_sees_it() {
    check(
        &[b"a"],
        |index, _, reader| {
            number_in_a_turn(index, &reader, b"a");
            reader.quiesce();
            number_in_a_turn(index, &reader, b"a");
        },
        |index| {
            remove(index, b"a");
            index.reclaim();
        },
    );
}

#[test]
fn loom_a_reader_that_comes_online_sees_only_what_lives() {
    check(
        &[b"a"],
        |index, _, reader| {
            reader.offline();
            reader.online();
            number_in_a_turn(index, &reader, b"a");
        },
        |index| {
            remove(index, b"a");
            index.reclaim();
        },
    );
}

#[test]
fn loom_a_new_reader_in_an_old_place_sees_only_what_lives() {
    check(
        &[b"a"],
        |index, turns, reader| {
            number_in_a_turn(index, &reader, b"a");
            drop(reader);
            let reader = turns.reader().expect("given back");
            number_in_a_turn(index, &reader, b"a");
        },
        |index| {
            remove(index, b"a");
            index.reclaim();
        },
    );
}

#[test]
fn loom_a_key_is_found_while_its_table_grows() {
    check(
        &[b"a", b"b", b"c"],
        |index, _, reader| {
            assert_eq!(number_in_a_turn(index, &reader, b"c"), Some(2));
            reader.quiesce();
            assert_eq!(number_in_a_turn(index, &reader, b"c"), Some(2));
        },
        |index| {
            put(index, b"d", 3);
            index.reclaim();
        },
    );
}

#[test]
fn loom_a_key_is_found_while_slots_before_and_behind_it_change() {
    check(
        &[b"a", b"b", b"c"],
        |index, _, reader| {
            assert_eq!(number_in_a_turn(index, &reader, b"b"), Some(1));
            let number = number_in_a_turn(index, &reader, b"d");
            assert!(matches!(number, None | Some(4)));
        },
        |index| {
            remove(index, b"a");
            remove(index, b"c");
            put(index, b"d", 4);
        },
    );
}

#[test]
fn loom_writers_take_turns_and_free_for_each_other() {
    loom::model(|| {
        let turns = Turns::new(1);
        let index = Arc::new(Index::new(Arc::clone(&turns)));
        put(&index, b"a", 0);
        let reader = turns.reader().expect("the only one");
        let count = |index: &Index<Probe>| {
            index.update(HASH, b"a", |old| {
                let number = old.map_or(0, Probe::number) + 1;
                (Change::Put(Probe::new(number)), ())
            });
        };
        let other = thread::spawn({
            let index = Arc::clone(&index);
            move || count(&index)
        });
        number_in_a_turn(&index, &reader, b"a");
        reader.quiesce();
        count(&index);
        other.join().expect("counts");
        assert_eq!(number_in_a_turn(&index, &reader, b"a"), Some(2));
    });
}
