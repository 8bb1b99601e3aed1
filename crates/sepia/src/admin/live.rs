//! What the admin side asks of the running proxy.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::base::Snapshot;
use crate::config::Listener;

/// The running proxy, as the admin threads see it. Every call may come from any thread at any time
/// and must be quick: it holds up nobody but must not take a lock that a worker waits for.
pub trait Live: Send + Sync {
    /// The sums of all workers' counters.
    fn snapshot(&self) -> Snapshot;

    /// What the byte budget is spent on: the kind and its bytes, in a fixed order.
    fn store_use(&self) -> Vec<(&'static str, u64)>;

    /// Every origin server that is known now.
    fn origins(&self) -> Vec<OriginLine>;

    /// Whether new connections are welcome: false from the beginning of a drain.
    fn ready(&self) -> bool;

    /// Takes over the configuration file again; returns what has changed, for a person.
    ///
    /// # Errors
    /// Why the old configuration goes on.
    fn reload(&self) -> Result<String, String>;

    /// What the instance is.
    fn facts(&self) -> Facts;
}

/// An origin server and its connections.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OriginLine {
    /// Host and port.
    pub address: String,
    /// Connections open now.
    pub open: u64,
    /// Those of them that wait for a request.
    pub idle: u64,
    /// Requests that wait for a connection.
    pub waiting: u64,
    /// Connections that could not be opened.
    pub failures: u64,
}

/// What does not change between two reloads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    /// The listeners with the addresses that they are bound to.
    pub listeners: Vec<Listener>,
    /// The byte budget.
    pub memory: u64,
    /// Threads that serve clients.
    pub workers: usize,
    /// Since the start.
    pub uptime: Duration,
    /// The name in Via.
    pub pseudonym: String,
    /// The control socket, if there is one.
    pub control: Option<PathBuf>,
    /// The admin listener, if there is one.
    pub admin_listen: Option<SocketAddr>,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Facts, Live, OriginLine};
    use crate::base::{Counter, Counters, Gauge, Reason, Snapshot};
    use crate::config::Config;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::time::Duration;

    /// A proxy that stands still, with a few counters that are not zero.
    pub(crate) struct Still {
        pub(crate) ready: AtomicBool,
        pub(crate) reloads: AtomicU32,
        snapshot: Snapshot,
    }

    impl Still {
        pub(crate) fn new() -> Still {
            let counters = Counters::new();
            counters.add(Counter::Exchanges, 1_300);
            counters.add(Counter::Hits, 1_234);
            counters.add(Counter::BytesToClients, 5 << 20);
            counters.raise(Gauge::SessionsOpen);
            counters.raise(Gauge::SessionsOpen);
            counters.raise(Gauge::HopForward);
            (0..3).for_each(|_| counters.count(Reason::OriginRefused));
            Still {
                ready: AtomicBool::new(true),
                reloads: AtomicU32::new(0),
                snapshot: Snapshot::of(&[counters.reader()]),
            }
        }
    }

    impl Live for Still {
        fn snapshot(&self) -> Snapshot {
            self.snapshot.clone()
        }

        fn store_use(&self) -> Vec<(&'static str, u64)> {
            vec![("content", 5 << 20), ("heads", 1_536), ("index", 0)]
        }

        fn origins(&self) -> Vec<OriginLine> {
            let address = "127.0.0.1:3000".into();
            vec![OriginLine { address, open: 4, idle: 3, waiting: 0, failures: 2 }]
        }

        fn ready(&self) -> bool {
            self.ready.load(Ordering::Relaxed)
        }

        fn reload(&self) -> Result<String, String> {
            match self.reloads.fetch_add(1, Ordering::Relaxed) {
                0 => Ok("sepia.toml taken over".into()),
                _ => Err("1 mistake in sepia.toml".into()),
            }
        }

        fn facts(&self) -> Facts {
            let text = "[[listen]]\naddress = \"127.0.0.1:8080\"\nrole = \"reverse\"\n\
                        to = [\"http://127.0.0.1:3000\"]\n";
            Facts {
                listeners: Config::from_text("test", text).unwrap().listeners,
                memory: 64 << 20,
                workers: 2,
                uptime: Duration::from_secs(3_723),
                pseudonym: "sepia-5f3a".into(),
                control: Some("/run/sepia/127.0.0.1-8080.sock".into()),
                admin_listen: None,
            }
        }
    }
}
