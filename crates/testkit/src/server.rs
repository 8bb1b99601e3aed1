//! A bounded, threaded TCP server on an ephemeral loopback port: what the origins stand on.
//!
//! It must never have more connections open than its bound (more wait in the kernel's queue) and
//! never outlive its value: dropping it cuts every connection off and waits for their threads.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// Connections that one server serves at the same time.
const CONNECTIONS_MAX: usize = 64;

#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    accepted: u64,
    open: HashMap<u64, TcpStream>,
    is_stopping: bool,
}

impl Server {
    /// Serves each connection by `serve(number of the connection, stream)` on its own thread.
    pub(crate) fn start(
        serve: impl Fn(u64, TcpStream) + Send + Sync + 'static,
    ) -> io::Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::<Shared>::default();
        let own = Arc::clone(&shared);
        let serve = Arc::new(serve);
        let accepting = thread::Builder::new().name("origin".to_owned()).spawn(move || {
            while own.wait_for_room() {
                let Ok((stream, _)) = listener.accept() else { break };
                let Some(number) = own.register(&stream) else { continue };
                let (serve, shared) = (Arc::clone(&serve), Arc::clone(&own));
                let connection = Connection { number, shared };
                // Without a thread the connection ends here.
                let _ = thread::Builder::new().spawn(move || connection.run(&*serve, stream));
            }
        })?;
        Ok(Server { address, shared, accepting: Some(accepting) })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections accepted so far.
    pub(crate) fn connections(&self) -> u64 {
        self.shared.lock().accepted
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        {
            let mut state = self.shared.lock();
            state.is_stopping = true;
            state.open.values().for_each(cut_off);
        }
        self.shared.changed.notify_all();
        // Wakes the accepting thread, which then sees that it has to stop.
        drop(TcpStream::connect(self.address));
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
        let state = self.shared.lock();
        drop(self.shared.changed.wait_while(state, |state| !state.open.is_empty()));
    }
}

/// A connection that is being served; its end makes room for another, also after a panic.
struct Connection {
    number: u64,
    shared: Arc<Shared>,
}

impl Connection {
    /// Takes the connection by value: a closure that only read its number would leave it behind,
    /// and it would end before it began.
    fn run(self, serve: &impl Fn(u64, TcpStream), stream: TcpStream) {
        serve(self.number, stream);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(stream) = self.shared.lock().open.remove(&self.number) {
            cut_off(&stream);
        }
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a connection may be accepted; false when the server stops.
    fn wait_for_room(&self) -> bool {
        let is_full = |state: &mut State| state.open.len() >= CONNECTIONS_MAX && !state.is_stopping;
        let waited = self.changed.wait_while(self.lock(), is_full);
        !waited.unwrap_or_else(PoisonError::into_inner).is_stopping
    }

    fn register(&self, stream: &TcpStream) -> Option<u64> {
        let other_half = stream.try_clone().ok()?;
        let mut state = self.lock();
        if state.is_stopping {
            return None;
        }
        state.accepted += 1;
        let number = state.accepted;
        state.open.insert(number, other_half);
        Some(number)
    }
}

fn cut_off(stream: &TcpStream) {
    // An error means that the peer was faster.
    let _ = stream.shutdown(Shutdown::Both);
}
