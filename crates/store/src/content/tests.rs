//! Content as its writer and its readers see it, without a store: chunks of 8 bytes.

use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use super::{Aborted, Append, COPIED_BYTES_MAX, Content, ContentReader, PASSING_WINDOW_CHUNKS};
use crate::budget::{Budget, Kind};
use crate::samples::{Bell, drain, idle, piece};

const CHUNK: usize = 8;
const WINDOW: usize = CHUNK * 4;

/// Content with the budget that its chunks are charged to.
struct Written {
    content: Arc<Content>,
    budget: Arc<Budget>,
}

impl Written {
    fn new(keep: bool) -> Self {
        Written { content: Content::new(keep, CHUNK), budget: Budget::new(1 << 20) }
    }

    fn reader(&self, position: u64) -> ContentReader {
        self.content.reader(position).expect("held from there on")
    }

    /// Appends until `bytes` are written or the content takes no more; returns how many were.
    fn write_some(&self, cx: &Context<'_>, bytes: &[u8]) -> (usize, Option<Append>) {
        let mut written = 0;
        while written < bytes.len() {
            match self.content.append(cx, &bytes[written..]) {
                Append::Taken(count) => written += count,
                Append::NeedsChunk(most) => {
                    let wanted = most.min(bytes.len() - written) as u64;
                    let charge = self.budget.charge(Kind::Content, wanted).expect("room");
                    self.content.grow(charge);
                }
                stop => return (written, Some(stop)),
            }
        }
        (written, None)
    }

    fn write(&self, bytes: &[u8]) {
        assert_eq!(self.write_some(&idle(), bytes), (bytes.len(), None));
    }

    fn used(&self) -> u64 {
        self.budget.total()
    }
}

fn text(len: usize) -> Vec<u8> {
    (b'a'..=b'z').cycle().take(len).collect()
}

#[test]
fn bytes_are_readable_as_soon_as_they_are_written() {
    for keep in [true, false] {
        let written = Written::new(keep);
        let mut reader = written.reader(0);
        let (bell, waker) = Bell::new();
        let cx = Context::from_waker(&waker);
        assert!(reader.poll_piece(&cx).is_pending());
        for (at, byte) in text(3 * CHUNK + 1).chunks(1).enumerate() {
            assert_eq!(bell.rang(), 0);
            written.write(byte);
            assert_eq!(bell.rang(), 1, "byte {at} wakes its reader");
            assert_eq!(piece(&mut reader), byte);
            assert_eq!(piece(&mut reader), byte, "until it is passed a byte is there");
            reader.advance(1);
            assert!(reader.poll_piece(&cx).is_pending());
        }
        written.content.finish(b"");
        assert_eq!(bell.rang(), 1, "the end wakes too");
        assert_eq!(drain(&mut reader), (Vec::new(), Some(Ok(()))));
        assert_eq!(reader.position(), 25);
    }
}

#[test]
fn whole_chunks_are_shared_and_never_copied() {
    for keep in [true, false] {
        let written = Written::new(keep);
        let (mut one, mut other) = (written.reader(0), written.reader(3));
        written.write(&text(2 * CHUNK));
        let (first, second) = (piece(&mut one), piece(&mut other));
        assert_eq!((&first[..], &second[..]), (&b"abcdefgh"[..], &b"defgh"[..]));
        assert_eq!(first[3..].as_ptr(), second.as_ptr());
        written.content.finish(b"");
        assert_eq!(piece(&mut other).as_ptr(), second.as_ptr(), "nor when it is complete");
        let complete = written.content.complete_piece(3).map(<[u8]>::as_ptr);
        assert_eq!(complete, keep.then_some(second.as_ptr()));
    }
}

#[test]
fn a_piece_of_an_unfinished_chunk_is_bounded() {
    let content = Content::new(true, 4 * COPIED_BYTES_MAX);
    let budget = Budget::new(1 << 30);
    let whole = 3 * COPIED_BYTES_MAX + 1;
    content.grow(budget.charge(Kind::Content, whole as u64).expect("room"));
    assert_eq!(content.append(&idle(), &text(whole)), Append::Taken(whole));
    let mut reader = content.reader(0).expect("kept");
    assert_eq!(piece(&mut reader).len(), COPIED_BYTES_MAX);
    assert_eq!(drain(&mut reader), (text(whole), None));
}

