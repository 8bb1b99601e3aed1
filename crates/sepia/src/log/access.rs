//! The access log: from the workers' own buffers through one bounded buffer to a writer thread.
//!
//! A worker formats into memory that only it touches, and hands over whole lines once a turn of its
//! loop if the shared buffer is free at that moment; it never waits for it, nor for the reader at
//! the other end. When the reader is slow the shared buffer fills, then the worker's own, then
//! lines are dropped and counted; so are those that cannot be written. In the steady state nothing
//! here allocates: the writer thread swaps the shared buffer for an empty one of the same capacity.

use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use super::record::{Record, Second};
use crate::base::limits;

/// The owner of the writer thread. [`AccessLog::writer`] makes one writing end per worker;
/// [`AccessLog::finish`], or dropping it, writes what is pending and ends the thread.
pub struct AccessLog {
    shared: Arc<Shared>,
    patience: Duration,
}

struct Shared {
    pending: Mutex<Pending>,
    /// The writer thread waits here for lines, the end of the program for the writer thread.
    changed: Condvar,
    /// Lines that could not be written and that no worker has counted yet.
    lost: AtomicU64,
}

struct Pending {
    lines: Vec<u8>,
    is_writer_asleep: bool,
    is_ending: bool,
    has_ended: bool,
}

