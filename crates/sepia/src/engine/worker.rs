//! A worker: one thread, its epoll set, and the runtime for what has to wait.
//!
//! Without a live task the worker blocks in its own epoll set, and hits cost one loop. While
//! tasks live the set is nested in the runtime as one descriptor, and several turns of it are
//! made for each turn of the tasks.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use mio::{Events, Poll};
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::select;

use super::accept::Accepting;
use super::listeners::Taken;
use super::mail::{MAILBOX_TOKEN, Mail, Mailbox};
use super::shared::Shared;
use crate::base::{Counter, Counters, Level, limits, millis};
use crate::client::Clients;
use crate::config::Settings;
use crate::exchange::Work;
use crate::exchange::work::RequestIds;
use crate::io::{ENGINE_TOKENS, Io, Nested, Owner, SlotId, Socket, Wake};
use crate::log::LogWriter;
use crate::origin::OriginSide;

/// Events that one wait takes.
const EVENTS: usize = 512;
/// Turns of the epoll set for one turn of the tasks.
const TURNS: usize = 8;
/// Milliseconds after which log lines are handed over if the first try came at a bad moment.
const LOG_MILLIS: u64 = 10;

/// Milliseconds between two looks for what left the index and can be freed.
const RECLAIM_MILLIS: u64 = 1_000;

/// Milliseconds between two turns of a worker whose tasks all sleep.
const QUIESCE_MILLIS: u64 = 100;

/// What a worker is made of.
pub(super) struct Parts {
    pub(super) poll: Poll,
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) counters: Counters,
    pub(super) listeners: Vec<Taken>,
    pub(super) shared: Arc<Shared>,
    pub(super) log: Option<LogWriter>,
    pub(super) is_straight: bool,
}

/// One thread's loop.
pub(super) struct Worker {
    poll: Poll,
    events: Events,
    core: Core,
}

/// The loop's state but for the epoll set itself.
struct Core {
    clients: Rc<Clients>,
    accepting: Accepting,
    mailbox: Arc<Mailbox>,
    shared: Arc<Shared>,
    /// Milliseconds of the clock at which what left the index is freed next.
    reclaim_at: u64,
    /// Milliseconds of the clock by which a drain ends at the latest.
    drain_until: Option<u64>,
}

impl Worker {
    /// Runs until drained. A worker that cannot be set up is told and ends.
    pub(super) fn run(parts: Parts) {
        let shared = Arc::clone(&parts.shared);
        if let Err(error) = Worker::set_up_and_run(parts) {
            shared.say(Level::Error, &format!("a worker cannot run: {error}"));
        }
    }

    fn set_up_and_run(parts: Parts) -> io::Result<()> {
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(limits::RESOLVER_THREADS)
            .build_local(LocalOptions::default())?;
        let runtime = Rc::new(runtime);
        let registry = parts.poll.registry().try_clone()?;
        let nested = {
            let _context = runtime.enter();
            Nested::new(&registry)?
        };
        let counters = Rc::new(parts.counters);
        let clock = parts.shared.clock().clone();
        let io = Io::new(registry, &runtime, clock, Rc::clone(&counters));
        let work = make_work(&parts.shared, &io, counters, parts.log, parts.is_straight)?;
        let core = Core::new(parts.mailbox, parts.shared, work);
        let mut worker = Worker { poll: parts.poll, events: Events::with_capacity(EVENTS), core };
        worker.core.accepting.open(io.registry(), parts.listeners)?;
        let ended = worker.run_until_drained(&runtime, &nested);
        drop((worker, nested, io));
        if let Ok(runtime) = Rc::try_unwrap(runtime) {
            // A name that the system still resolves must not hold the end up.
            runtime.shutdown_background();
        }
        ended
    }

    fn run_until_drained(&mut self, runtime: &LocalRuntime, nested: &Nested) -> io::Result<()> {
        while !self.core.is_cut_off() {
            if self.core.is_drained() {
                // A request may have come to a session that looks idle.
                if self.turn(Some(0))? == 0 && self.core.is_drained() {
                    break;
                }
            } else if self.core.io().tasks() == 0 {
                self.turn(self.core.wait())?;
            } else {
                runtime.block_on(self.run_nested(nested))?;
            }
        }
        self.core.cut_off();
        Ok(())
    }

