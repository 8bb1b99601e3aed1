//! The store as the hops see it: what a lookup finds, what leaves, what is in use.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{Admission, Admitted, Store, Usage, VARIANTS_MAX};
use crate::flight::Boarding;
use crate::key::Key;
use crate::samples::{Seeded, admission, byte_at, bytes_of, drain, variant, with_request, write};
use crate::stored::{Head, Stored};
use crate::turn::Reader;

/// Everything that a lookup finds, newest first.
fn found(store: &Store, reader: &Reader, key: &[u8]) -> Vec<Arc<Stored>> {
    let turn = reader.turn();
    store.lookup(&turn, key).map(|entry| entry.variants().to_vec()).unwrap_or_default()
}

fn admit(store: &Arc<Store>, key: &[u8]) -> Admitted {
    let key = Key::new(key);
    let generation = store.generation(&key);
    store.admit(key, admission(generation))
}

/// Stores `len` bytes of content `number` under `key`.
fn put(store: &Arc<Store>, key: &[u8], number: u64, len: usize) -> Arc<Stored> {
    let Admitted { stored, mut writer, .. } = admit(store, key);
    assert_eq!(write(&mut writer, &bytes_of(number, 0, len)), Ok(len));
    writer.finish(b"");
    stored
}

fn in_use(usage: Usage) -> u64 {
    usage.content + usage.heads + usage.index
}

#[test]
fn variants_are_found_newest_first_and_by_what_the_request_says() {
    let store = Store::new(1 << 20, 1);
    let reader = store.reader().expect("a place is free");
    for language in ["de", "fr", "de"] {
        let admission = Admission { variant: variant(language), ..admission(0) };
        store.admit(Key::new(b"/"), admission).writer.finish(b"");
    }
    let turn = reader.turn();
    let entry = store.lookup(&turn, b"/").expect("stored");
    let seen: Vec<_> = entry.variants().iter().map(|stored| stored.variant.clone()).collect();
    assert_eq!(seen, [variant("de"), variant("fr")], "the same variant is replaced");
    for (language, expected) in [("de", Some(0)), ("fr", Some(1)), ("it", None)] {
        let selected = with_request(&format!("Accept-Language: {language}\r\n"), |request| {
            entry.select(request).map(Arc::as_ptr)
        });
        assert_eq!(selected, expected.map(|at: usize| Arc::as_ptr(&entry.variants()[at])));
    }
}

#[test]
fn the_oldest_variant_leaves_when_there_are_too_many() {
    let store = Store::new(1 << 20, 1);
    let reader = store.reader().expect("a place is free");
    for number in 0..VARIANTS_MAX + 3 {
        let admission = Admission { variant: variant(&format!("x{number}")), ..admission(0) };
        store.admit(Key::new(b"/"), admission).writer.finish(b"");
    }
    let variants = found(&store, &reader, b"/");
    assert_eq!(variants.len(), VARIANTS_MAX);
    assert_eq!(variants[0].variant, variant(&format!("x{}", VARIANTS_MAX + 2)));
    assert_eq!(variants[VARIANTS_MAX - 1].variant, variant("x3"));
}

/// RFC 9111 section 4.4: an answer to a request that was sent before is not reused either.
#[test]
fn what_was_asked_for_before_an_invalidation_is_not_stored_after_it() {
    let store = Store::new(1 << 20, 1);
    let reader = store.reader().expect("a place is free");
    let key = Key::new(b"/");
    let sent = store.generation(&key);
    assert!(!store.invalidate(b"/"), "nothing is there yet");
    let Admitted { stored, writer, .. } = store.admit(key.clone(), admission(sent));
    assert!(!stored.is_indexed());
    writer.finish(b"");
    assert_eq!(found(&store, &reader, b"/").len(), 0);

    let Admitted { stored, writer, .. } = admit(&store, b"/");
    assert!(store.invalidate(b"/"), "in the middle of the fetch");
    assert!(!stored.is_indexed());
    writer.finish(b"");
    assert_eq!(found(&store, &reader, b"/").len(), 0);

    put(&store, b"/", 1, 10);
    let sent = store.generation(&key);
    let old = found(&store, &reader, b"/").remove(0);
    assert!(store.invalidate(b"/"), "while it is being validated");
    let updated = store.freshen(&old, admission(sent)).expect("room");
    assert!(!updated.is_indexed());
    assert_eq!(found(&store, &reader, b"/").len(), 0);
    assert_eq!(updated.content.complete_piece(0), Some(&bytes_of(1, 0, 10)[..]));
}

