//! Random exchanges against a store whose every byte is computable. A run is its seed:
//! `SEPIA_SEEDS=17 cargo test -p store --lib model` repeats one, `SEPIA_SEEDS=0-9999` tries many.
//!
//! After every step: no more in use than the limit and one chunk for each content that is
//! being written or read. At the end of
//! a run everything that still goes is driven by wake-ups alone, so that one that is lost shows
//! as an exchange that stands still; then all is dropped, and nothing may be left in use.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::{Admission, Admitted, Store};
use crate::content::{ABORT_DROPPED, ContentReader};
use crate::key::Key;
use crate::samples::{Bell, Seeded, admission, byte_at, bytes_of, variant};
use crate::stored::{Head, Stored};
use crate::turn::Reader;
use crate::writer::Writer;

const KEYS: usize = 6;
const TRAILERS: &[u8] = b"Digest: 1\r\n";
const LIMITS: [u64; 4] = [12 << 10, 48 << 10, 256 << 10, 4 << 20];

/// A request on its way to its origin.
struct Sent {
    key: usize,
    generation: u64,
    is_invalidated: bool,
}

/// What the model knows of a content by its number.
struct Known {
    len: u64,
    code: Option<u16>,
}

struct Writing {
    number: usize,
    stored: Arc<Stored>,
    /// `None` once it has finished.
    writer: Option<Writer>,
    bell: (Arc<Bell>, Waker),
}

struct Reading {
    number: usize,
    reader: ContentReader,
    bell: (Arc<Bell>, Waker),
}

/// How one attempt to go on ended.
#[derive(PartialEq, Eq)]
enum Went {
    On,
    Waits,
    Ended,
}

struct Model {
    seeded: Seeded,
    limit: u64,
    store: Arc<Store>,
    turns: Reader,
    sent: Vec<Sent>,
    known: Vec<Known>,
    writing: Vec<Writing>,
    reading: Vec<Reading>,
    held: Vec<Arc<Stored>>,
}

impl Model {
    fn new(seed: u64) -> Self {
        let mut seeded = Seeded(seed);
        let limit = LIMITS[seeded.below(LIMITS.len())];
        let store = Store::new(limit, 1);
        let turns = store.reader().expect("a place is free");
        Model {
            seeded,
            limit,
            store,
            turns,
            sent: Vec::new(),
            known: Vec::new(),
            writing: Vec::new(),
            reading: Vec::new(),
            held: Vec::new(),
        }
    }

    fn run(mut self, steps: usize) {
        for _ in 0..steps {
            self.step();
            self.check_use();
        }
        self.settle();
        self.end();
    }

    fn step(&mut self) {
        match self.seeded.below(100) {
            0..6 => self.send(),
            6..14 => self.receive(),
            14..46 => self.write(),
            46..49 => self.abort(),
            49..56 => self.join(),
            56..84 => self.read(),
            84..86 => self.drop_reader(),
            86..89 => self.hit(),
            89..91 => self.invalidate(),
            91..93 => self.remove(),
            93..95 => self.freshen(),
            95 => drop(self.held.drain(..)),
            96 => self.store.reclaim(),
            _ => self.turns.quiesce(),
        }
    }

    fn check_use(&self) {
        let usage = self.store.usage();
        let used = usage.content + usage.heads + usage.index;
        assert_eq!(used, self.store.budget.total());
        let mut open: Vec<_> = self.writing.iter().map(|it| it.number).collect();
        open.extend(self.reading.iter().map(|it| it.number));
        open.sort_unstable();
        open.dedup();
        let beyond = open.len() as u64 * self.store.chunk_bytes as u64;
        assert!(used <= self.limit + beyond, "{usage:?}, {} open", open.len());
    }

    fn key_bytes(key: usize) -> [u8; 8] {
        key.to_be_bytes()
    }

    fn send(&mut self) {
        let key = self.seeded.below(KEYS);
        let generation = self.store.generation(&Key::new(&Self::key_bytes(key)));
        self.sent.push(Sent { key, generation, is_invalidated: false });
    }

    /// The head of a response: its content's number is its lines.
    fn receive(&mut self) {
        if self.sent.is_empty() {
            return;
        }
        let sent = self.sent.swap_remove(self.seeded.below(self.sent.len()));
        let number = self.known.len();
        let size = [10, 5_000, 40_000, 100_000][self.seeded.below(4)];
        let len = self.seeded.below(size) as u64;
        self.known.push(Known { len, code: None });
        let mut admission = self.admission(number, sent.generation);
        admission.declared_length = (self.seeded.below(2) == 0).then_some(len);
        if self.seeded.below(4) == 0 {
            admission.freshness = None;
        }
        let may_store = admission.freshness.is_some();
        let Admitted { stored, writer, reader } =
            self.store.admit(Key::new(&Self::key_bytes(sent.key)), admission);
        assert!(!stored.is_indexed() || (may_store && !sent.is_invalidated));
        if self.seeded.below(8) != 0 {
            let reader = reader.expect("attached from the first byte");
            self.reading.push(Reading { number, reader, bell: Bell::new() });
        }
        let writer = Some(writer);
        self.writing.push(Writing { number, stored, writer, bell: Bell::new() });
    }

