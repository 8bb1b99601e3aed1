//! Deadlines of one worker: a coarse timer wheel, so that setting and clearing are O(1).
//!
//! A deadline that is moved later (every request does that to its session's) only changes a
//! number; the entry finds its new place when its old one comes round. Resolution is one tick
//! of 32 ms; a deadline never fires early.

use std::task::Waker;

/// Milliseconds of a tick.
const TICK: u64 = 32;
/// Places of the wheel: 65 s in one round. Later deadlines go round again.
const PLACES: usize = 2_048;
/// Words of bits for the places; exactly as many as a `u32` has bits.
const WORDS: usize = PLACES / 64;
const NONE: u32 = u32::MAX;

/// What a deadline is for.
#[derive(Debug)]
pub(crate) enum Target {
    /// The slot of this token has waited long enough.
    Slot(u64),
    /// A task waits.
    Task(Waker),
    /// The entry is not in use.
    Free,
}

/// Names a deadline; once it has fired or was cleared the name means nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimerId {
    index: u32,
    generation: u32,
}

impl TimerId {
    /// No deadline.
    pub(crate) const NONE: TimerId = TimerId { index: NONE, generation: 0 };
}

#[derive(Debug)]
struct Entry {
    target: Target,
    generation: u32,
    /// The tick at which it is due, and the tick whose place it hangs in.
    due: u32,
    hangs: u32,
    next: u32,
    previous: u32,
}

/// Deadlines of one worker.
#[derive(Debug)]
pub(crate) struct Wheel {
    entries: Vec<Entry>,
    free: u32,
    heads: Box<[u32]>,
    /// Which places have entries, and which words of that have bits.
    occupied: [u64; WORDS],
    words: u32,
    /// The last tick that was handled.
    tick: u32,
}

impl Wheel {
    pub(crate) fn new(now: u64) -> Self {
        Wheel {
            entries: Vec::new(),
            free: NONE,
            heads: vec![NONE; PLACES].into_boxed_slice(),
            occupied: [0; WORDS],
            words: 0,
            tick: tick_of(now),
        }
    }

    /// Sets a deadline at `at` milliseconds.
    pub(crate) fn set(&mut self, at: u64, target: Target) -> TimerId {
        let due = tick_after(at).max(self.tick + 1);
        let index = if self.free == NONE {
            let (next, previous, generation) = (NONE, NONE, 0);
            self.entries.push(Entry { target, generation, due, hangs: due, next, previous });
            u32::try_from(self.entries.len() - 1).unwrap_or(NONE)
        } else {
            let index = self.free;
            let entry = &mut self.entries[index as usize];
            self.free = entry.next;
            (entry.target, entry.due, entry.hangs) = (target, due, due);
            index
        };
        self.hang(index);
        TimerId { index, generation: self.entries[index as usize].generation }
    }

    fn is_set(&self, id: TimerId) -> bool {
        self.entries.get(id.index as usize).is_some_and(|entry| {
            entry.generation == id.generation && !matches!(entry.target, Target::Free)
        })
    }

    /// Moves a deadline; the cheap case is later than before.
    pub(crate) fn reset(&mut self, id: TimerId, at: u64) {
        if !self.is_set(id) {
            return;
        }
        let due = tick_after(at).max(self.tick + 1);
        let entry = &mut self.entries[id.index as usize];
        entry.due = due;
        if due < entry.hangs {
            self.unhang(id.index);
            self.entries[id.index as usize].hangs = due;
            self.hang(id.index);
        }
    }

    /// Clears a deadline.
    pub(crate) fn clear(&mut self, id: TimerId) {
        if self.is_set(id) {
            self.unhang(id.index);
            self.release(id.index);
        }
    }

    /// Milliseconds from `now` until something may be due; `None` if nothing is set.
    pub(crate) fn wait(&self, now: u64) -> Option<u64> {
        let start = (self.tick as usize + 1) % PLACES;
        let distance = self.next_occupied(start)? as u64 + 1;
        let at = (u64::from(self.tick) + distance) * TICK;
        Some(at.saturating_sub(now))
    }

    /// Takes one target that is due at `now`; call until `None`.
    pub(crate) fn expire(&mut self, now: u64) -> Option<Target> {
        let until = tick_of(now);
        while self.tick < until {
            let next = self.tick + 1;
            let mut id = self.heads[next as usize % PLACES];
            while id != NONE {
                let (due, following) =
                    (self.entries[id as usize].due, self.entries[id as usize].next);
                if due <= next {
                    self.unhang(id);
                    return Some(self.release(id));
                }
                if self.entries[id as usize].hangs <= next {
                    self.unhang(id);
                    self.entries[id as usize].hangs = due;
                    self.hang(id);
                }
                id = following;
            }
            self.tick = next;
        }
        None
    }

