//! What all threads of a running proxy share: for the admin side, for reload and drain.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use store::{Kind, Store};

use super::listeners::{Listeners, low_backlog_cap};
use super::mail::{Mail, Mailbox};
use crate::admin::{Facts, Live, OriginLine};
use crate::base::{Counter, CounterReader, Counters, Level, Snapshot};
use crate::config::{Config, Settings};
use crate::io::clock::Clock;
use crate::log::Notices;
use crate::origin::Origins;

/// What [`Shared`] is made of.
pub(super) struct Parts {
    pub(super) settings: Arc<Settings>,
    pub(super) store: Arc<Store>,
    pub(super) counters: Vec<CounterReader>,
    pub(super) mailboxes: Vec<Arc<Mailbox>>,
    pub(super) listeners: Listeners,
    pub(super) clock: Clock,
    pub(super) reload_from: Option<PathBuf>,
    pub(super) has_notices: bool,
}

/// The part of a running proxy that every thread may touch.
pub(crate) struct Shared {
    settings: Mutex<Arc<Settings>>,
    store: Arc<Store>,
    origins: Arc<Origins>,
    counters: Vec<CounterReader>,
    /// What is counted outside the workers.
    own: Mutex<Counters>,
    mailboxes: Vec<Arc<Mailbox>>,
    listeners: Mutex<Listeners>,
    clock: Clock,
    started: u64,
    reload_from: Option<PathBuf>,
    is_draining: AtomicBool,
    cut: AtomicU64,
    admin: OnceLock<(Option<PathBuf>, Option<SocketAddr>)>,
    notices: Option<Arc<Notices>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(super) fn new(parts: Parts) -> Self {
        let own = Counters::new();
        let mut counters = parts.counters;
        counters.push(own.reader());
        let shared = Shared {
            settings: Mutex::new(parts.settings),
            store: parts.store,
            origins: Arc::default(),
            counters,
            own: Mutex::new(own),
            mailboxes: parts.mailboxes,
            listeners: Mutex::new(parts.listeners),
            started: parts.clock.millis(),
            clock: parts.clock,
            reload_from: parts.reload_from,
            is_draining: AtomicBool::new(false),
            cut: AtomicU64::new(0),
            admin: OnceLock::new(),
            // Without its thread notices are lost, and the proxy works all the same.
            notices: parts.has_notices.then(Notices::to_stderr).and_then(Result::ok).map(Arc::new),
        };
        if let Some(cap) = low_backlog_cap() {
            shared.say(
                Level::Warn,
                &format!("net.core.somaxconn caps accept queues at {cap}; bursts need more"),
            );
        }
        shared
    }

    pub(super) fn learn_admin(&self, control: Option<PathBuf>, admin: Option<SocketAddr>) {
        // Set once, before anybody can ask.
        let _ = self.admin.set((control, admin));
    }