    /// The loop while tasks live.
    async fn run_nested(&mut self, nested: &Nested) -> io::Result<()> {
        while self.core.io().tasks() > 0 && !self.core.is_cut_off() {
            let mut is_quiet = false;
            for _ in 0..TURNS {
                if self.turn(Some(0))? == 0 {
                    is_quiet = true;
                    break;
                }
            }
            tokio::task::yield_now().await;
            let wait = self.core.wait();
            if !is_quiet || wait == Some(0) {
                continue;
            }
            let io = Rc::clone(self.core.io());
            if io.tasks() == 0 {
                break;
            }
            // A task may look things up at any moment, so the reader stays online while they
            // sleep; what others have taken out of the index is freed only behind its next turn.
            let wait = wait.map_or(QUIESCE_MILLIS, |wait| wait.min(QUIESCE_MILLIS));
            let due = tokio::time::sleep(Duration::from_millis(wait));
            select! {
                biased;
                guard = nested.readable() => {
                    let mut guard = guard?;
                    // Cleared only when the set has nothing to tell: an event between the last
                    // look and the clearing would be lost else.
                    if self.turn(Some(0))? == 0 {
                        guard.clear_ready();
                    } else {
                        guard.retain_ready();
                    }
                }
                () = io.until_idle() => {}
                () = due => {}
            }
        }
        Ok(())
    }

    /// One turn: waits at most `wait` ms for events, serves them and what has become due.
    /// Returns how many events there were.
    fn turn(&mut self, wait: Option<u64>) -> io::Result<usize> {
        let reader = &self.core.clients.work.reader;
        let blocks = wait != Some(0);
        if blocks {
            reader.offline();
        }
        let polled = self.poll.poll(&mut self.events, wait.map(Duration::from_millis));
        if blocks {
            reader.online();
        }
        self.core.io().begin_turn();
        match polled {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(0),
            other => other?,
        }
        let mut count = 0;
        for event in &self.events {
            count += 1;
            match event.token() {
                MAILBOX_TOKEN => self.core.read_mail()?,
                token if token.0 > ENGINE_TOKENS => self.core.accepting.handle_event(token),
                _ => self.core.handle_wake(self.core.io().handle_event(event)),
            }
        }
        self.core.end_turn();
        Ok(count)
    }
}

/// Everything that one worker has for its requests.
fn make_work(
    shared: &Shared,
    io: &Rc<Io>,
    counters: Rc<Counters>,
    log: Option<LogWriter>,
    is_straight: bool,
) -> io::Result<Rc<Work>> {
    let store = Arc::clone(shared.store());
    let reader = store.reader().ok_or(io::ErrorKind::OutOfMemory)?;
    let origins = Arc::clone(shared.origins());
    let mut seed = [0; 8];
    if getrandom::fill(&mut seed).is_err() {
        seed = io.clock().micros().to_ne_bytes();
    }
    Ok(Rc::new(Work {
        io: Rc::clone(io),
        store,
        reader,
        counters: Rc::clone(&counters),
        settings: Rc::new(Settings::clone(&shared.settings())).into(),
        origin: OriginSide::new(Rc::clone(io), counters, origins),
        log: log.into(),
        notices: shared.notices(),
        ids: RequestIds::new(u64::from_ne_bytes(seed)),
        is_straight,
        is_draining: false.into(),
    }))
}

impl Core {
    fn new(mailbox: Arc<Mailbox>, shared: Arc<Shared>, work: Rc<Work>) -> Self {
        Core {
            clients: Clients::new(work),
            accepting: Accepting::default(),
            mailbox,
            shared,
            reclaim_at: 0,
            drain_until: None,
        }
    }

    fn io(&self) -> &Rc<Io> {
        &self.clients.work.io
    }

    fn now(&self) -> u64 {
        self.io().now().millis()
    }

