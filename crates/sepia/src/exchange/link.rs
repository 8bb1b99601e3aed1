//! What a fetch has to tell the one who ordered it. Both live on one worker, so that nothing is
//! locked.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use store::{ContentReader, Stored};

use super::status::Handling;
use crate::base::Reason;
use crate::origin::Incoming;

/// What a fetch came to.
pub(crate) enum Fetched {
    /// A response, stored or passing through; the reader is attached from its first byte.
    Response { stored: Arc<Stored>, reader: Option<ContentReader>, handling: Handling },
    /// The origin switched protocols: its connection is a tunnel from here on.
    Switched(Box<Incoming>),
}

/// What a fetch has to tell.
pub(crate) enum News {
    /// An interim response (1xx), encoded.
    Interim(Vec<u8>),
    /// The final outcome.
    Outcome(Result<Fetched, Reason>),
}

/// The ear of the one who ordered a fetch.
#[derive(Default)]
pub(crate) struct Link {
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    interim: VecDeque<Vec<u8>>,
    outcome: Option<Result<Fetched, Reason>>,
    waker: Option<Waker>,
}

impl Link {
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.borrow_mut();
        change(&mut state);
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    /// The next that the fetch has to tell; the outcome comes last and once.
    pub(crate) fn poll_news(&self, cx: &Context<'_>) -> Poll<News> {
        let mut state = self.state.borrow_mut();
        if let Some(interim) = state.interim.pop_front() {
            return Poll::Ready(News::Interim(interim));
        }
        if let Some(outcome) = state.outcome.take() {
            return Poll::Ready(News::Outcome(outcome));
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// The fetch's own end; if its task is lost before it has told an outcome, that is one.
pub(super) struct Teller(Rc<Link>);

impl Teller {
    pub(super) fn new(link: &Rc<Link>) -> Self {
        Teller(Rc::clone(link))
    }

    pub(super) fn interim(&self, head: Vec<u8>) {
        self.0.change(|state| state.interim.push_back(head));
    }

    pub(super) fn outcome(&self, outcome: Result<Fetched, Reason>) {
        self.0.change(|state| state.outcome = Some(outcome));
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.0.change(|state| {
            state.outcome.get_or_insert(Err(Reason::Panicked));
        });
    }
}
