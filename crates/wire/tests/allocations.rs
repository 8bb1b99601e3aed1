//! A complete request head is decoded without allocating, once the spans have grown.
//!
//! Its own test binary, because it counts every allocation of its thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

use wire::{Decoded, HeadLimits, Known, RequestSpans, decode_request};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator unchanged; the counter is a plain
// cell of this thread, needs no allocation itself, and is skipped once the thread's is gone.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise about the layout is the one asked for here.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `alloc` above, that is from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_complete_head_is_decoded_without_allocating() {
    let head = b"GET http://a.example/p?q HTTP/1.1\r\nHost: a.example\r\nAccept: */*\r\n\
        Accept-Encoding: gzip, br\r\nConnection: keep-alive\r\nIf-None-Match: \"x\"\r\n\r\n";
    let mut spans = RequestSpans::default();
    let limits = HeadLimits::default();
    let mut decode = || {
        let decoded = decode_request(head, &mut spans, &limits);
        assert!(matches!(decoded, Ok(Decoded::Complete { .. })));
        let head = spans.head(head);
        black_box((head.target(), head.framing(), head.keep_alive(), head.authority()));
        black_box((head.fields().first(Known::IfNoneMatch), head.expects_continue()));
    };
    decode();
    let before = ALLOCATIONS.get();
    for _ in 0..1_000 {
        decode();
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
}