#[test]
fn an_invalidation_between_admission_and_index_is_seen() {
    let store = Store::new(1 << 20, 1);
    let reader = store.reader().expect("a place is free");
    let stored = put(&store, b"/", 1, 10);
    assert!(store.remove(&stored));
    let generation = store.generation(&stored.key);
    store.insert(&stored, generation, None);
    assert_eq!(found(&store, &reader, b"/").len(), 1);
    store.invalidate(b"/");
    store.insert(&stored, generation, None);
    assert_eq!(found(&store, &reader, b"/").len(), 0);
}

#[test]
fn what_may_not_be_reused_passes_through() {
    let store = Store::new(1 << 20, 1);
    let reader = store.reader().expect("a place is free");
    let admission = Admission { freshness: None, ..admission(0) };
    let Admitted { stored, mut writer, reader: content } = store.admit(Key::new(b"/"), admission);
    assert!(!stored.is_indexed() && !stored.content.is_joinable());
    assert_eq!(found(&store, &reader, b"/").len(), 0);
    assert_eq!(write(&mut writer, b"text"), Ok(4));
    writer.finish(b"");
    assert_eq!(drain(&mut content.expect("attached")).0, b"text");
    assert_eq!(in_use(store.usage()), 0);
}

/// RFC 9111 section 4.3.4.
#[test]
fn freshening_swaps_the_record_and_shares_the_content() {
    let limit = 1 << 20;
    let store = Store::new(limit, 1);
    let reader = store.reader().expect("a place is free");
    let old = put(&store, b"/", 1, 10_000);
    let before = store.usage();
    let head = Head::new(200, b"Content-Type: text/html\r\n".to_vec());
    // The updated Vary makes it another variant; the old one is replaced all the same.
    let updated = Admission { head, variant: variant("de"), ..admission(0) };
    let updated = store.freshen(&old, updated).expect("room");
    assert!(updated.is_indexed() && !old.is_indexed());
    let variants = found(&store, &reader, b"/");
    assert_eq!(variants.len(), 1);
    assert!(Arc::ptr_eq(&variants[0], &updated));
    assert!(Arc::ptr_eq(&old.content, &updated.content));
    assert_eq!(updated.head.lines(), b"Content-Type: text/html\r\n");

    assert!(!store.remove(&old), "a late remover of the old record does no harm");
    assert!(updated.is_indexed());
    let beside_content = limit - limit / crate::budget::HEADROOM_SHARE - 10_000;
    assert!(store.budget.lacks(beside_content), "the content has not left with its old record");
    drop((old, variants));
    reader.quiesce();
    store.reclaim();
    let after = store.usage();
    assert_eq!((after.content, after.heads), (before.content, before.heads - 1));
    assert_eq!(after.index, before.index + updated.variant.bytes().len() as u64);
}

#[test]
fn what_has_left_or_is_being_written_is_not_freshened_into_the_index() {
    let store = Store::new(1 << 20, 1);
    let reader = store.reader().expect("a place is free");
    let writing = admit(&store, b"/");
    assert!(store.freshen(&writing.stored, admission(0)).is_none());
    writing.writer.abort(1);
    assert!(store.freshen(&writing.stored, admission(0)).is_none());

    for leave in [true, false] {
        let old = put(&store, b"/", 1, 10_000);
        let newer = if leave {
            assert!(store.remove(&old));
            None
        } else {
            Some(put(&store, b"/", 2, 10))
        };
        let updated = store.freshen(&old, admission(0)).expect("room");
        assert!(!updated.is_indexed());
        let variants = found(&store, &reader, b"/");
        let newest = variants.first().map(Arc::as_ptr);
        assert_eq!(newest, newer.as_ref().map(Arc::as_ptr), "nothing newer is replaced");
        let complete = updated.content.complete_piece(0).expect("shared");
        assert_eq!(complete[..10], bytes_of(1, 0, 10), "good for who has it");
    }
}

