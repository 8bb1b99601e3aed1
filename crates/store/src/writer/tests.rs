//! Writers against a store: what is kept, what leaves, who waits.

use std::sync::Arc;
use std::task::{Context, Poll};

use super::{Abandoned, PASSING_CHUNK_BYTES_MIN};
use crate::content::{ABORT_DROPPED, Aborted};
use crate::key::Key;
use crate::samples::{Bell, admission, bytes_of, drain, idle, pass, write};
use crate::store::{Admission, Admitted, Store};

const CHUNK: usize = 4096;
const WINDOW: usize = 4 * CHUNK;

fn admit(store: &Arc<Store>, key: &[u8], declared_length: Option<u64>) -> Admitted {
    let key = Key::new(key);
    let generation = store.generation(&key);
    store.admit(key, Admission { declared_length, ..admission(generation) })
}

fn is_found(store: &Store, key: &[u8]) -> bool {
    let reader = store.reader().expect("a place is free");
    store.lookup(&reader.turn(), key).is_some()
}

#[test]
fn finished_content_is_found_and_has_every_byte() {
    for (len, declares) in [(0, true), (0, false), (1, false), (3 * CHUNK + 7, true)] {
        let store = Store::new(1 << 20, 1);
        let text = bytes_of(1, 0, len);
        let declared = declares.then_some(len as u64);
        let Admitted { stored, mut writer, reader } = admit(&store, b"/", declared);
        assert!(is_found(&store, b"/"), "while it is being written");
        assert_eq!(write(&mut writer, &text), Ok(len));
        assert_eq!(writer.written(), len as u64);
        writer.finish(b"");
        assert_eq!(drain(&mut reader.expect("attached")), (text, Some(Ok(()))));
        assert_eq!(stored.content.complete_len(), Some(len as u64));
        assert_eq!(store.usage().content, len as u64, "the last chunk is exact");
        assert!(is_found(&store, b"/"));
    }
}

#[test]
fn a_writer_that_ends_early_takes_its_response_out() {
    for code in [Some(5), None] {
        let store = Store::new(1 << 20, 1);
        let Admitted { stored, mut writer, reader } = admit(&store, b"/", Some(10));
        assert_eq!(write(&mut writer, b"text"), Ok(4));
        match code {
            Some(code) => writer.abort(code),
            None => drop(writer),
        }
        assert!(!is_found(&store, b"/") && !stored.is_indexed());
        let outcome = Some(Err(Aborted(code.unwrap_or(ABORT_DROPPED))));
        assert_eq!(drain(&mut reader.expect("attached")), (b"text".to_vec(), outcome));
        assert_eq!(store.usage().content, 0);
    }
}

#[test]
fn a_response_of_another_length_than_declared_is_not_reused() {
    for declared in [0, 3, CHUNK as u64, 3 * CHUNK as u64] {
        let store = Store::new(1 << 20, 1);
        let text = bytes_of(1, 0, 2 * CHUNK + 1);
        let Admitted { mut writer, reader, .. } = admit(&store, b"/", Some(declared));
        assert_eq!(write(&mut writer, &text), Ok(text.len()));
        writer.finish(b"");
        assert!(!is_found(&store, b"/"));
        assert_eq!(drain(&mut reader.expect("attached")), (text, Some(Ok(()))));
    }
}

#[test]
fn a_response_that_the_budget_has_no_room_for_passes_through() {
    let limit = 64 << 10;
    for declares in [true, false] {
        let store = Store::new(limit as u64, 1);
        let text = bytes_of(1, 0, 4 * limit);
        let declared = declares.then_some(text.len() as u64);
        let Admitted { stored, mut writer, reader } = admit(&store, b"/", declared);
        let mut reader = reader.expect("attached");
        assert_eq!(stored.is_indexed(), !declares, "too large, as far as is known");
        let mut seen = Vec::new();
        for part in text.chunks(limit / 4) {
            seen.extend(pass(&mut writer, &mut reader, part));
            assert!(store.usage().content <= limit as u64);
        }
        assert!(!stored.is_indexed() && !is_found(&store, b"/"));
        writer.finish(b"");
        seen.extend(drain(&mut reader).0);
        assert_eq!(seen, text);
        assert_eq!(store.usage().content, 0);
    }
}

#[test]
fn a_writer_with_nothing_to_write_learns_that_its_last_reader_has_gone() {
    let store = Store::new(1 << 20, 1);
    let (writer, reader) = store.pipe();
    let (bell, waker) = Bell::new();
    let cx = Context::from_waker(&waker);
    assert!(writer.poll_abandoned(&cx).is_pending());
    drop(reader);
    assert_eq!(bell.rang(), 1);
    assert_eq!(writer.poll_abandoned(&cx), Poll::Ready(Abandoned));
    let Admitted { writer, reader, .. } = admit(&store, b"/kept", None);
    drop(reader);
    assert!(writer.poll_abandoned(&cx).is_pending(), "kept content is for those to come");
}

