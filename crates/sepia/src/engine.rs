//! Workers, listeners, accept, drain, reload: the only place that makes threads.
//!
//! [`Engine::start`] binds everything, then starts the workers; an error leaves nothing running.

mod accept;
mod listeners;
mod mail;
mod shared;
mod worker;

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crate::admin::control::default_path;
use crate::admin::{AdminServer, Facts, Live};
use crate::base::Counters;
use crate::config::{Config, ListenAddress, Settings};
use crate::io::clock::Clock;
use crate::log::AccessLog;
use listeners::Listeners;
use mail::Mailbox;
use shared::Shared;
use store::Store;
use worker::Worker;

/// How an engine is started, beside its configuration.
pub(crate) struct Start {
    pub(crate) config: Config,
    /// The file that a reload reads.
    pub(crate) reload_from: Option<PathBuf>,
    /// Whether there is a control socket where the configuration names none.
    pub(crate) has_control: bool,
    /// Whether notices for an operator go to standard error.
    pub(crate) has_notices: bool,
    pub(crate) clock: Clock,
    /// Answers are made straight from the readiness event where they can be.
    pub(crate) is_straight: bool,
    /// Where the access log goes instead of standard output.
    pub(crate) log_to: Option<Box<dyn Write + Send>>,
}

/// A running proxy.
pub(crate) struct Engine {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    admin: Option<AdminServer>,
    log: Option<AccessLog>,
}

impl Engine {
    /// Binds the listeners and starts the workers.
    pub(crate) fn start(start: Start) -> io::Result<Self> {
        raise_descriptor_limit();
        let mut config = start.config;
        let workers = config.workers.max(1);
        let mut listeners = Listeners::new(workers);
        for listener in &mut config.listeners {
            listener.address = listeners.bind(&listener.address)?;
        }
        let pseudonym = config.pseudonym.clone().unwrap_or_else(random_pseudonym);
        let settings = Arc::new(Settings::new(config, &pseudonym));
        let log = match (settings.config.access_log, start.log_to) {
            (_, Some(out)) => Some(AccessLog::start(out)?),
            (true, None) => Some(AccessLog::to_stdout()?),
            (false, None) => None,
        };
        let store = Store::new(settings.config.memory, workers);
        let mut mailboxes = Vec::new();
        let mut prepared = Vec::new();
        let mut counters = Vec::new();
        for number in 0..workers {
            let poll = mio::Poll::new()?;
            let mailbox = Arc::new(Mailbox::new(poll.registry())?);
            start.clock.watch(mailbox.waker());
            let own = Counters::new();
            counters.push(own.reader());
            mailboxes.push(Arc::clone(&mailbox));
            prepared.push((poll, mailbox, own, listeners.take(number)));
        }
        let shared = Arc::new(Shared::new(shared::Parts {
            settings: Arc::clone(&settings),
            store,
            counters,
            mailboxes,
            listeners,
            clock: start.clock.clone(),
            reload_from: start.reload_from,
            has_notices: start.has_notices,
        }));
        let admin = start_admin(&settings.config, start.has_control, &shared)?;
        let mut threads = Vec::new();
        for (number, (poll, mailbox, own, taken)) in prepared.into_iter().enumerate() {
            let parts = worker::Parts {
                poll,
                mailbox,
                counters: own,
                listeners: taken,
                shared: Arc::clone(&shared),
                log: log.as_ref().map(AccessLog::writer),
                is_straight: start.is_straight,
            };
            let thread = thread::Builder::new().name(format!("worker-{number}"));
            threads.push(thread.spawn(move || Worker::run(parts))?);
        }
        Ok(Engine { shared, threads, admin, log })
    }

    /// What the instance is, with the addresses that it is bound to.
    pub(crate) fn facts(&self) -> Facts {
        self.shared.facts()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Waits until every worker has ended, then ends the rest.
    pub(crate) fn join(&mut self) {
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                // The worker's own panic message has been printed already.
                continue;
            }
        }
        self.admin = None;
        self.log = None;
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shared.drain();
        self.join();
    }
}

fn start_admin(
    config: &Config,
    has_control: bool,
    shared: &Arc<Shared>,
) -> io::Result<Option<AdminServer>> {
    let first = config.listeners.first().map(|listener| &listener.address);
    let control = match (&config.control, first) {
        (Some(path), _) => Some(path.clone()),
        (None, Some(first)) if has_control => Some(default_path(first)?),
        _ => None,
    };
    if control.is_none() && config.admin_listen.is_none() {
        return Ok(None);
    }
    let live: Arc<dyn Live> = Arc::clone(shared) as Arc<dyn Live>;
    let server = AdminServer::start(control.as_deref(), config.admin_listen, live)?;
    shared.learn_admin(server.control().map(Into::into), server.admin());
    Ok(Some(server))
}

/// A name that no other instance has: two proxies in a chain are no loop.
fn random_pseudonym() -> String {
    let mut bytes = [0; 4];
    // Without randomness the process number still tells instances of one machine apart.
    if getrandom::fill(&mut bytes).is_err() {
        bytes = std::process::id().to_ne_bytes();
    }
    format!("sepia-{:08x}", u32::from_ne_bytes(bytes))
}

/// Every connection is a descriptor: as many as the system allows.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // What was allowed before stays allowed if this is refused.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// The addresses of an engine's listeners.
pub(crate) fn addresses(facts: &Facts) -> Vec<ListenAddress> {
    facts.listeners.iter().map(|listener| listener.address.clone()).collect()
}