#[test]
fn a_full_store_evicts_the_oldest_that_was_not_hit() {
    let limit = 1 << 20;
    let store = Store::new(limit, 1);
    let reader = store.reader().expect("a place is free");
    for number in 0..16_u8 {
        put(&store, &[number], 0, 60_000);
    }
    assert_eq!(store.usage().evicted, 0);
    found(&store, &reader, &[0])[0].touch();
    found(&store, &reader, &[2])[0].touch();
    let mut left = Vec::new();
    for number in 16..19_u8 {
        put(&store, &[number], 0, 60_000);
        reader.quiesce();
        let is_gone = |old: &u8| found(&store, &reader, &[*old]).is_empty();
        left = (0..=number).filter(is_gone).collect();
        assert_eq!(left.len(), usize::from(number) - 15, "one for one");
    }
    assert_eq!(left, [1, 3, 4]);
    assert_eq!(store.usage().evicted, 3);
    assert!(in_use(store.usage()) <= limit);
}

#[test]
fn what_readers_still_need_is_in_use_and_not_evicted_for_again() {
    let limit = 64 << 10;
    let store = Store::new(limit, 1);
    let reader = store.reader().expect("a place is free");
    for number in 0..5_u8 {
        put(&store, &[number], 0, 9_000);
    }
    let pinned = found(&store, &reader, &[0]).remove(0);
    let mut slow = pinned.content.reader(0).expect("complete");
    drop(pinned);
    for number in 5..50_u8 {
        put_or_pass(&store, &[number], 9_000);
        reader.quiesce();
        assert!(in_use(store.usage()) <= limit);
        assert!(store.usage().keys >= 4, "evicting more would not free what is being read");
    }
    assert_eq!(found(&store, &reader, &[0]).len(), 0);
    assert_eq!(drain(&mut slow), (bytes_of(0, 0, 9_000), Some(Ok(()))));
}

/// Stores content 0 under `key` if there is room for it.
fn put_or_pass(store: &Arc<Store>, key: &[u8], len: usize) {
    let Admitted { mut writer, reader, .. } = admit(store, key);
    let mut reader = reader.expect("attached");
    crate::samples::pass(&mut writer, &mut reader, &bytes_of(0, 0, len));
    writer.finish(b"");
}

#[test]
fn evicted_bytes_come_back_when_every_worker_has_passed_a_turn() {
    let limit = 256 << 10;
    let store = Store::new(limit, 2);
    let (mine, other) = (store.reader().expect("free"), store.reader().expect("free"));
    for number in 0..200_u8 {
        put_or_pass(&store, &[number], 8_000);
        mine.quiesce();
        // The other worker is asleep in a turn for a while: nothing it may look at is freed.
        assert!(in_use(store.usage()) <= limit);
    }
    other.quiesce();
    let kept = (0..200_u8).filter(|key| !found(&store, &mine, &[*key]).is_empty()).count();
    assert!(kept > 20, "{kept}");
    for number in 0..200_u8 {
        put_or_pass(&store, &[number], 8_000);
        mine.quiesce();
        other.quiesce();
    }
    assert!(!found(&store, &mine, &[199]).is_empty(), "back to normal");
    for number in 0..200_u8 {
        store.invalidate(&[number]);
    }
    mine.quiesce();
    other.quiesce();
    store.reclaim();
    assert_eq!(in_use(store.usage()), 0);
}

#[test]
fn a_flight_is_counted_while_it_lasts() {
    let store = Store::new(1 << 20, 1);
    let Boarding::Lead(leader) = store.board(&Key::new(b"/")) else { panic!("nobody leads") };
    assert_eq!(store.usage().flights, 1);
    drop(leader);
    assert_eq!(store.usage().flights, 0);
}

#[test]
fn a_head_that_is_larger_than_the_budget_evicts_nothing() {
    let store = Store::new(16 << 10, 1);
    put(&store, b"/small", 1, 10);
    let head = Head::new(200, b"A: b\r\n".repeat(4_000));
    let Admitted { stored, .. } =
        store.admit(Key::new(b"/large"), Admission { head, ..admission(0) });
    assert!(!stored.is_indexed());
    assert_eq!((store.usage().keys, store.usage().evicted), (1, 0));
}