#[test]
fn an_endless_response_evicts_half_of_the_others_at_most() {
    let limit: usize = 1 << 20;
    let store = Store::new(limit as u64, 1);
    let small = bytes_of(2, 0, limit / 64);
    let keys: Vec<String> = (0..24).map(|number| format!("/{number}")).collect();
    for key in &keys {
        let Admitted { mut writer, .. } = admit(&store, key.as_bytes(), Some(small.len() as u64));
        assert_eq!(write(&mut writer, &small), Ok(small.len()));
        writer.finish(b"");
    }
    let Admitted { stored, mut writer, reader } = admit(&store, b"/endless", None);
    let mut reader = reader.expect("attached");
    for _ in 0..8 {
        pass(&mut writer, &mut reader, &bytes_of(1, 0, limit / 4));
    }
    assert!(!stored.is_indexed());
    let left = keys.iter().filter(|key| is_found(&store, key.as_bytes())).count();
    assert!(left >= 16, "{left} of 24 are left");
}

#[test]
fn a_response_that_left_the_index_goes_on_for_its_readers_alone() {
    let leaves: [fn(&Arc<Store>); 2] = [
        |store| assert!(store.invalidate(b"/")),
        |store| admit(store, b"/", Some(0)).writer.finish(b""),
    ];
    for leave in leaves {
        let store = Store::new(1 << 20, 1);
        let Admitted { mut writer, reader, .. } = admit(&store, b"/", None);
        let mut reader = reader.expect("attached");
        let text = bytes_of(1, 0, 6 * WINDOW);
        assert_eq!(write(&mut writer, &text[..WINDOW]), Ok(WINDOW));
        leave(&store);
        let mut seen = pass(&mut writer, &mut reader, &text[WINDOW..]);
        assert!(store.usage().content <= WINDOW as u64, "only what its reader has before it");
        seen.extend(drain(&mut reader).0);
        assert_eq!(seen, text);
        drop(reader);
        assert_eq!(write(&mut writer, b"more"), Err(Abandoned));
    }
}

#[test]
fn an_upload_waits_for_its_reader_and_is_woken_by_it() {
    let store = Store::new(1 << 20, 1);
    let (mut writer, reader) = store.pipe();
    let mut reader = reader.expect("attached");
    let (bell, waker) = Bell::new();
    let cx = Context::from_waker(&waker);
    assert_eq!(writer.poll_append(&cx, b""), Poll::Ready(Ok(0)));
    let text = bytes_of(1, 0, 2 * WINDOW);
    assert_eq!(write(&mut writer, &text), Ok(WINDOW));
    assert!(writer.poll_append(&cx, &text[WINDOW..]).is_pending());
    assert_eq!(bell.rang(), 0);
    assert_eq!(drain(&mut reader).0, &text[..WINDOW]);
    assert!(bell.rang() > 0);
    assert_eq!(write(&mut writer, &text[WINDOW..]), Ok(WINDOW));
    assert!(writer.poll_append(&cx, b"more").is_pending());
    drop(reader);
    assert_eq!(bell.rang(), 1);
    assert_eq!(writer.poll_append(&cx, b"more"), Poll::Ready(Err(Abandoned)));
}

#[test]
fn single_bytes_do_not_become_chunks() {
    let store = Store::new(1 << 20, 1);
    let (mut writer, reader) = store.pipe();
    let (mut quick, mut slow) = (reader.expect("attached"), store_reader(&writer));
    let text = bytes_of(1, 0, WINDOW - CHUNK);
    for byte in text.chunks(1) {
        assert_eq!(write(&mut writer, byte), Ok(1));
        assert_eq!(drain(&mut quick).0, byte, "a quick reader has it at once");
    }
    let used = store.usage().content;
    assert_eq!(used, text.len() as u64, "what the slow one has before it, and nothing else");
    let first = crate::samples::piece(&mut slow);
    assert!(first.len() >= PASSING_CHUNK_BYTES_MIN, "pieces of {} B", first.len());
    assert_eq!(drain(&mut slow).0, text);
    assert_eq!(store.usage().content, 0);
}

fn store_reader(writer: &super::Writer) -> crate::content::ContentReader {
    writer.content.reader(0).expect("nothing was passed yet")
}

#[test]
fn no_exchange_waits_for_another_when_the_budget_is_spent() {
    let limit = 4 * CHUNK;
    let store = Store::new(limit as u64, 1);
    let text = bytes_of(1, 0, 3 * WINDOW);
    let mut pipes: Vec<_> = (0..8).map(|_| store.pipe()).collect();
    for (writer, _) in &mut pipes {
        // Nobody reads yet: the first take all there is, and each of the others one chunk.
        assert!(write(writer, &text).expect("has a reader") >= CHUNK);
        assert!(store.usage().content <= (limit + pipes_beyond(8)) as u64);
    }
    for (writer, reader) in &mut pipes {
        let reader = reader.as_mut().expect("attached");
        let from = usize::try_from(writer.written()).expect("short");
        let mut seen = drain(reader).0;
        seen.extend(pass(writer, reader, &text[from..]));
        assert_eq!(seen.len(), text.len());
        assert_eq!(seen, text);
    }
    assert_eq!(store.usage().content, 0);
    assert!(pipes[0].0.poll_append(&idle(), b"x").is_ready());
}

/// Bytes that so many exchanges may have beyond the limit: a chunk each.
const fn pipes_beyond(count: usize) -> usize {
    count * CHUNK
}