#[test]
fn complete_content_is_found_by_position() {
    for len in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 5 * CHUNK + 3] {
        let written = Written::new(true);
        let text = text(len);
        written.write(&text);
        assert_eq!(written.content.complete_piece(0), None, "not complete yet");
        assert_eq!(written.content.complete_len(), None);
        written.content.finish(b"");
        assert_eq!(written.content.complete_len(), Some(len as u64));
        for position in 0..len {
            let chunk_end = (position / CHUNK + 1) * CHUNK;
            let rest = written.content.complete_piece(position as u64).expect("in the middle");
            assert_eq!(rest, &text[position..chunk_end.min(len)]);
        }
        for beyond in [len as u64, len as u64 + 1, u64::MAX] {
            assert_eq!(written.content.complete_piece(beyond), None);
        }
        assert_eq!(written.used(), len as u64);
    }
}

#[test]
fn chunks_of_kept_content_are_whole_however_small_the_charges() {
    let written = Written::new(true);
    let text = text(3 * CHUNK + 5);
    // As when an origin sends more than it declared: the tail is filled up before another begins.
    for part in text.chunks(3) {
        written.write(part);
    }
    written.content.finish(b"");
    let mut seen = Vec::new();
    while let Some(rest) = written.content.complete_piece(seen.len() as u64) {
        seen.extend_from_slice(rest);
    }
    assert_eq!(seen, text);
    assert_eq!(written.used(), text.len() as u64);
}

#[test]
fn content_from_bytes_is_complete() {
    for len in [0_usize, 1, 100] {
        let content = Content::complete_from(text(len).into());
        assert_eq!(content.complete_len(), Some(len as u64));
        assert!(content.is_joinable());
        assert_eq!(content.complete_piece(0).unwrap_or_default(), text(len));
        let mut reader = content.reader(0).expect("complete");
        assert_eq!(drain(&mut reader), (text(len), Some(Ok(()))));
        assert_eq!(reader.trailers().len(), 0);
    }
}

#[test]
fn passing_content_holds_at_most_the_window_and_frees_what_was_passed() {
    let written = Written::new(false);
    let mut reader = written.reader(0);
    let (bell, waker) = Bell::new();
    let cx = Context::from_waker(&waker);
    let text = text(10 * WINDOW);
    assert_eq!(CHUNK as u64 * PASSING_WINDOW_CHUNKS, WINDOW as u64);
    let (mut sent, stop) = written.write_some(&cx, &text);
    assert_eq!((sent, stop), (WINDOW, Some(Append::Wait)));
    let mut seen = Vec::new();
    while seen.len() < text.len() {
        assert_eq!(bell.rang(), 0);
        let piece = piece(&mut reader);
        seen.extend_from_slice(&piece);
        reader.advance(piece.len() as u64);
        assert!(bell.rang() == 1 || sent == text.len(), "a chunk was passed: there is room");
        sent += written.write_some(&cx, &text[sent..]).0;
        assert!(written.used() <= WINDOW as u64);
    }
    assert_eq!(seen, text);
    assert_eq!(written.used(), 0, "all passed, nothing held");
    assert!(!written.content.is_joinable());
    written.content.finish(b"");
    assert_eq!(drain(&mut reader), (Vec::new(), Some(Ok(()))));
    assert_eq!(written.content.complete_len(), None, "what has passed is nowhere complete");
}

#[test]
fn the_slowest_reader_of_passing_content_sets_the_pace() {
    let written = Written::new(false);
    let (mut fast, mut slow) = (written.reader(0), written.reader(0));
    let (bell, waker) = Bell::new();
    let cx = Context::from_waker(&waker);
    let text = text(3 * WINDOW);
    let (sent, _) = written.write_some(&cx, &text);
    assert_eq!(drain(&mut fast).0, &text[..WINDOW]);
    assert_eq!((bell.rang(), written.used()), (0, WINDOW as u64), "the slow one has it before it");
    slow.advance(CHUNK as u64 - 1);
    assert_eq!(bell.rang(), 0, "half a chunk frees nothing");
    slow.advance(1);
    assert_eq!(bell.rang(), 1);
    let (more, stop) = written.write_some(&cx, &text[sent..]);
    assert_eq!((more, stop), (CHUNK, Some(Append::Wait)));
    drop(slow);
    assert_eq!(bell.rang(), 1, "its going leaves the fast one, which has to pass the last chunk");
    assert_eq!(written.used(), CHUNK as u64);
    assert_eq!(drain(&mut fast).0, &text[sent..sent + more]);
}

