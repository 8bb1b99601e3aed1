//! The worker's epoll set: one slot per connection, and what is known of its readiness.
//!
//! A slot is *parked* (nobody waits but the loop: no task, no buffer) or *held* by a task, which
//! then has a place for its wakers. All registrations are edge-triggered, so a slot remembers
//! what the kernel said and forgets it only after a read or write that came up short. A token is
//! index and generation: an event for a connection that is gone finds nobody.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::VecDeque;
use std::future::Future;
use std::io::{self, IoSlice};
use std::rc::{Rc, Weak};
use std::task::{Context, Waker};

use caching::Moment;
use mio::event::Event;
use mio::{Registry, Token};
use tokio::runtime::LocalRuntime;
use tokio::task::JoinHandle;

use super::clock::Clock;
use super::socket::{Peer, Socket};
use super::wheel::{Target, TimerId, Wheel};
use crate::base::{Counter, Counters, Gauge, limits};

/// Which part of the program a slot belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A client connection; the number is the listener's that accepted it.
    Session(u16),
    /// A connection to an origin.
    Origin,
}

/// Wakers of the task that holds a slot.
#[derive(Debug, Default)]
struct Wakers {
    read: Option<Waker>,
    write: Option<Waker>,
    timed_out: bool,
}

#[derive(Debug)]
struct Slot {
    socket: Socket,
    peer: CompactPeer,
    generation: u32,
    timer: TimerId,
    owner: Owner,
    readable: bool,
    writable: bool,
    /// The peer has sent its end, or the connection has failed: reading will tell.
    read_closed: bool,
    /// On the local ready list already.
    listed: bool,
    wakers: Option<Box<Wakers>>,
}

/// A peer's address in two words: IPv4, by far the most common, needs no allocation.
#[derive(Debug)]
enum CompactPeer {
    V4(std::net::SocketAddrV4),
    V6(Box<std::net::SocketAddrV6>),
    Local,
}

impl CompactPeer {
    fn of(peer: Peer) -> Self {
        match peer {
            Peer::Ip(std::net::SocketAddr::V4(address)) => CompactPeer::V4(address),
            Peer::Ip(std::net::SocketAddr::V6(address)) => CompactPeer::V6(Box::new(address)),
            Peer::Local => CompactPeer::Local,
        }
    }

    fn peer(&self) -> Peer {
        match self {
            CompactPeer::V4(address) => Peer::Ip((*address).into()),
            CompactPeer::V6(address) => Peer::Ip((**address).into()),
            CompactPeer::Local => Peer::Local,
        }
    }
}

/// A slot, or a place for one.
#[derive(Debug)]
enum Place {
    Taken(Slot),
    Free { generation: u32, next: u32 },
}

const NONE: u32 = u32::MAX;

/// Tokens from here up are not slots but the engine's own (listeners, mailbox): generations of
/// slots stay below half of their numbers.
pub(crate) const ENGINE_TOKENS: usize = 1 << 63;

/// Names a slot for as long as its connection lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SlotId {
    index: u32,
    generation: u32,
}

impl SlotId {
    pub(crate) fn index(self) -> usize {
        self.index as usize
    }

    fn token(self) -> Token {
        Token((self.generation as usize) << 32 | self.index as usize)
    }

    #[allow(clippy::cast_possible_truncation)] // The two halves of a token.
    fn of(token: u64) -> Self {
        SlotId { index: token as u32, generation: (token >> 32) as u32 }
    }
}

/// What the loop has to do about an event or a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    /// The parked slot is ready.
    Ready(SlotId, Owner),
    /// The parked slot's deadline has passed.
    TimedOut(SlotId, Owner),
    /// A task was woken, or the slot is gone.
    Nothing,
}

/// A reading of the clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub(crate) moment: Moment,
    pub(crate) micros: u64,
}

impl Now {
    fn of(clock: &Clock) -> Self {
        let micros = clock.micros();
        let wall = clock.wall_millis().div_euclid(1_000);
        Now { moment: Moment { wall, monotonic: micros / 1_000 }, micros }
    }