    /// How far from `start` the next place with entries is, going round.
    fn next_occupied(&self, start: usize) -> Option<usize> {
        let first = self.occupied[start / 64] >> (start % 64);
        if first != 0 {
            return Some(first.trailing_zeros() as usize);
        }
        // The word of `start` itself comes last: its earlier places are a whole round away.
        let after = self.words.rotate_right(word_number(start) + 1);
        if after == 0 {
            return None;
        }
        let word = (start / 64 + 1 + after.trailing_zeros() as usize) % WORDS;
        let place = word * 64 + self.occupied[word].trailing_zeros() as usize;
        Some((place + PLACES - start) % PLACES)
    }

    fn hang(&mut self, id: u32) {
        let place = self.entries[id as usize].hangs as usize % PLACES;
        let head = self.heads[place];
        self.entries[id as usize].next = head;
        self.entries[id as usize].previous = NONE;
        if head != NONE {
            self.entries[head as usize].previous = id;
        }
        self.heads[place] = id;
        self.occupied[place / 64] |= 1 << (place % 64);
        self.words |= 1 << (place / 64);
    }

    fn unhang(&mut self, id: u32) {
        let (next, previous, hangs) = {
            let entry = &self.entries[id as usize];
            (entry.next, entry.previous, entry.hangs)
        };
        let place = hangs as usize % PLACES;
        if previous == NONE {
            self.heads[place] = next;
        } else {
            self.entries[previous as usize].next = next;
        }
        if next != NONE {
            self.entries[next as usize].previous = previous;
        }
        if self.heads[place] == NONE {
            self.occupied[place / 64] &= !(1 << (place % 64));
            if self.occupied[place / 64] == 0 {
                self.words &= !(1 << (place / 64));
            }
        }
    }

    fn release(&mut self, id: u32) -> Target {
        let entry = &mut self.entries[id as usize];
        entry.next = self.free;
        entry.generation = entry.generation.wrapping_add(1);
        self.free = id;
        std::mem::replace(&mut entry.target, Target::Free)
    }
}

#[allow(clippy::cast_possible_truncation)] // Below `WORDS`.
fn word_number(place: usize) -> u32 {
    (place / 64) as u32
}

fn tick_of(at: u64) -> u32 {
    u32::try_from(at / TICK).unwrap_or(u32::MAX - 1)
}

fn tick_after(at: u64) -> u32 {
    tick_of(at).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::{Target, TimerId, Wheel};

    fn due(wheel: &mut Wheel, now: u64) -> Vec<u64> {
        let mut tokens = Vec::new();
        while let Some(target) = wheel.expire(now) {
            if let Target::Slot(token) = target {
                tokens.push(token);
            }
        }
        tokens
    }

    #[test]
    fn fires_never_early_and_at_most_two_ticks_late() {
        let mut wheel = Wheel::new(0);
        wheel.set(1_000, Target::Slot(7));
        assert!(due(&mut wheel, 999).is_empty());
        assert!(wheel.wait(999).expect("set") <= 65);
        assert_eq!(due(&mut wheel, 1_064), [7]);
        assert_eq!(wheel.wait(1_064), None);
    }

    #[test]
    fn later_than_a_round_goes_round_again() {
        let mut wheel = Wheel::new(0);
        wheel.set(600_000, Target::Slot(1));
        for now in (0..599_000).step_by(10_000) {
            assert!(due(&mut wheel, now).is_empty());
        }
        assert_eq!(due(&mut wheel, 600_100), [1]);
    }

    #[test]
    fn moving_later_or_earlier_and_clearing() {
        let mut wheel = Wheel::new(0);
        let later = wheel.set(1_000, Target::Slot(1));
        let earlier = wheel.set(5_000, Target::Slot(2));
        let gone = wheel.set(1_000, Target::Slot(3));
        wheel.reset(later, 9_000);
        wheel.reset(earlier, 500);
        wheel.clear(gone);
        wheel.clear(TimerId::NONE);
        wheel.clear(gone);
        assert_eq!(due(&mut wheel, 2_000), [2]);
        assert!(due(&mut wheel, 8_900).is_empty());
        assert_eq!(due(&mut wheel, 9_100), [1]);
    }

    #[test]
    fn the_wait_is_right_wherever_the_wheel_stands() {
        for now in (0..200_000).step_by(1_913) {
            for distance in [40, 500, 2_048, 2_100, 30_000, 64_000] {
                let mut wheel = Wheel::new(now);
                wheel.set(now + distance, Target::Slot(1));
                let wait = wheel.wait(now).expect("set");
                assert!((distance..=distance + 64).contains(&wait), "{now} {distance} {wait}");
            }
        }
    }

    #[test]
    fn a_jump_of_hours_fires_everything_once() {
        let mut wheel = Wheel::new(0);
        for token in 0..100 {
            wheel.set(token * 50, Target::Slot(token));
        }
        let mut tokens = due(&mut wheel, 36_000_000);
        tokens.sort_unstable();
        assert_eq!(tokens, (0..100).collect::<Vec<_>>());
    }
}
