//! The proxy as another program holds it: built, started, drained.

use std::io::{self, Write};
use std::path::PathBuf;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::admin::{Facts, Live};
use crate::base::Snapshot;
use crate::config::{Config, ListenAddress};
use crate::engine::{self, Engine, Start};
use crate::io::clock::Clock;

/// A running proxy. Dropped, it drains and ends.
///
/// ```
/// use sepia::{Proxy, config::Config};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let text = r#"
///     [[listen]]
///     address = "127.0.0.1:0"
///     role = "reverse"
///     to = ["http://127.0.0.1:3000"]
/// "#;
/// let proxy = Proxy::builder(Config::from_text("sepia.toml", text)?).start()?;
/// println!("listening on {}", proxy.addresses()[0]);
/// proxy.stop();
/// # Ok(())
/// # }
/// ```
pub struct Proxy {
    engine: Engine,
}

/// A proxy before it is started.
pub struct Builder {
    start: Start,
}

/// The signals that a whole program obeys. Made before the proxy is started, none is missed:
/// without it they end the process wherever it is, and its unix sockets stay behind.
pub struct Signals {
    runtime: Runtime,
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    /// From now on SIGINT, SIGTERM and SIGHUP wait for [`Proxy::wait`].
    ///
    /// # Errors
    /// Signals that cannot be received.
    pub fn receive() -> io::Result<Signals> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let entered = runtime.enter();
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        let hangup = signal(SignalKind::hangup())?;
        drop(entered);
        Ok(Signals { runtime, interrupt, terminate, hangup })
    }
}

impl Builder {
    /// The file that SIGHUP and `sepia reload` read.
    #[must_use]
    pub fn reload_from(mut self, path: PathBuf) -> Self {
        self.start.reload_from = Some(path);
        self
    }

    /// A control socket in the runtime directory, if the configuration names none.
    #[must_use]
    pub fn with_control(mut self) -> Self {
        self.start.has_control = true;
        self
    }

    /// Tells an operator on standard error of what goes wrong: a line for each reason that asks
    /// for it, at most one in ten seconds.
    #[must_use]
    pub fn with_notices(mut self) -> Self {
        self.start.has_notices = true;
        self
    }

    /// Takes all time from this clock.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.start.clock = clock;
        self
    }

    /// With `false` every request is served by a task, as if it had to wait: the answers must be
    /// the same, which tests check.
    #[must_use]
    pub fn straight_path(mut self, is_straight: bool) -> Self {
        self.start.is_straight = is_straight;
        self
    }

    /// Writes the access log to `out` instead of standard output.
    #[must_use]
    pub fn log_to(mut self, out: impl Write + Send + 'static) -> Self {
        self.start.log_to = Some(Box::new(out));
        self
    }

    /// Binds the listeners and starts the workers.
    ///
    /// # Errors
    /// An address that cannot be bound, named with what to do about it, or a resource that the
    /// system refuses. Then nothing is left running.
    pub fn start(self) -> io::Result<Proxy> {
        Ok(Proxy { engine: Engine::start(self.start)? })
    }
}

impl Proxy {
    /// Begins to build a proxy with this configuration.
    #[must_use]
    pub fn builder(config: Config) -> Builder {
        Builder {
            start: Start {
                config,
                reload_from: None,
                has_control: false,
                has_notices: false,
                clock: Clock::default(),
                is_straight: true,
                log_to: None,
            },
        }
    }

    /// What the instance is, with the addresses that its listeners are bound to.
    #[must_use]
    pub fn facts(&self) -> Facts {
        self.engine.facts()
    }

    /// The listeners' addresses, in the order of the configuration.
    #[must_use]
    pub fn addresses(&self) -> Vec<ListenAddress> {
        engine::addresses(&self.facts())
    }

    /// The sums of all counters at about this moment.
    #[must_use]
    pub fn counters(&self) -> Snapshot {
        self.engine.shared().snapshot()
    }

    /// What the store uses, by kind, in bytes.
    #[must_use]
    pub fn store_use(&self) -> Vec<(&'static str, u64)> {
        self.engine.shared().store_use()
    }

    /// Takes over another configuration without touching connections or the store. Returns what
    /// has changed, for a person.
    ///
    /// # Errors
    /// Why the old configuration goes on.
    pub fn reload(&self, config: Config) -> Result<String, String> {
        self.engine.shared().reload_with(Ok(config))
    }

    /// Begins to drain: no further request is taken, those in hand are finished.
    pub fn drain(&self) {
        self.engine.shared().drain();
    }

    /// Drains and waits for the end. Returns how many exchanges were cut off because the time
    /// for the drain was over.
    pub fn stop(mut self) -> u64 {
        self.drain();
        self.engine.join();
        self.engine.shared().cut()
    }

    /// Serves until SIGINT or SIGTERM, then drains; a second signal ends at once. SIGHUP reloads.
    /// Returns how many exchanges were cut off.
    pub fn wait(self, signals: Signals) -> u64 {
        let Signals { runtime, mut interrupt, mut terminate, mut hangup } = signals;
        runtime.block_on(async {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => break,
                    _ = terminate.recv() => break,
                    _ = hangup.recv() => {
                        // The outcome is told where every reload's is.
                        let _ = self.engine.shared().reload();
                    }
                }
            }
        });
        self.drain();
        // Whoever asks a second time does not want to wait.
        std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            });
            std::process::exit(1);
        });
        self.stop()
    }
}