    /// Milliseconds of the clock.
    pub(crate) fn millis(self) -> u64 {
        self.moment.monotonic
    }
}

/// The epoll set, the timers and the tasks of one worker.
#[derive(Debug)]
pub(crate) struct Io {
    registry: Registry,
    runtime: Weak<LocalRuntime>,
    clock: Clock,
    counters: Rc<Counters>,
    /// The time of this turn of the loop.
    now: Cell<Now>,
    places: RefCell<Places>,
    wheel: RefCell<Wheel>,
    ready: RefCell<VecDeque<SlotId>>,
    /// Where every read of this worker lands first: an idle connection owns no buffer.
    scratch: RefCell<Box<[u8]>>,
    tasks: Cell<usize>,
    /// Woken when the last task ends, so that the loop can leave the runtime.
    idle: tokio::sync::Notify,
}

#[derive(Debug)]
struct Places {
    places: Vec<Place>,
    free: u32,
    /// How many of the taken ones are client connections.
    sessions: usize,
}

impl Io {
    pub(crate) fn new(
        registry: Registry,
        runtime: &Rc<LocalRuntime>,
        clock: Clock,
        counters: Rc<Counters>,
    ) -> Rc<Self> {
        let wheel = Wheel::new(clock.millis());
        Rc::new(Io {
            registry,
            runtime: Rc::downgrade(runtime),
            now: Cell::new(Now::of(&clock)),
            clock,
            counters,
            places: RefCell::new(Places { places: Vec::new(), free: NONE, sessions: 0 }),
            wheel: RefCell::new(wheel),
            ready: RefCell::default(),
            scratch: RefCell::new(vec![0; limits::READ_BUFFER_BYTES].into_boxed_slice()),
            tasks: Cell::new(0),
            idle: tokio::sync::Notify::new(),
        })
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// A turn of the loop begins: the clock is read once for all that it serves.
    pub(crate) fn begin_turn(&self) {
        self.now.set(Now::of(&self.clock));
    }

    /// The time of this turn.
    pub(crate) fn now(&self) -> Now {
        self.now.get()
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Runs `task` on this worker. It is counted, so that the loop knows when none is left; so
    /// is a panic that ends it.
    pub(crate) fn spawn(self: &Rc<Self>, task: impl Future<Output = ()> + 'static) {
        let Some(runtime) = self.runtime.upgrade() else { return };
        self.tasks.set(self.tasks.get() + 1);
        let count = TaskCount(Rc::clone(self));
        runtime.spawn_local(async move {
            let _count = count;
            task.await;
        });
    }

    /// Runs `work` in the runtime's small pool of threads that may block; `None` if the worker
    /// ends first. What has not begun when its caller gives up never does, so that those who have
    /// gone do not stand before those who wait.
    pub(crate) async fn spawn_blocking<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Option<R> {
        let mut handle = AbortOnDrop(self.runtime.upgrade()?.spawn_blocking(work));
        (&mut handle.0).await.ok()
    }

    pub(crate) fn tasks(&self) -> usize {
        self.tasks.get()
    }

    pub(super) fn scratch(&self) -> RefMut<'_, Box<[u8]>> {
        self.scratch.borrow_mut()
    }

    pub(crate) async fn until_idle(&self) {
        self.idle.notified().await;
    }

    // Slots.

    /// Puts a socket into the epoll set.
    pub(crate) fn insert(
        &self,
        mut socket: Socket,
        peer: Peer,
        owner: Owner,
    ) -> io::Result<SlotId> {
        let mut places = self.places.borrow_mut();
        let id = places.reserve();
        if let Err(error) = socket.register(&self.registry, id.token()) {
            places.give_back(id);
            return Err(error);
        }
        places.places[id.index()] = Place::Taken(Slot {
            socket,
            peer: CompactPeer::of(peer),
            generation: id.generation,
            timer: TimerId::NONE,
            owner,
            readable: false,
            writable: false,
            read_closed: false,
            listed: false,
            wakers: None,
        });
        if let Owner::Session(_) = owner {
            places.sessions += 1;
            self.counters.raise(Gauge::SessionsOpen);
            self.counters.raise(Gauge::HopDecode);
        }
        Ok(id)
    }

    /// Closes the socket and gives its slot up. Closing a descriptor takes it out of the set.
    pub(crate) fn remove(&self, id: SlotId) {
        let removed = {
            let mut places = self.places.borrow_mut();
            if places.slot(id).is_none() {
                return;
            }
            let slot = places.take(id);
            if matches!(&slot, Some(Slot { owner: Owner::Session(_), .. })) {
                places.sessions -= 1;
            }
            slot
        };
        let Some(slot) = removed else { return };
        self.wheel.borrow_mut().clear(slot.timer);
        if let Owner::Session(_) = slot.owner {
            self.counters.lower(Gauge::SessionsOpen);
            if slot.wakers.is_none() {
                self.counters.lower(Gauge::HopDecode);
            }
        }
    }

    /// Client connections that are open.
    pub(crate) fn sessions(&self) -> usize {
        self.places.borrow().sessions
    }

    /// Every open slot with its owner and whether it is parked.
    pub(crate) fn each(&self, mut visit: impl FnMut(SlotId, Owner, bool)) {
        for (index, place) in self.places.borrow().places.iter().enumerate() {
            if let (Place::Taken(slot), Ok(index)) = (place, u32::try_from(index)) {
                let id = SlotId { index, generation: slot.generation };
                visit(id, slot.owner, slot.wakers.is_none());
            }
        }
    }

    fn with<R>(&self, id: SlotId, run: impl FnOnce(&mut Slot) -> R) -> io::Result<R> {
        let mut places = self.places.borrow_mut();
        match places.slot(id) {
            Some(slot) => Ok(run(slot)),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    pub(crate) fn peer(&self, id: SlotId) -> Peer {
        self.with(id, |slot| slot.peer.peer()).unwrap_or(Peer::Local)
    }

    pub(crate) fn with_socket<R>(
        &self,
        id: SlotId,
        run: impl FnOnce(&Socket) -> R,
    ) -> io::Result<R> {
        self.with(id, |slot| run(&slot.socket))
    }

    /// A task takes the slot: events wake it from now on.
    pub(crate) fn hold(&self, id: SlotId) {
        let _ = self.with(id, |slot| {
            slot.wakers = Some(Box::default());
            if let Owner::Session(_) = slot.owner {
                self.counters.lower(Gauge::HopDecode);
            }
        });
    }

    /// The task gives the slot back to the loop, which looks at once if there is something to
    /// read that no event will announce again.
    pub(crate) fn park(&self, id: SlotId) {
        let look = self.with(id, |slot| {
            slot.wakers = None;
            if let Owner::Session(_) = slot.owner {
                self.counters.raise(Gauge::HopDecode);
            }
            slot.readable || slot.read_closed
        });
        if look.unwrap_or(false) {
            self.list(id);
        }
    }

    /// Puts a slot on the local ready list: no event will come for what it has to do.
    pub(crate) fn list(&self, id: SlotId) {
        let first = self.with(id, |slot| !std::mem::replace(&mut slot.listed, true));
        if first.unwrap_or(false) {
            self.ready.borrow_mut().push_back(id);
        }
    }

    pub(crate) fn listed(&self) -> usize {
        self.ready.borrow().len()
    }

    /// Takes one slot off the local ready list.
    pub(crate) fn take_listed(&self) -> Option<Wake> {
        let id = self.ready.borrow_mut().pop_front()?;
        let wake = self.with(id, |slot| {
            slot.listed = false;
            if slot.wakers.is_none() { Wake::Ready(id, slot.owner) } else { Wake::Nothing }
        });
        Some(wake.unwrap_or(Wake::Nothing))
    }

    // Events and deadlines.

    /// Takes in what the kernel says of a slot.
    pub(crate) fn handle_event(&self, event: &Event) -> Wake {
        let id = SlotId::of(event.token().0 as u64);
        let mut places = self.places.borrow_mut();
        let Some(slot) = places.slot(id) else { return Wake::Nothing };
        let closed = event.is_read_closed() || event.is_error();
        slot.readable |= event.is_readable() || closed;
        slot.writable |= event.is_writable() || event.is_write_closed() || event.is_error();
        slot.read_closed |= closed;
        match &mut slot.wakers {
            None => Wake::Ready(id, slot.owner),
            Some(wakers) => {
                if slot.readable {
                    wake(&mut wakers.read);
                }
                if slot.writable {
                    wake(&mut wakers.write);
                }
                Wake::Nothing
            }
        }
    }

    /// Sets or moves the slot's one deadline, in milliseconds of the clock.
    pub(crate) fn set_deadline(&self, id: SlotId, at: u64) {
        let mut wheel = self.wheel.borrow_mut();
        let _ = self.with(id, |slot| {
            if let Some(wakers) = &mut slot.wakers {
                wakers.timed_out = false;
            }
            if slot.timer == TimerId::NONE {
                slot.timer = wheel.set(at, Target::Slot(id.token().0 as u64));
            } else {
                wheel.reset(slot.timer, at);
            }
        });
    }

    pub(crate) fn clear_deadline(&self, id: SlotId) {
        let _ = self.with(id, |slot| {
            let timer = std::mem::replace(&mut slot.timer, TimerId::NONE);
            self.wheel.borrow_mut().clear(timer);
            if let Some(wakers) = &mut slot.wakers {
                wakers.timed_out = false;
            }
        });
    }

    /// The loop's longest wait in milliseconds.
    pub(crate) fn wait(&self, now: u64) -> Option<u64> {
        self.wheel.borrow().wait(now)
    }

    /// Takes one deadline that has passed; `None` if there is no more.
    pub(crate) fn expire(&self, now: u64) -> Option<Wake> {
        let target = self.wheel.borrow_mut().expire(now)?;
        let token = match target {
            Target::Slot(token) => token,
            Target::Task(waker) => {
                waker.wake();
                return Some(Wake::Nothing);
            }
            Target::Free => return Some(Wake::Nothing),
        };
        let id = SlotId::of(token);
        let wake = self.with(id, |slot| {
            slot.timer = TimerId::NONE;
            match &mut slot.wakers {
                None => Wake::TimedOut(id, slot.owner),
                Some(wakers) => {
                    wakers.timed_out = true;
                    wake(&mut wakers.read);
                    wake(&mut wakers.write);
                    Wake::Nothing
                }
            }
        });
        Some(wake.unwrap_or(Wake::Nothing))
    }

    pub(super) fn set_timer(&self, at: u64, waker: Waker) -> TimerId {
        self.wheel.borrow_mut().set(at, Target::Task(waker))
    }

    pub(super) fn clear_timer(&self, id: TimerId) {
        self.wheel.borrow_mut().clear(id);
    }

    // Reading and writing.

    /// Reads what is there. A short read means that nothing is left, unless the peer's end or a
    /// failure is still to be told: then the next read tells it.
    pub(crate) fn try_read(&self, id: SlotId, buffer: &mut [u8]) -> io::Result<usize> {
        self.with(id, |slot| {
            let result = retry(|| slot.socket.read(buffer));
            slot.readable = match &result {
                Ok(count) => *count == buffer.len() || slot.read_closed,
                Err(_) => slot.read_closed,
            };
            result
        })?
    }

    /// Whether a read may find something that no further event will announce.
    pub(crate) fn is_readable(&self, id: SlotId) -> bool {
        self.with(id, |slot| slot.readable || slot.read_closed).unwrap_or(false)
    }

    pub(crate) fn try_write(&self, id: SlotId, bytes: &[u8]) -> io::Result<usize> {
        self.with(id, |slot| {
            let result = retry(|| slot.socket.write(bytes));
            slot.writable = result.as_ref().is_ok_and(|count| *count == bytes.len());
            result
        })?
    }

    pub(crate) fn try_write_vectored(
        &self,
        id: SlotId,
        slices: &[IoSlice<'_>],
    ) -> io::Result<usize> {
        let total: usize = slices.iter().map(|slice| slice.len()).sum();
        self.with(id, |slot| {
            let result = retry(|| slot.socket.write_vectored(slices));
            slot.writable = result.as_ref().is_ok_and(|count| *count == total);
            result
        })?
    }

    /// Whether the task that holds the slot may read now; if not, it is woken when it may.
    pub(super) fn poll_readable(&self, id: SlotId, cx: &Context<'_>) -> io::Result<bool> {
        self.with(id, |slot| {
            let Some(wakers) = &mut slot.wakers else { return Ok(true) };
            if wakers.timed_out {
                return Err(io::ErrorKind::TimedOut.into());
            }
            if !slot.readable {
                wakers.read = Some(cx.waker().clone());
            }
            Ok(slot.readable)
        })?
    }

    /// Whether the peer's end or a failure was announced; if not, the task that holds the slot is
    /// woken when something is.
    pub(super) fn poll_read_closed(&self, id: SlotId, cx: &Context<'_>) -> io::Result<bool> {
        self.with(id, |slot| {
            let Some(wakers) = &mut slot.wakers else { return Ok(slot.read_closed) };
            if wakers.timed_out {
                return Err(io::ErrorKind::TimedOut.into());
            }
            wakers.read = Some(cx.waker().clone());
            Ok(slot.read_closed)
        })?
    }

    pub(super) fn poll_writable(&self, id: SlotId, cx: &Context<'_>) -> io::Result<bool> {
        self.with(id, |slot| {
            let Some(wakers) = &mut slot.wakers else { return Ok(true) };
            if wakers.timed_out {
                return Err(io::ErrorKind::TimedOut.into());
            }
            if !slot.writable {
                wakers.write = Some(cx.waker().clone());
            }
            Ok(slot.writable)
        })?
    }
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

/// Repeats a call that a signal interrupted.
fn retry<R>(mut call: impl FnMut() -> io::Result<R>) -> io::Result<R> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Takes work out of the pool's queue when nobody waits for it any more.
struct AbortOnDrop<R>(JoinHandle<R>);

impl<R> Drop for AbortOnDrop<R> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[derive(Debug)]
struct TaskCount(Rc<Io>);

impl Drop for TaskCount {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.counters.add(Counter::Panics, 1);
        }
        let left = self.0.tasks.get() - 1;
        self.0.tasks.set(left);
        if left == 0 {
            self.0.idle.notify_one();
        }
    }
}

impl Places {
    fn slot(&mut self, id: SlotId) -> Option<&mut Slot> {
        match self.places.get_mut(id.index()) {
            Some(Place::Taken(slot)) if slot.generation == id.generation => Some(slot),
            _ => None,
        }
    }

    fn reserve(&mut self) -> SlotId {
        if self.free == NONE {
            let index = u32::try_from(self.places.len()).unwrap_or(NONE);
            self.places.push(Place::Free { generation: 0, next: NONE });
            return SlotId { index, generation: 0 };
        }
        let index = self.free;
        let Place::Free { generation, next } = self.places[index as usize] else {
            unreachable!("the free list holds free places")
        };
        self.free = next;
        SlotId { index, generation }
    }

    fn give_back(&mut self, id: SlotId) {
        // The generation stays below the engine's own tokens.
        let generation = (id.generation + 1) % (u32::MAX >> 1);
        self.places[id.index()] = Place::Free { generation, next: self.free };
        self.free = id.index;
    }

    fn take(&mut self, id: SlotId) -> Option<Slot> {
        let free = Place::Free { generation: 0, next: NONE };
        let place = std::mem::replace(&mut self.places[id.index()], free);
        self.give_back(id);
        match place {
            Place::Taken(slot) => Some(slot),
            Place::Free { .. } => None,
        }
    }
}