/// Two workers look up and read, two others admit, freshen, invalidate and evict, for a moment.
#[test]
fn threads_that_meet_see_whole_responses_and_lose_no_byte_of_the_budget() {
    const KEYS: usize = 256;
    let limit = 1 << 20;
    let store = Store::new(limit, 4);
    let is_over = AtomicBool::new(false);
    let (hits, failures) = (AtomicU64::new(0), AtomicU64::new(0));
    let until = Instant::now() + Duration::from_millis(if cfg!(miri) { 50 } else { 400 });
    thread::scope(|scope| {
        let (store, is_over, hits, failures) = (&store, &is_over, &hits, &failures);
        for seed in 0..2 {
            scope.spawn(move || {
                let reader = store.reader().expect("a place is free");
                let mut seeded = Seeded(seed);
                while !is_over.load(Ordering::Relaxed) {
                    let key = seeded.below(KEYS);
                    hits.fetch_add(check_hit(store, &reader, key), Ordering::Relaxed);
                    reader.quiesce();
                }
            });
        }
        let writers: Vec<_> = (2..4)
            .map(|seed| {
                scope.spawn(move || {
                    let reader = store.reader().expect("a place is free");
                    let mut seeded = Seeded(seed);
                    while Instant::now() < until {
                        change(store, &reader, &mut seeded, KEYS);
                        let used = in_use(store.usage());
                        let beyond = used.saturating_sub(limit + 2 * 4096);
                        failures.fetch_add(beyond, Ordering::Relaxed);
                        reader.quiesce();
                    }
                })
            })
            .collect();
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        assert!(ended.into_iter().all(|writer| writer.is_ok()));
    });
    assert_eq!(failures.into_inner(), 0, "more in use than the limit and a chunk for each writer");
    let (hits, evicted) = (hits.into_inner(), store.usage().evicted);
    let is_short = cfg!(miri);
    assert!(is_short || (hits > 0 && evicted > 0), "{hits} hits, {evicted} evicted");
    for key in 0..KEYS {
        store.invalidate(&key.to_be_bytes());
    }
    store.reclaim();
    assert_eq!((in_use(store.usage()), store.usage().keys), (0, 0));
    assert!(!store.budget.lacks(limit - limit / 16), "nothing is leaving for ever");
}

/// Looks a key up and compares all its content, whose length and number its status says.
fn check_hit(store: &Store, reader: &Reader, key: usize) -> u64 {
    let turn = reader.turn();
    let Some(entry) = store.lookup(&turn, &key.to_be_bytes()) else { return 0 };
    let stored = &entry.variants()[0];
    stored.touch();
    let number = u64::from(stored.head.status());
    let Some(len) = stored.content.complete_len() else {
        let Some(mut reader) = stored.content.reader(0) else { return 0 };
        let (seen, _) = drain(&mut reader);
        assert!(seen.iter().zip(0..).all(|(byte, at)| *byte == byte_at(number, at)));
        return 0;
    };
    assert_eq!(len, number * 20, "whole, or not complete");
    let mut position = 0;
    while let Some(piece) = stored.content.complete_piece(position) {
        assert_eq!(piece[0], byte_at(number, position));
        position += piece.len() as u64;
        assert_eq!(piece[piece.len() - 1], byte_at(number, position - 1));
    }
    assert_eq!(position, len);
    1
}

/// Admits, freshens or invalidates one key.
fn change(store: &Arc<Store>, reader: &Reader, seeded: &mut Seeded, keys: usize) {
    let bytes = seeded.below(keys).to_be_bytes();
    let key = Key::new(&bytes);
    let generation = store.generation(&key);
    match seeded.below(8) {
        0 => drop(store.invalidate(&bytes)),
        1 | 2 => {
            for old in found(store, reader, &bytes) {
                let head = Head::new(old.head.status(), b"A: b\r\n".to_vec());
                drop(store.freshen(&old, Admission { head, ..admission(generation) }));
            }
        }
        choice => {
            let status = u16::try_from(100 + seeded.below(900)).expect("three digits");
            let len = usize::from(status) * 20;
            let head = Head::new(status, Vec::new());
            let admission = Admission { head, ..admission(generation) };
            let Admitted { mut writer, reader, .. } = store.admit(key, admission);
            let mut reader = reader.expect("attached");
            let stop = if choice == 3 { seeded.below(len) } else { len };
            let text = bytes_of(u64::from(status), 0, stop);
            let mut seen = crate::samples::pass(&mut writer, &mut reader, &text);
            if stop == len {
                writer.finish(b"");
            }
            seen.extend(drain(&mut reader).0);
            assert!(seen == text, "its own reader gets every byte, stored or not");
        }
    }
}