    fn admission(&mut self, number: usize, generation: u64) -> Admission {
        let lines = format!("Number: {number}\r\n").into_bytes();
        let variant = match self.seeded.below(3) {
            0 => variant("de"),
            1 => variant("fr"),
            _ => Default::default(),
        };
        Admission { head: Head::new(200, lines), variant, ..admission(generation) }
    }

    fn number_of(stored: &Stored) -> usize {
        let value = stored.head.fields().all_named(b"number").next().expect("its only line");
        std::str::from_utf8(value).expect("digits").parse().expect("digits")
    }

    fn write(&mut self) {
        if !self.writing.is_empty() {
            let at = self.seeded.below(self.writing.len());
            if self.go_on_writing(at) == Went::Ended {
                self.writing.swap_remove(at);
            }
        }
    }

    fn go_on_writing(&mut self, at: usize) -> Went {
        let most = [3, 3_000, 30_000][self.seeded.below(3)];
        let size = 1 + self.seeded.below(most);
        let Writing { number, stored, writer: open, bell } = &mut self.writing[at];
        let writer = open.as_mut().expect("it has not finished");
        let (left, number) = (self.known[*number].len - writer.written(), *number as u64);
        if left == 0 {
            open.take().expect("it has not finished").finish(TRAILERS);
            return Went::Ended;
        }
        let size = size.min(usize::try_from(left).expect("short"));
        let bytes = bytes_of(number, writer.written(), size);
        match writer.poll_append(&Context::from_waker(&bell.1), &bytes) {
            Poll::Ready(Ok(count)) => {
                assert!((1..=size).contains(&count));
                Went::On
            }
            Poll::Ready(Err(_)) => {
                assert!(!stored.is_indexed(), "what is stored is kept");
                let is_read = self.reading.iter().any(|it| it.number as u64 == number);
                assert!(!is_read, "a reader is attached");
                Went::Ended
            }
            Poll::Pending => {
                assert!(!stored.is_indexed(), "what is stored waits for nobody");
                Went::Waits
            }
        }
    }

    fn abort(&mut self) {
        if self.writing.is_empty() {
            return;
        }
        let at = self.seeded.below(self.writing.len());
        let Writing { number, stored, writer, .. } = self.writing.swap_remove(at);
        if self.seeded.below(2) == 0 {
            self.known[number].code = Some(502);
            writer.expect("it has not finished").abort(502);
        } else {
            self.known[number].code = Some(ABORT_DROPPED);
            drop(writer);
        }
        assert!(!stored.is_indexed());
    }

    /// A stored response of some key, if there is one.
    fn pick(&mut self) -> Option<Arc<Stored>> {
        let key = Self::key_bytes(self.seeded.below(KEYS));
        let turn = self.turns.turn();
        let entry = self.store.lookup(&turn, &key)?;
        let at = self.seeded.below(entry.variants().len());
        Some(Arc::clone(&entry.variants()[at]))
    }

    fn join(&mut self) {
        let Some(stored) = self.pick() else { return };
        assert!(stored.content.is_joinable());
        let number = Self::number_of(&stored);
        let len = usize::try_from(self.known[number].len).expect("short");
        let position = [0, self.seeded.below(len + 1) as u64][self.seeded.below(2)];
        let reader = stored.content.reader(position).expect("what is stored is kept");
        self.reading.push(Reading { number, reader, bell: Bell::new() });
    }

    fn read(&mut self) {
        if !self.reading.is_empty() {
            let at = self.seeded.below(self.reading.len());
            if self.go_on_reading(at) == Went::Ended {
                self.reading.swap_remove(at);
            }
        }
    }

    fn go_on_reading(&mut self, at: usize) -> Went {
        let Reading { number, reader, bell } = &mut self.reading[at];
        let (known, position) = (&self.known[*number], reader.position());
        match reader.poll_piece(&Context::from_waker(&bell.1)) {
            Poll::Pending => Went::Waits,
            Poll::Ready(Ok(Some(piece))) => {
                let expected = |at: usize| byte_at(*number as u64, position + at as u64);
                let wrong = (0..piece.len()).find(|&at| piece[at] != expected(at));
                assert_eq!(wrong, None, "content {number} from {position}");
                let taken = [piece.len(), self.seeded.below(piece.len() + 1)];
                reader.advance(taken[self.seeded.below(2)] as u64);
                Went::On
            }
            Poll::Ready(Ok(None)) => {
                assert_eq!((position, known.code), (known.len, None), "content {number}");
                assert_eq!(&*reader.trailers(), TRAILERS);
                Went::Ended
            }
            Poll::Ready(Err(why)) => {
                assert_eq!(Some(why.0), known.code, "content {number}");
                Went::Ended
            }
        }
    }