#[test]
fn the_writer_learns_that_nobody_reads_any_more() {
    let written = Written::new(false);
    let reader = written.reader(0);
    let (bell, waker) = Bell::new();
    let cx = Context::from_waker(&waker);
    written.write_some(&cx, &text(2 * WINDOW));
    assert_eq!(written.content.readers(), 1);
    drop(reader);
    assert_eq!(bell.rang(), 1);
    assert_eq!(written.content.append(&cx, b"x"), Append::Abandoned);
    assert_eq!((written.used(), written.content.readers()), (0, 0));
}

#[test]
fn a_position_that_was_freed_takes_no_reader() {
    let written = Written::new(false);
    let mut reader = written.reader(0);
    written.write(&text(2 * CHUNK));
    assert!(written.content.reader(0).is_some(), "nothing was passed yet");
    drain(&mut reader);
    assert!(written.content.reader(0).is_none());
    assert!(written.content.reader(2 * CHUNK as u64 - 1).is_none());
    let mut late = written.reader(2 * CHUNK as u64);
    written.write(b"on");
    assert_eq!(drain(&mut late).0, b"on");
}

#[test]
fn a_reader_beyond_what_was_written_waits_for_it() {
    for keep in [true, false] {
        let written = Written::new(keep);
        let mut ahead = written.reader(20);
        written.write(&text(18));
        assert_eq!(drain(&mut ahead), (Vec::new(), None));
        written.write(&text(26)[18..]);
        assert_eq!(drain(&mut ahead), (b"uvwxyz".to_vec(), None));
        written.content.finish(b"");
        assert_eq!(drain(&mut ahead).1, Some(Ok(())));
    }
    let written = Written::new(false);
    let mut far_ahead = written.reader(3 * WINDOW as u64);
    written.write(&text(3 * WINDOW + 1));
    assert_eq!(drain(&mut far_ahead).0.len(), 1, "what it does not need does not stop the writer");
}

#[test]
fn content_that_stops_being_kept_goes_on_for_its_readers() {
    let text = text(4 * WINDOW);
    for reached in [0, 3, CHUNK, 2 * CHUNK + 1, WINDOW] {
        let written = Written::new(true);
        let (mut ahead, mut behind) = (written.reader(0), written.reader(0));
        written.write(&text[..2 * WINDOW + 3]);
        drain(&mut ahead);
        behind.advance(reached as u64);
        written.content.stop_keeping();
        let freed = reached / CHUNK * CHUNK;
        assert_eq!(written.used(), (2 * WINDOW + 3 - freed) as u64, "behind {reached}");
        assert!(!written.content.is_joinable());
        assert_eq!(written.content.reader(0).is_some(), freed == 0);
        let (sent, stop) = written.write_some(&idle(), &text[2 * WINDOW + 3..]);
        assert_eq!(stop, Some(Append::Wait), "the slow one has more than a window before it");
        let so_far = 2 * WINDOW + 3 + sent;
        assert_eq!(drain(&mut behind).0, &text[reached..so_far]);
        drain(&mut ahead);
        written.write(&text[so_far..so_far + 1]);
        written.content.finish(b"");
        for reader in [&mut ahead, &mut behind] {
            assert_eq!(drain(reader), (vec![text[so_far]], Some(Ok(()))));
        }
        assert_eq!(written.used(), 0);
    }
}

#[test]
fn content_that_is_complete_stays_so() {
    let written = Written::new(true);
    let reader = written.reader(0);
    written.write(&text(20));
    written.content.finish(b"");
    written.content.stop_keeping();
    written.content.abort(Aborted(7));
    written.content.finish(b"Late: 1\r\n");
    drop(reader);
    assert_eq!(drain(&mut written.reader(0)), (text(20), Some(Ok(()))));
    assert_eq!(written.used(), 20);
}

