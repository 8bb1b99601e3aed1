//! Mail to a worker from another thread.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use mio::{Registry, Token, Waker};

use super::listeners::Taken;
use crate::config::Settings;
use crate::io::ENGINE_TOKENS;

/// The mailbox's place among the engine's tokens.
pub(super) const MAILBOX_TOKEN: Token = Token(ENGINE_TOKENS);

/// What a worker is told.
pub(super) enum Mail {
    /// The configuration has changed: its settings, listeners to take up, sites to close.
    Reload { settings: Arc<Settings>, opened: Vec<Taken>, closed: Vec<u16> },
    /// Finish what is in hand and end.
    Drain,
}

/// One worker's mailbox. A reload and a drain are all that comes, so it stays short.
pub(super) struct Mailbox {
    mail: Mutex<Vec<Mail>>,
    waker: Arc<Waker>,
}

impl Mailbox {
    pub(super) fn new(registry: &Registry) -> io::Result<Self> {
        Ok(Mailbox {
            mail: Mutex::default(),
            waker: Arc::new(Waker::new(registry, MAILBOX_TOKEN)?),
        })
    }

    pub(super) fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    pub(super) fn post(&self, mail: Mail) {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner).push(mail);
        // A worker that has ended reads no mail.
        let _ = self.waker.wake();
    }

    pub(super) fn take(&self) -> Vec<Mail> {
        std::mem::take(&mut *self.mail.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
