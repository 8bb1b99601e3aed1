//! The scripted origin: a listener that runs one script for each connection, in order.
//!
//! It must never hide a failure: a script that panicked, one that no connection came for and a
//! connection that no script was for all fail the test, at the latest when the origin is dropped.
//!
//! Each script has its own thread and one connection. An accepted connection waits for its script
//! when the test has not stated it yet, so that no order of the two is a race.

use std::any::Any;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use socket2::{Domain, Socket as RawSocket, Type};

use super::DEADLINE;
use super::link::Socket;
use super::peer::{OriginConnection, Peer};

type Script = Box<dyn FnOnce(&mut OriginConnection) + Send>;

/// An origin on an ephemeral loopback port that follows the test's scripts.
///
/// Order: [`ScriptedOrigin::start`], [`ScriptedOrigin::connection`] for each connection that has
/// to come, [`ScriptedOrigin::finish`] at the end of the story.
#[derive(Debug)]
pub struct ScriptedOrigin {
    address: SocketAddr,
    scripts: Option<Sender<Script>>,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<Accepted>>,
}

#[derive(Debug, Default)]
struct Shared {
    progress: Mutex<Progress>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Progress {
    scripts: usize,
    started: usize,
    /// The local address of the connection that only ends the accepting.
    farewell: Option<SocketAddr>,
}

/// What the accepting thread leaves behind.
#[derive(Debug, Default)]
struct Accepted {
    scripts: Vec<JoinHandle<()>>,
    unexpected: usize,
}

impl ScriptedOrigin {
    /// Starts to listen; nothing is accepted before its script is known.
    ///
    /// # Panics
    /// When the loopback interface has no port left.
    #[track_caller]
    pub fn start() -> ScriptedOrigin {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a loopback port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let (scripts, queue) = channel();
        let shared = Arc::<Shared>::default();
        let own = Arc::clone(&shared);
        let accepting = thread::spawn(move || accept(&listener, &queue, &own));
        ScriptedOrigin { address, scripts: Some(scripts), shared, accepting: Some(accepting) }
    }

    /// Where the origin listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next connection that is accepted runs this script; it is closed when the script ends.
    pub fn connection(&self, script: impl FnOnce(&mut OriginConnection) + Send + 'static) {
        if let Some(scripts) = &self.scripts {
            self.shared.lock().scripts += 1;
            // The accepting thread cannot be gone: it ends only after this sender.
            let _ = scripts.send(Box::new(script));
        }
    }

    /// How many connections have been accepted for a script.
    pub fn connections(&self) -> usize {
        self.shared.lock().started
    }

    /// Waits until every script has run.
    ///
    /// # Panics
    /// With every failure: scripts that panicked, that no connection came for within [`DEADLINE`],
    /// connections that no script was for.
    #[track_caller]
    pub fn finish(mut self) {
        let failures = self.end();
        assert!(failures.is_empty(), "the origin's scripts failed:\n{}", failures.join("\n"));
    }

    fn end(&mut self) -> Vec<String> {
        let Some(accepting) = self.accepting.take() else { return Vec::new() };
        let mut failures = Vec::new();
        let missing = self.shared.wait_for_scripts();
        if missing > 0 {
            failures.push(format!("no connection came for {missing} of the scripts"));
        }
        self.end_accepting();
        let accepted = accepting.join().expect("accepting does not panic");
        if accepted.unexpected > 0 {
            failures.push(format!("{} connections more than scripts", accepted.unexpected));
        }
        for (number, script) in accepted.scripts.into_iter().enumerate() {
            if let Err(cause) = script.join() {
                failures.push(format!("script {}: {}", number + 1, words_of(cause.as_ref())));
            }
        }
        failures
    }

    /// Closes the queue and wakes the accepting thread by a connection that it knows.
    fn end_accepting(&mut self) {
        self.scripts = None;
        let socket = RawSocket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        socket.bind(&any.into()).expect("a loopback port");
        let own = socket.local_addr().expect("a bound socket has an address").as_socket();
        self.shared.lock().farewell = own;
        // When it fails, the listener is gone, and the accepting thread with it.
        let _ = socket.connect(&self.address.into());
    }
}

impl Drop for ScriptedOrigin {
    fn drop(&mut self) {
        if !thread::panicking() {
            let failures = self.end();
            assert!(failures.is_empty(), "the origin's scripts failed:\n{}", failures.join("\n"));
        } else if let Some(accepting) = self.accepting.take() {
            // The test has failed already; scripts that still wait end with their deadline.
            self.end_accepting();
            let _ = accepting.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many scripts have not been started when the deadline is over.
    fn wait_for_scripts(&self) -> usize {
        let waited = self.changed.wait_timeout_while(self.lock(), DEADLINE, |progress| {
            progress.started < progress.scripts
        });
        let (progress, _) = waited.unwrap_or_else(PoisonError::into_inner);
        progress.scripts - progress.started
    }
}

fn accept(listener: &TcpListener, scripts: &Receiver<Script>, shared: &Shared) -> Accepted {
    let mut accepted = Accepted::default();
    while let Ok((stream, peer)) = listener.accept() {
        let script = scripts.recv();
        let mut progress = shared.lock();
        if progress.farewell == Some(peer) {
            break;
        }
        match script {
            Ok(script) => {
                progress.started += 1;
                drop(progress);
                shared.changed.notify_all();
                let run = move || script(&mut Peer::over(Socket::Tcp(stream)));
                accepted.scripts.push(thread::spawn(run));
            }
            Err(_) => accepted.unexpected += 1,
        }
    }
    accepted
}

fn words_of(cause: &(dyn Any + Send)) -> &str {
    let text = cause.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("panicked")
}

/// A loopback address that refuses connections as long as this value lives.
#[derive(Debug)]
pub struct RefusingAddress {
    address: SocketAddr,
    /// Bound and never listening, so that no other program gets the port meanwhile.
    _held: RawSocket,
}

impl RefusingAddress {
    /// Takes a free port and does not listen on it.
    ///
    /// # Panics
    /// When the loopback interface has no port left.
    #[track_caller]
    pub fn hold() -> RefusingAddress {
        let socket = RawSocket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        socket.bind(&any.into()).expect("a loopback port");
        let own = socket.local_addr().expect("a bound socket has an address");
        let address = own.as_socket().expect("an IPv4 socket has an IPv4 address");
        RefusingAddress { address, _held: socket }
    }

    /// The address that nobody listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}
