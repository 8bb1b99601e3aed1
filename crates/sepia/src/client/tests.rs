//! A panic inside an exchange ends that exchange alone.
//!
//! It is provoked by asking the store while the worker's reader is offline, which the store
//! asserts never to happen: a fault of ours, as far as the rest of the program can tell.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use mio::Events;
use store::Store;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};

use super::Clients;
use crate::base::{Counter, Counters, Gauge, Reason, Snapshot};
use crate::config::{Config, HostHeader, ListenAddress, Listener, Reverse, Role, Settings};
use crate::exchange::Work;
use crate::exchange::work::RequestIds;
use crate::io::clock::Clock;
use crate::io::{Io, Owner, Peer, SlotId, Socket};
use crate::origin::OriginSide;

struct Bench {
    runtime: Rc<LocalRuntime>,
    clients: Rc<Clients>,
    poll: RefCell<mio::Poll>,
}

impl Bench {
    fn new(is_straight: bool) -> Self {
        let poll = mio::Poll::new().expect("an epoll set");
        let mut builder = Builder::new_current_thread();
        let runtime = builder.build_local(LocalOptions::default()).expect("a runtime");
        let runtime = Rc::new(runtime);
        let counters = Rc::new(Counters::new());
        let registry = poll.registry().try_clone().expect("a registry");
        let io = Io::new(registry, &runtime, Clock::manual(0), Rc::clone(&counters));
        let store = Store::new(1 << 20, 1);
        // Nothing is ever forwarded: what is asked for is refused, or panics before.
        let role = Role::Reverse(Reverse { to: Vec::new(), host_header: HostHeader::Keep });
        let address = ListenAddress::Tcp(([127, 0, 0, 1], 0).into());
        let settings = Settings::new(Config::new(vec![Listener { address, role }]), "bench");
        let work = Work {
            io: Rc::clone(&io),
            reader: store.reader().expect("a place"),
            store,
            counters: Rc::clone(&counters),
            settings: Rc::new(settings).into(),
            origin: OriginSide::new(io, counters, Arc::default()),
            log: None.into(),
            notices: None,
            ids: RequestIds::new(1),
            is_straight,
            is_draining: false.into(),
        };
        Bench { runtime, clients: Clients::new(Rc::new(work)), poll: RefCell::new(poll) }
    }

    /// A new session, and the client's end of it.
    fn session(&self) -> (SlotId, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        ours.set_nonblocking(true).expect("non-blocking");
        let socket = Socket::Unix(mio::net::UnixStream::from_std(ours));
        let io = &self.clients.work.io;
        (io.insert(socket, Peer::Local, Owner::Session(0)).expect("a slot"), theirs)
    }

    /// Serves what has come, to the end of every task; goes wrong on the straight path or in the
    /// task, if that is asked for.
    fn serve(&self, id: SlotId, fails: bool) {
        let io = Rc::clone(&self.clients.work.io);
        let mut events = Events::with_capacity(8);
        self.poll.borrow_mut().poll(&mut events, Some(Duration::ZERO)).expect("events");
        events.iter().for_each(|event| {
            io.handle_event(event);
        });
        let reader = &self.clients.work.reader;
        if fails && self.clients.work.is_straight {
            reader.offline();
        }
        self.clients.handle_ready(id, 0);
        if fails && !self.clients.work.is_straight {
            reader.offline();
        }
        if io.tasks() > 0 {
            self.runtime.block_on(async { io.until_idle().await });
        }
        if fails {
            reader.online();
        }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::of(&[self.clients.work.counters.reader()])
    }
}

const REQUEST: &[u8] =
    b"GET / HTTP/1.1\r\nHost: a\r\nCache-Control: only-if-cached\r\nConnection: close\r\n\r\n";

#[test]
fn a_panic_ends_one_exchange_and_the_worker_goes_on() {
    for is_straight in [true, false] {
        let bench = Bench::new(is_straight);
        let (unlucky, mut client) = bench.session();
        client.write_all(REQUEST).expect("sent");
        bench.serve(unlucky, true);
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).expect("the session was closed");
        assert_eq!(answer, b"");
        assert_eq!(bench.snapshot().counter(Counter::Panics), 1);
        assert_eq!(bench.snapshot().reason(Reason::Panicked), 1);
        assert_eq!(bench.snapshot().gauge(Gauge::SessionsOpen), 0);

        let (next, mut client) = bench.session();
        client.write_all(REQUEST).expect("sent");
        bench.serve(next, false);
        let mut answer = [0; 12];
        client.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 504");
    }
}

#[test]
fn a_panic_in_any_task_is_counted() {
    let bench = Bench::new(true);
    let io = Rc::clone(&bench.clients.work.io);
    io.spawn(async { panic!("as a fetch would that nobody waits for") });
    bench.runtime.block_on(async { io.until_idle().await });
    assert_eq!((bench.snapshot().counter(Counter::Panics), io.tasks()), (1, 0));
}
