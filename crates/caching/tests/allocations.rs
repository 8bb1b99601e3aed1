//! A reuse allocates nothing: the decisions of the hot path, counted.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use caching::{
    Arrival, Freshness, Moment, Options, Precondition, RangeOutcome, RequestDirectives, Reuse,
    Variant, evaluate_preconditions, evaluate_range, lookup_rule, reuse_decision,
};
use wire::{FieldSpans, HeadLimits, RequestSpans};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: both calls go to the system's allocator unchanged; counting touches one thread's cell,
// which needs neither allocation nor destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on; `alloc` got the pointer from System.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\n\
    Host: example.org\r\n\
    Accept: text/html, application/xml;q=0.9, */*;q=0.8\r\n\
    Accept-Encoding: gzip, deflate, br\r\n\
    Accept-Language: de, en-GB;q=0.7, en;q=0.3\r\n\
    Cookie: a=b\r\n\
    Cache-Control: max-age=30, min-fresh=1, max-stale=5\r\n\
    If-None-Match: \"x\", \"y\"\r\n\
    Range: bytes=2-5\r\n\
    If-Range: \"a\"\r\n\r\n";

const STORED: &[u8] = b"ETag: \"a\"\r\n\
    Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
    Last-Modified: Sun, 06 Nov 1994 07:49:37 GMT\r\n\
    Cache-Control: max-age=60\r\n\
    Vary: Accept, Accept-Encoding, Accept-Language, Cookie, X-Missing\r\n";

#[test]
fn a_reuse_allocates_nothing() {
    let mut spans = RequestSpans::default();
    wire::decode_request(REQUEST, &mut spans, &HeadLimits::default()).expect("a valid request");
    let request = spans.head(REQUEST);
    let stored_spans = FieldSpans::decode_lines(STORED);
    let stored = stored_spans.of(STORED);
    let now = Moment { wall: 784_111_777, monotonic: 1_000 };
    let arrival = Arrival { requested: now, received: now, age_value: 0 };
    let freshness = Freshness::of(200, stored, &arrival, &Options::default());
    let variant = Variant::of(request, stored).expect("no star");

    let before = ALLOCATIONS.get();
    let rule = lookup_rule(request);
    let matches = variant.matches(request);
    let directives = RequestDirectives::decode(request.fields());
    let reuse = reuse_decision(&directives, &freshness, now);
    let precondition = evaluate_preconditions(request, 200, stored);
    let range = evaluate_range(request, stored, 10);
    let allocations = ALLOCATIONS.get() - before;

    assert_eq!(allocations, 0);
    assert_eq!((rule, matches, reuse), (Ok(()), true, Reuse::Fresh));
    assert_eq!(precondition, Precondition::Proceed);
    assert_eq!(range, RangeOutcome::Part { first: 2, last: 5 });
    assert!(before > 0, "the counter counts");
}