#[test]
fn aborted_content_gives_what_came_and_then_the_code() {
    for keep in [true, false] {
        let written = Written::new(keep);
        let (mut waiting, mut behind) = (written.reader(0), written.reader(0));
        written.write(&text(CHUNK + 3));
        assert_eq!(drain(&mut waiting).1, None);
        let (bell, waker) = Bell::new();
        assert!(waiting.poll_piece(&Context::from_waker(&waker)).is_pending());
        written.content.abort(Aborted(7));
        written.content.abort(Aborted(8));
        assert_eq!(bell.rang(), 1);
        assert_eq!(drain(&mut waiting), (Vec::new(), Some(Err(Aborted(7)))));
        assert!(!written.content.is_joinable());
        assert!(written.content.reader(0).is_none(), "nobody joins a truncated answer");
        let outcome = Some(Err(Aborted(7)));
        assert_eq!(drain(&mut behind), (text(CHUNK + 3), outcome));
        assert_eq!((written.content.complete_len(), written.used()), (None, 0));
    }
}

#[test]
fn trailers_come_after_the_end() {
    for keep in [true, false] {
        let written = Written::new(keep);
        let mut reader = written.reader(0);
        written.write(b"text");
        assert_eq!(reader.trailers().len(), 0);
        written.content.finish(b"Digest: 1\r\n");
        drain(&mut reader);
        assert_eq!(&*reader.trailers(), b"Digest: 1\r\n");
    }
}

#[test]
fn places_of_readers_are_used_again() {
    let written = Written::new(true);
    let readers: Vec<_> = (0..3).map(|_| written.reader(0)).collect();
    written.write(b"text");
    for mut reader in readers {
        let mut next = written.reader(2);
        assert_eq!(drain(&mut reader).0, b"text");
        assert_eq!(drain(&mut next).0, b"xt");
    }
    assert_eq!(written.content.readers(), 0);
}

/// A waker that owns a reader, as that of a task which is dropped by being woken.
struct Owner(Mutex<Option<ContentReader>>);

impl Wake for Owner {
    fn wake(self: Arc<Self>) {
        drop(self.0.lock().expect("no panic").take());
    }
}

#[test]
fn a_waker_may_drop_a_reader() {
    for keep in [true, false] {
        let written = Written::new(keep);
        let owner = Arc::new(Owner(Mutex::new(Some(written.reader(0)))));
        let mut waiting = written.reader(0);
        let waker = Waker::from(Arc::clone(&owner));
        assert!(waiting.poll_piece(&Context::from_waker(&waker)).is_pending());
        written.write(b"text");
        assert!(owner.0.lock().expect("no panic").is_none());
        assert_eq!(written.content.readers(), 1);
    }
}

#[test]
fn what_leaves_is_counted_as_leaving_once_and_to_the_end() {
    // Before, in the middle of, and after the writing: all its bytes leave, and are given back.
    for (leaves_at, keep) in (0..=6).flat_map(|at| [(at, true), (at, false)]) {
        let budget = Budget::new(160);
        let written = Written { content: Content::new(keep, CHUNK), budget };
        let reader = written.reader(0);
        for step in 0..=6 {
            if step == leaves_at {
                written.content.leave();
                written.content.leave();
            }
            match step {
                0..5 => written.write(&text(5)),
                5 => written.content.finish(b""),
                _ => {}
            }
        }
        assert!(!written.budget.lacks(150), "leaves at {leaves_at}, kept: {keep}");
        assert_eq!(written.used(), 25);
        drop(reader);
        let budget = written.budget;
        drop(written.content);
        assert_eq!(budget.total(), 0);
        assert!(!budget.lacks(150) && budget.lacks(151), "nothing leaves any more");
    }
}

#[test]
fn the_chunk_that_is_being_filled_leaves_too() {
    for keep in [true, false] {
        let (content, budget) = (Content::new(keep, CHUNK), Budget::new(160));
        let _reader = content.reader(0).expect("nothing is freed yet");
        content.grow(budget.charge(Kind::Content, CHUNK as u64).expect("room"));
        assert_eq!(content.append(&idle(), b"abc"), Append::Taken(3));
        assert!(budget.lacks(150));
        content.leave();
        assert!(!budget.lacks(150));
    }
}