    fn drop_reader(&mut self) {
        if !self.reading.is_empty() {
            let at = self.seeded.below(self.reading.len());
            self.reading.swap_remove(at);
        }
    }

    fn hit(&mut self) {
        let Some(stored) = self.pick() else { return };
        stored.touch();
        let number = Self::number_of(&stored);
        if let Some(len) = stored.content.complete_len() {
            assert_eq!((len, None), (self.known[number].len, self.known[number].code));
            let position = self.seeded.next() % (len + 2);
            match stored.content.complete_piece(position) {
                None => assert!(position >= len),
                Some(piece) => {
                    let number = number as u64;
                    assert!(piece == bytes_of(number, position, piece.len()));
                }
            }
        }
        self.held.push(stored);
    }

    fn invalidate(&mut self) {
        let key = self.seeded.below(KEYS);
        let bytes = Self::key_bytes(key);
        let was_there = self.store.lookup(&self.turns.turn(), &bytes).is_some();
        assert_eq!(self.store.invalidate(&bytes), was_there);
        assert!(self.store.lookup(&self.turns.turn(), &bytes).is_none());
        for sent in self.sent.iter_mut().filter(|sent| sent.key == key) {
            sent.is_invalidated = true;
        }
    }

    fn remove(&mut self) {
        if let Some(stored) = self.pick() {
            assert!(self.store.remove(&stored));
            assert!(!stored.is_indexed() && !self.store.remove(&stored));
        }
    }

    /// Sometimes what is in the index, sometimes what was.
    fn freshen(&mut self) {
        let old = match self.seeded.below(2) {
            0 => self.pick(),
            _ => self.held.pop(),
        };
        let Some(old) = old else { return };
        let number = Self::number_of(&old);
        let generation = self.store.generation(&old.key);
        let admission = self.admission(number, generation);
        let was_indexed = old.is_indexed();
        if let Some(updated) = self.store.freshen(&old, admission) {
            assert!(!updated.is_indexed() || was_indexed);
            assert!(!old.is_indexed());
            self.held.push(updated);
        }
    }

    /// Drives what is open by its wake-ups until it has ended.
    fn settle(&mut self) {
        let mut may_go_on = true;
        let mut is_first = true;
        while may_go_on {
            may_go_on = false;
            for at in (0..self.reading.len()).rev() {
                may_go_on |= self.settle_reader(at, is_first);
            }
            for at in (0..self.writing.len()).rev() {
                may_go_on |= self.settle_writer(at, is_first);
            }
            is_first = false;
            self.turns.quiesce();
            self.check_use();
        }
        let left = (self.writing.len(), self.reading.len());
        assert_eq!(left, (0, 0), "writers and readers that nobody woke");
    }

    fn settle_reader(&mut self, at: usize, is_first: bool) -> bool {
        if self.reading[at].bell.0.rang() == 0 && !is_first {
            return false;
        }
        let went = loop {
            match self.go_on_reading(at) {
                Went::On => {}
                went => break went,
            }
        };
        if went == Went::Ended {
            self.reading.swap_remove(at);
        }
        true
    }

    fn settle_writer(&mut self, at: usize, is_first: bool) -> bool {
        if self.writing[at].bell.0.rang() == 0 && !is_first {
            return false;
        }
        let went = loop {
            match self.go_on_writing(at) {
                Went::On => {}
                went => break went,
            }
        };
        if went == Went::Ended {
            self.writing.swap_remove(at);
        }
        true
    }

    fn end(mut self) {
        self.held.clear();
        for key in 0..KEYS {
            self.store.invalidate(&Self::key_bytes(key));
        }
        self.turns.quiesce();
        self.store.reclaim();
        let usage = self.store.usage();
        assert_eq!((usage.content, usage.heads, usage.index, usage.keys), (0, 0, 0, 0));
        let headroom = self.limit / crate::budget::HEADROOM_SHARE;
        assert!(!self.store.budget.lacks(self.limit - headroom));
        assert!(self.store.budget.lacks(self.limit - headroom + 1), "nothing leaves for ever");
    }
}

#[test]
fn any_order_of_events_gives_right_bytes_and_an_empty_budget_at_the_end() {
    let named = std::env::var("SEPIA_SEEDS").unwrap_or_default();
    let (first, last) = named.split_once('-').unwrap_or((&named, &named));
    let (few, steps) = if cfg!(miri) { (2, 200) } else { (24, 600) };
    let first = first.parse().unwrap_or(0);
    for seed in first..=last.parse().unwrap_or(few) {
        println!("seed {seed}");
        Model::new(seed).run(steps);
    }
}