impl Shared {
    /// No invariant spans a panic: the buffer always holds whole lines.
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AccessLog {
    /// Starts the writer thread towards standard output.
    ///
    /// # Errors
    /// When the thread cannot be made.
    pub fn to_stdout() -> io::Result<Self> {
        AccessLog::start(io::stdout())
    }

    /// Starts the writer thread.
    ///
    /// # Errors
    /// When the thread cannot be made.
    pub fn start(out: impl Write + Send + 'static) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            pending: Mutex::new(Pending {
                lines: Vec::with_capacity(limits::LOG_SHARED_BYTES),
                is_writer_asleep: false,
                is_ending: false,
                has_ended: false,
            }),
            changed: Condvar::new(),
            lost: AtomicU64::new(0),
        });
        let of_thread = Arc::clone(&shared);
        thread::Builder::new()
            .name("access-log".into())
            .spawn(move || write_out(&of_thread, out))?;
        Ok(AccessLog { shared, patience: limits::LOG_DRAIN })
    }

    /// A writing end for one worker.
    #[must_use]
    pub fn writer(&self) -> LogWriter {
        LogWriter {
            lines: Vec::with_capacity(limits::LOG_LOCAL_BYTES),
            dropped: 0,
            second: Second::new(),
            shared: Arc::clone(&self.shared),
        }
    }

    /// Writes what the workers have handed over and ends the thread; after [`limits::LOG_DRAIN`] it
    /// is left to itself, so that a reader who has stopped reading does not keep the program alive.
    pub fn finish(self) {
        drop(self);
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        let mut pending = self.shared.lock();
        pending.is_ending = true;
        self.shared.changed.notify_all();
        let deadline = Instant::now() + self.patience;
        while !pending.has_ended {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.shared.changed.wait_timeout(pending, left);
            pending = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The writer thread: takes all pending lines at once and writes them, for as long as that takes.
fn write_out(shared: &Shared, out: impl Write) {
    let mut lines = Vec::with_capacity(limits::LOG_SHARED_BYTES);
    let mut sink = Sink { out, state: SinkState::Whole };
    loop {
        let mut pending = shared.lock();
        while pending.lines.is_empty() && !pending.is_ending {
            pending.is_writer_asleep = true;
            pending = shared.changed.wait(pending).unwrap_or_else(PoisonError::into_inner);
        }
        pending.is_writer_asleep = false;
        if pending.lines.is_empty() {
            pending.has_ended = true;
            shared.changed.notify_all();
            return;
        }
        std::mem::swap(&mut lines, &mut pending.lines);
        drop(pending);
        let lost = sink.write_lines(&lines);
        if lost > 0 {
            shared.lost.fetch_add(lost, Ordering::Relaxed);
        }
        lines.clear();
    }
}

/// Where the lines go. A closed pipe is the reader's choice and no reason to end; a full disk may
/// have room again for the next lines.
struct Sink<W> {
    out: W,
    state: SinkState,
}

enum SinkState {
    /// What has been written ends with a line's end.
    Whole,
    /// An error came in the middle of a line.
    Broken,
    /// Nobody will ever read again.
    Closed,
}

impl<W: Write> Sink<W> {
    /// Writes whole lines; returns how many of them were lost.
    fn write_lines(&mut self, lines: &[u8]) -> u64 {
        let mut rest = lines;
        if !matches!(self.state, SinkState::Closed)
            && let Err(error) = self.write_all(&mut rest)
        {
            self.state = match error.kind() {
                ErrorKind::BrokenPipe => SinkState::Closed,
                _ if rest.len() == lines.len() => return count_lines(rest),
                _ if lines[..lines.len() - rest.len()].ends_with(b"\n") => SinkState::Whole,
                _ => SinkState::Broken,
            };
        }
        count_lines(rest)
    }

    /// Leaves in `rest` what was not written.
    fn write_all(&mut self, rest: &mut &[u8]) -> io::Result<()> {
        if matches!(self.state, SinkState::Broken) {
            self.out.write_all(b"\n")?;
            self.state = SinkState::Whole;
        }
        while !rest.is_empty() {
            match self.out.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => *rest = &rest[count..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.flush()
    }
}

fn count_lines(lines: &[u8]) -> u64 {
    lines.iter().map(|&byte| u64::from(byte == b'\n')).sum()
}

/// How often a busy lock is tried before the lines wait for the worker's next turn. It is held for
/// the time of one copy, so that a few tries nearly always succeed.
const LOCK_TRIES: usize = 64;

/// A worker's writing end: [`LogWriter::line`] for each exchange, [`LogWriter::flush`] at the end
/// of each turn of the loop. Dropping it hands over what is left.
pub struct LogWriter {
    lines: Vec<u8>,
    dropped: u64,
    second: Second,
    shared: Arc<Shared>,
}

impl LogWriter {
    /// Appends a line to the worker's own buffer, or drops it if that is full.
    pub fn line(&mut self, record: &Record<'_>) {
        let needed = record.encoded_bytes_max();
        if self.lines.capacity() - self.lines.len() < needed {
            self.hand_over();
        }
        if self.lines.capacity() - self.lines.len() < needed {
            self.dropped += 1;
            return;
        }
        record.encode(&mut self.lines, &mut self.second);
    }

    /// Hands over the lines of this turn without waiting; returns how many lines were dropped since
    /// the last call, or could not be written, for the counter.
    pub fn flush(&mut self) -> u64 {
        if !self.lines.is_empty() {
            self.hand_over();
        }
        // Looked at first, because taking it costs all workers something.
        if self.shared.lost.load(Ordering::Relaxed) > 0 {
            self.dropped += self.shared.lost.swap(0, Ordering::Relaxed);
        }
        std::mem::take(&mut self.dropped)
    }

    /// Whether lines wait for the next turn: a worker that is about to sleep should wake soon.
    #[must_use]
    pub fn has_unflushed(&self) -> bool {
        !self.lines.is_empty()
    }

    fn hand_over(&mut self) {
        for _ in 0..LOCK_TRIES {
            match self.shared.pending.try_lock() {
                Ok(pending) => return move_lines(&mut self.lines, pending, &self.shared.changed),
                Err(TryLockError::Poisoned(poisoned)) => {
                    let pending = poisoned.into_inner();
                    return move_lines(&mut self.lines, pending, &self.shared.changed);
                }
                Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
            }
        }
    }
}

/// Moves as many whole lines as there is room for, oldest first, and wakes the writer if it sleeps.
fn move_lines(lines: &mut Vec<u8>, mut pending: MutexGuard<'_, Pending>, changed: &Condvar) {
    let room = limits::LOG_SHARED_BYTES.saturating_sub(pending.lines.len());
    let fitting = if lines.len() <= room {
        lines.len()
    } else {
        lines[..room].iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1)
    };
    pending.lines.extend_from_slice(&lines[..fitting]);
    lines.drain(..fitting);
    let must_wake = fitting > 0 && std::mem::take(&mut pending.is_writer_asleep);
    drop(pending);
    if must_wake {
        changed.notify_all();
    }
}

impl Drop for LogWriter {
    /// The last lines go over the shared buffer's bound, once: nobody is left to count them.
    fn drop(&mut self) {
        let mut pending = self.shared.lock();
        pending.lines.append(&mut self.lines);
        drop(pending);
        self.shared.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::{AccessLog, Record, Sink, SinkState};
    use crate::base::limits;
    use std::io::{self, Write};
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    fn record(id: &[u8]) -> Record<'_> {
        Record {
            wall_ms: 0,
            client: None,
            method: b"GET",
            authority: b"a",
            path_query: b"/",
            status: 200,
            bytes: 1,
            duration_us: 1,
            cache_status: b"sepia; hit",
            request_id: id,
            reason: None,
        }
    }

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

    /// A reader that reads nothing until it is told, and says when it has been reached.
    struct Blocked {
        reached: Sender<()>,
        go_on: Receiver<()>,
        kept: Kept,
    }

    impl Write for Blocked {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.reached.send(()).ok();
            self.go_on.recv().ok();
            self.kept.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn all_lines_of_all_workers_arrive_whole() {
        let kept = Kept::default();
        let log = AccessLog::start(kept.clone()).unwrap();
        let workers: Vec<_> = (0..4)
            .map(|worker: u32| {
                let mut writer = log.writer();
                std::thread::spawn(move || {
                    for line in 0..500 {
                        writer.line(&record(format!("{worker}-{line}").as_bytes()));
                        assert_eq!(writer.flush(), 0);
                    }
                })
            })
            .collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        log.finish();
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        let ids = |worker: &str| -> Vec<String> {
            let ids = text.lines().filter_map(|line| line.rsplit(' ').next());
            ids.filter(|id| id.starts_with(worker)).map(str::to_owned).collect()
        };
        for worker in 0..4 {
            let expected: Vec<_> = (0..500).map(|line| format!("{worker}-{line}")).collect();
            assert_eq!(ids(&format!("{worker}-")), expected, "in order, none lost");
        }
    }

    #[test]
    fn a_reader_that_stops_costs_lines_and_no_time() {
        let (reached, at_reader) = channel();
        let (release, go_on) = channel();
        let kept = Kept::default();
        let log = AccessLog::start(Blocked { reached, go_on, kept: kept.clone() }).unwrap();
        let mut writer = log.writer();
        writer.line(&record(b"first"));
        writer.flush();
        at_reader.recv().unwrap();

        let mut dropped = 0;
        for _ in 0..100_000 {
            writer.line(&record(b"more"));
            dropped += writer.flush();
        }
        assert!(dropped > 90_000, "{dropped} dropped");
        assert!(writer.has_unflushed());
        assert!(writer.lines.capacity() == limits::LOG_LOCAL_BYTES, "no growth");
        assert!(log.shared.lock().lines.len() <= limits::LOG_SHARED_BYTES);

        drop(writer);
        drop(release);
        log.finish();
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        assert!(text.ends_with("more\n"));
        assert!(text.lines().all(|line| line.starts_with("1970") && line.contains("us \"sepia")));
    }

    #[test]
    fn the_end_does_not_wait_for_a_reader_that_stopped() {
        let (reached, at_reader) = channel();
        let (_held, go_on) = channel();
        let mut log = AccessLog::start(Blocked { reached, go_on, kept: Kept::default() }).unwrap();
        log.patience = Duration::from_millis(1);
        let mut writer = log.writer();
        writer.line(&record(b"id"));
        writer.flush();
        at_reader.recv().unwrap();
        log.finish();
    }

    /// A disk with room for one line and a half, then for none, then for all.
    struct Full {
        kept: Kept,
        calls: u32,
    }

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.calls += 1;
            match self.calls {
                1 => self.kept.write(&bytes[..bytes.len() * 3 / 4]),
                2 | 3 => Err(io::ErrorKind::StorageFull.into()),
                _ => self.kept.write(bytes),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_costs_counted_lines_and_those_after_it_are_whole() {
        let kept = Kept::default();
        let mut sink = Sink { out: Full { kept: kept.clone(), calls: 0 }, state: SinkState::Whole };
        let lost: Vec<_> =
            [&b"one\ntwo\n"[..], b"three\n", b"four\nfive\n"].map(|l| sink.write_lines(l)).into();
        assert_eq!(lost, [1, 1, 0]);
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text, "one\ntw\nfour\nfive\n");
    }

    #[test]
    fn a_closed_pipe_ends_nothing() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let log = AccessLog::start(Closed).unwrap();
        let mut writer = log.writer();
        for _ in 0..10_000 {
            writer.line(&record(b"id"));
            writer.flush();
        }
        drop(writer);
        log.finish();
    }
}
