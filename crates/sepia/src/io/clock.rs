//! All time comes from here: monotonic milliseconds for timers and ages, wall seconds for dates.
//!
//! A test holds a manual clock and moves it by hand after it has observed an event; moving it
//! wakes every worker, so that what has become due happens at once.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use caching::Moment;

/// A source of time, shared by every worker of a proxy.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Source>);

#[derive(Debug)]
enum Source {
    System { start: Instant },
    Manual(Manual),
}

#[derive(Debug)]
struct Manual {
    micros: AtomicU64,
    wall: AtomicI64,
    wakers: Mutex<Vec<Arc<mio::Waker>>>,
}

impl Default for Clock {
    fn default() -> Self {
        Clock(Arc::new(Source::System { start: Instant::now() }))
    }
}

impl Clock {
    /// A clock that stands still until [`Clock::advance`]; it starts at `wall` seconds since the
    /// epoch.
    pub fn manual(wall: i64) -> Self {
        Clock(Arc::new(Source::Manual(Manual {
            micros: AtomicU64::new(0),
            wall: AtomicI64::new(wall),
            wakers: Mutex::default(),
        })))
    }

    /// Moves a manual clock on and wakes the workers; a system clock stays as it is.
    pub fn advance(&self, by: Duration) {
        if let Source::Manual(manual) = &*self.0 {
            let micros = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
            let before = manual.micros.fetch_add(micros, Ordering::SeqCst);
            let seconds = (before + micros) / 1_000_000 - before / 1_000_000;
            let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
            manual.wall.fetch_add(seconds, Ordering::SeqCst);
            for waker in manual.wakers.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                // A worker that has ended cannot be woken, and need not.
                let _ = waker.wake();
            }
        }
    }

    /// Lets the wall clock of a manual clock jump, as an operator or NTP does.
    pub fn jump_wall(&self, seconds: i64) {
        if let Source::Manual(manual) = &*self.0 {
            manual.wall.fetch_add(seconds, Ordering::SeqCst);
        }
    }

    /// Whether the clock only moves by hand; then nobody may wait for it with a timeout.
    pub fn is_manual(&self) -> bool {
        matches!(&*self.0, Source::Manual(_))
    }

    /// `waker` is woken whenever a manual clock moves.
    pub(crate) fn watch(&self, waker: Arc<mio::Waker>) {
        if let Source::Manual(manual) = &*self.0 {
            manual.wakers.lock().unwrap_or_else(PoisonError::into_inner).push(waker);
        }
    }

    /// Microseconds since the clock was made.
    pub fn micros(&self) -> u64 {
        match &*self.0 {
            Source::System { start } => {
                u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX)
            }
            Source::Manual(manual) => manual.micros.load(Ordering::SeqCst),
        }
    }

    /// Milliseconds since the clock was made.
    pub fn millis(&self) -> u64 {
        self.micros() / 1_000
    }

    /// Milliseconds since the Unix epoch.
    pub fn wall_millis(&self) -> i64 {
        match &*self.0 {
            Source::System { .. } => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX)),
            Source::Manual(manual) => manual.wall.load(Ordering::SeqCst).saturating_mul(1_000),
        }
    }

    /// Now, in both kinds of time.
    pub fn moment(&self) -> Moment {
        Moment { wall: self.wall_millis().div_euclid(1_000), monotonic: self.millis() }
    }
}