    pub(super) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&locked(&self.settings))
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    pub(super) fn origins(&self) -> &Arc<Origins> {
        &self.origins
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(super) fn notices(&self) -> Option<Arc<Notices>> {
        self.notices.clone()
    }

    pub(super) fn say(&self, level: Level, text: &str) {
        if let Some(notices) = &self.notices {
            notices.say(level, self.clock.moment(), text);
        }
    }

    /// Exchanges that a drain cut off when its time was over.
    pub(super) fn note_cut(&self, count: usize) {
        self.cut.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn cut(&self) -> u64 {
        self.cut.load(Ordering::Relaxed)
    }

    /// Begins the end: readiness off, exchanges in hand are finished.
    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Ordering::SeqCst);
        for mailbox in &self.mailboxes {
            mailbox.post(Mail::Drain);
        }
    }

    /// Takes a configuration over, if it could be loaded; counts and tells the outcome.
    ///
    /// # Errors
    /// Why the old configuration goes on.
    pub(crate) fn reload_with(&self, loaded: Result<Config, String>) -> Result<String, String> {
        let taken_over = loaded.and_then(|config| self.take_over(config));
        let own = locked(&self.own);
        match &taken_over {
            Ok(told) => {
                own.add(Counter::Reloads, 1);
                self.say(Level::Info, told);
            }
            Err(error) => {
                own.add(Counter::ReloadFailures, 1);
                self.say(Level::Error, &format!("the old configuration goes on: {error}"));
            }
        }
        taken_over
    }

    /// Takes a configuration over: roles, options and listeners. Connections and store stay.
    ///
    /// # Errors
    /// A listener that cannot be bound; then everything stays as it was.
    fn take_over(&self, mut config: Config) -> Result<String, String> {
        let mut listeners = locked(&self.listeners);
        if self.is_draining.load(Ordering::SeqCst) {
            return Err("this instance is draining".to_owned());
        }
        let old = self.settings();
        let first_new = listeners.next_site();
        for listener in &mut config.listeners {
            let is_known = old
                .sites
                .iter()
                .any(|site| site.is_open && site.listener.address == listener.address);
            if !is_known {
                match listeners.bind(&listener.address) {
                    Ok(bound) => listener.address = bound,
                    Err(error) => {
                        listeners.forget_waiting(first_new);
                        return Err(error.to_string());
                    }
                }
            }
        }
        let unchangeable = keep_unchangeable(&old.config, &mut config);
        let settings = Arc::new(old.after(config));
        let closed: Vec<u16> = old
            .sites
            .iter()
            .zip(&settings.sites)
            .zip(0..)
            .filter(|((before, after), _)| before.is_open && !after.is_open)
            .map(|(_, site)| site)
            .collect();
        for (worker, mailbox) in self.mailboxes.iter().enumerate() {
            mailbox.post(Mail::Reload {
                settings: Arc::clone(&settings),
                opened: listeners.take(worker),
                closed: closed.clone(),
            });
        }
        for site in &closed {
            listeners.close(*site);
        }
        let (opened, gone) = (listeners.next_site() - first_new, closed.len());
        *locked(&self.settings) = settings;
        let mut told =
            format!("configuration taken over; listeners: {opened} opened, {gone} closed");
        if !unchangeable.is_empty() {
            told.push_str(&format!("; {} only change with a restart", unchangeable.join(", ")));
        }
        Ok(told)
    }
}

/// Leaves options as they are that a running proxy cannot change; returns those that differed.
fn keep_unchangeable(old: &Config, new: &mut Config) -> Vec<&'static str> {
    let differ = [
        ("memory", keep(&old.memory, &mut new.memory)),
        ("workers", keep(&old.workers, &mut new.workers)),
        ("log.access", keep(&old.access_log, &mut new.access_log)),
        ("admin.listen", keep(&old.admin_listen, &mut new.admin_listen)),
        ("control", keep(&old.control, &mut new.control)),
    ];
    differ.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
}

/// Leaves one option as it is; returns whether it differed.
fn keep<T: PartialEq + Clone>(old: &T, new: &mut T) -> bool {
    let differs = old != new;
    new.clone_from(old);
    differs
}

impl Live for Shared {
    fn snapshot(&self) -> Snapshot {
        Snapshot::of(&self.counters).with(Counter::Evicted, self.store.usage().evicted)
    }

    fn store_use(&self) -> Vec<(&'static str, u64)> {
        let usage = self.store.usage();
        let kinds = [
            (Kind::Content, usage.content),
            (Kind::Heads, usage.heads),
            (Kind::Index, usage.index),
        ];
        kinds.map(|(kind, bytes)| (kind.name(), bytes)).into()
    }

    fn origins(&self) -> Vec<OriginLine> {
        let mut lines: Vec<OriginLine> = self
            .origins
            .all()
            .iter()
            .map(|origin| OriginLine {
                address: format!("{}:{}", origin.host, origin.port),
                open: origin.open.load(Ordering::Relaxed),
                idle: origin.idle.load(Ordering::Relaxed),
                waiting: origin.load().1 as u64,
                failures: origin.failures.load(Ordering::Relaxed),
            })
            .collect();
        lines.sort_by(|one, two| one.address.cmp(&two.address));
        lines
    }

    fn ready(&self) -> bool {
        !self.is_draining.load(Ordering::SeqCst)
    }

    fn reload(&self) -> Result<String, String> {
        self.reload_with(match &self.reload_from {
            None => Err("this instance was started without a configuration file".to_owned()),
            Some(path) => Config::load(path).map_err(|error| error.to_string()),
        })
    }

    fn facts(&self) -> Facts {
        let settings = self.settings();
        let (control, admin_listen) = self.admin.get().cloned().unwrap_or_default();
        Facts {
            listeners: settings
                .sites
                .iter()
                .filter(|site| site.is_open)
                .map(|site| site.listener.clone())
                .collect(),
            memory: settings.config.memory,
            workers: settings.config.workers,
            uptime: Duration::from_millis(self.clock.millis().saturating_sub(self.started)),
            pseudonym: settings.pseudonym.clone(),
            control,
            admin_listen,
        }
    }
}
