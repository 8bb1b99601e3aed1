//! What the tests of this crate are made of: wakers that count, admissions, computable bytes and
//! a seeded source of choices.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use caching::{Freshness, LifetimeSource, Moment, Variant};
use wire::{Decoded, FieldSpans, HeadLimits, RequestHead, RequestSpans, decode_request};

use crate::content::{Aborted, ContentReader};
use crate::store::Admission;
use crate::stored::Head;
use crate::writer::{Abandoned, Writer};

/// Counts how often it was woken.
#[derive(Debug, Default)]
pub(crate) struct Bell(AtomicUsize);

impl Bell {
    pub(crate) fn new() -> (Arc<Bell>, Waker) {
        let bell = Arc::new(Bell::default());
        (Arc::clone(&bell), Waker::from(bell))
    }

    /// How often it rang since it was last asked.
    pub(crate) fn rang(&self) -> usize {
        self.0.swap(0, Ordering::SeqCst)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A context whose waker does nothing.
pub(crate) fn idle() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// Byte `position` of the content with this number.
pub(crate) fn byte_at(content: u64, position: u64) -> u8 {
    let mixed = (content << 40 ^ position).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed.to_be_bytes()[0]
}

pub(crate) fn bytes_of(content: u64, from: u64, len: usize) -> Vec<u8> {
    (from..).take(len).map(|position| byte_at(content, position)).collect()
}

/// Takes everything that is there; with how the content ended, if it has.
pub(crate) fn drain(reader: &mut ContentReader) -> (Vec<u8>, Option<Result<(), Aborted>>) {
    let mut seen = Vec::new();
    loop {
        match reader.poll_piece(&idle()) {
            Poll::Ready(Ok(Some(piece))) => {
                seen.extend_from_slice(&piece);
                reader.advance(piece.len() as u64);
            }
            Poll::Ready(Ok(None)) => return (seen, Some(Ok(()))),
            Poll::Ready(Err(why)) => return (seen, Some(Err(why))),
            Poll::Pending => return (seen, None),
        }
    }
}

/// The next piece, which must be there.
pub(crate) fn piece(reader: &mut ContentReader) -> Bytes {
    match reader.poll_piece(&idle()) {
        Poll::Ready(Ok(Some(piece))) => piece,
        other => panic!("no piece: {other:?}"),
    }
}

/// Shows `see` the head of a GET request with these field lines.
pub(crate) fn with_request<R>(lines: &str, see: impl FnOnce(RequestHead<'_>) -> R) -> R {
    let bytes = format!("GET / HTTP/1.1\r\nHost: example.org\r\n{lines}\r\n");
    let mut spans = RequestSpans::default();
    let decoded = decode_request(bytes.as_bytes(), &mut spans, &HeadLimits::default());
    assert!(matches!(decoded, Ok(Decoded::Complete { .. })), "{decoded:?}");
    see(spans.head(bytes.as_bytes()))
}

/// The variant that varies with Accept-Language and answers a request for `language`.
pub(crate) fn variant(language: &str) -> Variant {
    let vary = b"Vary: Accept-Language\r\n";
    let spans = FieldSpans::decode_lines(vary);
    with_request(&format!("Accept-Language: {language}\r\n"), |request| {
        Variant::of(request, spans.of(vary)).expect("one plain name")
    })
}

/// A response that may be stored, fresh for an hour.
pub(crate) fn admission(generation: u64) -> Admission {
    Admission {
        head: Head::new(200, b"Content-Type: text/plain\r\n".to_vec()),
        freshness: Some(Freshness {
            received: Moment { wall: 1_800_000_000, monotonic: 0 },
            corrected_initial_age: 0,
            freshness_lifetime: 3_600,
            source: LifetimeSource::MaxAge,
            must_validate: false,
            must_revalidate: false,
            is_invalidated: false,
        }),
        variant: Variant::default(),
        declared_length: None,
        generation,
    }
}

/// Writes until `bytes` are written or the writer waits; returns how many were.
pub(crate) fn write(writer: &mut Writer, bytes: &[u8]) -> Result<usize, Abandoned> {
    let mut written = 0;
    while written < bytes.len() {
        match writer.poll_append(&idle(), &bytes[written..]) {
            Poll::Ready(count) => written += count?,
            Poll::Pending => break,
        }
    }
    Ok(written)
}

/// Writes all of `bytes`, reading them at once. Returns what was read. Readers in other threads
/// may hold it up, for some time.
pub(crate) fn pass(writer: &mut Writer, reader: &mut ContentReader, bytes: &[u8]) -> Vec<u8> {
    let (mut written, mut seen, mut idle_rounds) = (0, Vec::new(), 0);
    while written < bytes.len() {
        let count = write(writer, &bytes[written..]).expect("there is a reader");
        let (piece, _) = drain(reader);
        if count == 0 && piece.is_empty() {
            idle_rounds += 1;
            assert!(idle_rounds < 1_000_000, "neither end goes on");
            std::thread::yield_now();
        }
        written += count;
        seen.extend(piece);
    }
    seen
}

/// Choices that a seed determines (splitmix64).
#[derive(Debug)]
pub(crate) struct Seeded(pub(crate) u64);

impl Seeded {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let choice = self.next() % bound.max(1) as u64;
        usize::try_from(choice).expect("below a usize")
    }
}
