//! Notices for the operator: one line each on standard error.
//!
//! A reason that occurs a million times a minute is told once and then at most once in
//! [`limits::NOTICE_EVERY`], with the number that were not told. A worker may tell one: the line
//! goes through a bounded queue to a thread, and is lost when the terminal or pipe does not take
//! it.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::timestamp;
use crate::base::{Level, Reason, limits};
use caching::Moment;

/// Lines that wait for standard error.
const QUEUE: usize = 64;
/// Never told.
const NEVER: u64 = u64::MAX;

/// The teller of notices, shared by all threads. Dropping it writes what is pending, unless that
/// takes longer than [`limits::LOG_DRAIN`].
pub struct Notices {
    gates: Box<[Gate]>,
    queue: Option<SyncSender<String>>,
    /// Nothing is ever sent on it: it closes when the thread has written its last line.
    ended: Mutex<Receiver<()>>,
}

/// When a reason was told last, and how often it occurred since.
struct Gate {
    told_ms: AtomicU64,
    untold: AtomicU64,
}

impl Notices {
    /// Starts the thread that writes to standard error.
    ///
    /// # Errors
    /// When the thread cannot be made.
    pub fn to_stderr() -> io::Result<Self> {
        Notices::start(io::stderr())
    }

    /// Starts the thread that writes.
    ///
    /// # Errors
    /// When the thread cannot be made.
    pub fn start(out: impl Write + Send + 'static) -> io::Result<Self> {
        let (queue, lines) = sync_channel(QUEUE);
        let (ends, ended) = channel();
        let run = move || write_out(&lines, out, ends);
        thread::Builder::new().name("notices".into()).spawn(run)?;
        let gate = || Gate { told_ms: AtomicU64::new(NEVER), untold: AtomicU64::new(0) };
        let gates = Reason::ALL.iter().map(|_| gate()).collect();
        Ok(Notices { gates, queue: Some(queue), ended: Mutex::new(ended) })
    }

    /// Tells that a reason occurred, if its level asks for it and it was not told lately. `detail`
    /// says where: an address, a name; what a peer chose in it is escaped.
    pub fn tell(&self, reason: Reason, now: Moment, detail: &dyn Display) {
        if reason.level() < Level::Warn {
            return;
        }
        let gate = &self.gates[reason as usize];
        let told_ms = gate.told_ms.load(Ordering::Relaxed);
        let every_ms = limits::NOTICE_EVERY.as_millis();
        let is_early =
            told_ms != NEVER && u128::from(now.monotonic.saturating_sub(told_ms)) < every_ms;
        let must_tell = !is_early
            && gate
                .told_ms
                .compare_exchange(told_ms, now.monotonic, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if !must_tell {
            gate.untold.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let mut line = format!("{}: {} ({detail})", reason.token(), reason.sentence());
        let untold = gate.untold.swap(0, Ordering::Relaxed);
        if untold > 0 {
            line.push_str(&format!(" [{untold} more since the last notice]"));
        }
        self.say(reason.level(), now, &line);
    }

    /// Says something that is no reason, such as the outcome of a reload; not rate limited, so only
    /// for what an operator has caused.
    pub fn say(&self, level: Level, now: Moment, text: &str) {
        let second = timestamp::encode_second(now.wall.try_into().unwrap_or(0));
        let second = String::from_utf8_lossy(&second);
        let line = format!("{second}Z {} {}\n", level.name(), escape(text));
        if let Some(queue) = &self.queue {
            // A full queue means that nobody reads standard error; counters still tell.
            queue.try_send(line).ok();
        }
    }
}

impl Drop for Notices {
    fn drop(&mut self) {
        self.queue = None;
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        ended.recv_timeout(limits::LOG_DRAIN).ok();
    }
}

fn write_out(lines: &Receiver<String>, mut out: impl Write, ends: Sender<()>) {
    for line in lines {
        out.write_all(line.as_bytes()).and_then(|()| out.flush()).ok();
    }
    drop(ends);
}

/// Control characters must not reach a terminal; a notice is one line.
fn escape(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if c.is_control() {
            out.extend(c.escape_default())
        } else {
            out.push(c)
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::Notices;
    use crate::base::{Level, Reason};
    use caching::Moment;
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn at(monotonic: u64) -> Moment {
        Moment { wall: 1_795_163_400, monotonic }
    }

    fn told(tell: impl FnOnce(&Notices)) -> String {
        let kept = Kept::default();
        let notices = Notices::start(kept.clone()).unwrap();
        tell(&notices);
        drop(notices);
        String::from_utf8(kept.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn a_reason_is_told_once_in_ten_seconds_with_the_number_untold() {
        let text = told(|notices| {
            for ms in 0..5_000 {
                notices.tell(Reason::OriginRefused, at(ms), &"127.0.0.1:3000");
            }
            notices.tell(Reason::NoOrigin, at(5_000), &"another reason");
            notices.tell(Reason::OriginRefused, at(10_000), &"127.0.0.1:3000");
        });
        assert_eq!(
            text,
            "2026-11-20T08:30:00Z warn origin-refused: The origin server refused the connection. \
             (127.0.0.1:3000)\n\
             2026-11-20T08:30:00Z warn no-origin: None of the origin servers of this gateway can \
             be used now. (another reason)\n\
             2026-11-20T08:30:00Z warn origin-refused: The origin server refused the connection. \
             (127.0.0.1:3000) [4999 more since the last notice]\n"
        );
    }

    #[test]
    fn quiet_reasons_are_only_counted() {
        assert_eq!(told(|notices| notices.tell(Reason::IdleTimeout, at(0), &"")), "");
    }

    #[test]
    fn a_notice_is_one_line() {
        let text = told(|notices| notices.say(Level::Info, at(0), "a\nb\x1b[2J"));
        assert_eq!(text, "2026-11-20T08:30:00Z info a\\nb\\u{1b}[2J\n");
    }
}