    /// How long the loop may wait for events, in ms; `None` is for ever.
    fn wait(&self) -> Option<u64> {
        let work = &self.clients.work;
        if work.io.listed() > 0 {
            return Some(0);
        }
        let now = self.now();
        let waits = [
            work.io.wait(now),
            self.accepting.wait(now),
            self.drain_until.map(|until| until.saturating_sub(now)),
        ];
        let wait = waits.into_iter().flatten().min();
        // A clock that is moved by hand wakes the worker itself.
        let wait = wait.filter(|wait| *wait == 0 || !work.io.clock().is_manual());
        let log_waits = work.log.borrow().as_ref().is_some_and(LogWriter::has_unflushed);
        wait.into_iter().chain(log_waits.then_some(LOG_MILLIS)).min()
    }

    fn handle_wake(&self, wake: Wake) {
        match wake {
            Wake::Ready(id, Owner::Session(site)) => self.clients.handle_ready(id, site),
            Wake::Ready(id, Owner::Origin) => self.clients.work.origin.handle_idle_ready(id),
            Wake::TimedOut(id, Owner::Origin) => self.clients.work.origin.close_idle(id),
            Wake::TimedOut(id, Owner::Session(_)) => self.clients.handle_timeout(id),
            Wake::Nothing => {}
        }
    }

    /// What a turn does beside its events.
    fn end_turn(&mut self) {
        let now = self.now();
        while let Some(wake) = self.io().expire(now) {
            self.handle_wake(wake);
        }
        // Those that are listed while these are served have their turn after the next wait.
        for _ in 0..self.io().listed() {
            if let Some(wake) = self.io().take_listed() {
                self.handle_wake(wake);
            }
        }
        self.accepting.run(&self.clients, now);
        if let Some(log) = self.clients.work.log.borrow_mut().as_mut() {
            let dropped = log.flush();
            if dropped > 0 {
                self.clients.work.counters.add(Counter::LogLinesDropped, dropped);
            }
        }
        self.clients.work.reader.quiesce();
        if now >= self.reclaim_at {
            self.reclaim_at = now + RECLAIM_MILLIS;
            self.clients.work.store.reclaim();
        }
    }

    fn read_mail(&mut self) -> io::Result<()> {
        for mail in self.mailbox.take() {
            match mail {
                // It crossed the drain on its way: nobody is let in any more.
                Mail::Reload { .. } if self.drain_until.is_some() => {}
                Mail::Reload { settings, opened, closed } => {
                    *self.clients.work.settings.borrow_mut() = Rc::new(Settings::clone(&settings));
                    let registry = self.io().registry().try_clone()?;
                    self.accepting.open(&registry, opened)?;
                    let now = self.now();
                    for site in closed {
                        self.accepting.close(Some(site), &self.clients, now);
                    }
                }
                Mail::Drain => self.begin_drain(),
            }
        }
        Ok(())
    }

    /// No further request is taken; who is in the queue already is still served.
    fn begin_drain(&mut self) {
        if self.drain_until.is_some() {
            return;
        }
        let now = self.now();
        let work = &self.clients.work;
        work.is_draining.set(true);
        self.drain_until = Some(now + millis(work.settings().config.drain));
        self.accepting.close(None, &self.clients, now);
    }

    /// A drain has nothing in hand any more.
    fn is_drained(&self) -> bool {
        self.drain_until.is_some() && self.io().tasks() == 0 && self.in_hand().is_empty()
    }

    /// The time for a drain is over.
    fn is_cut_off(&self) -> bool {
        self.drain_until.is_some_and(|until| self.now() >= until)
    }

    /// Ends what a drain has left. An answer that ends with its connection must not look whole.
    fn cut_off(&self) {
        let mut in_hand = self.in_hand();
        in_hand.retain(|id| !self.clients.is_lingering(*id));
        for id in &in_hand {
            // A connection that is gone needs no end.
            let _ = self.io().with_socket(*id, Socket::reset_on_close);
        }
        self.shared.note_cut(in_hand.len());
    }

    /// Sessions with an exchange or a tunnel in hand.
    fn in_hand(&self) -> Vec<SlotId> {
        let mut in_hand = Vec::new();
        self.io().each(|id, owner, is_parked| {
            let is_session = matches!(owner, Owner::Session(_));
            if is_session && !(is_parked && self.clients.is_idle(id)) {
                in_hand.push(id);
            }
        });
        in_hand
    }
}
