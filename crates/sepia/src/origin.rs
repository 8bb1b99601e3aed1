//! The origin side: from a plan to a response head, over a connection that is as old as it can be.
//!
//! [`forward`](forward::forward) is hop 5. Origins are known to the whole process (their slots are
//! counted there); connections and resolved names belong to one worker.

pub(crate) mod connect;
pub(crate) mod connection;
pub(crate) mod content;
pub(crate) mod forward;
pub(crate) mod pool;
pub(crate) mod registry;
pub(crate) mod request;
pub(crate) mod resolve;
pub(crate) mod upload;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use crate::base::Counters;
use crate::io::Io;

pub(crate) use connect::Destination;
pub(crate) use connection::OriginConnection;
pub(crate) use forward::{Incoming, Outgoing, Terms, forward};
pub(crate) use registry::{Origin, Origins};

/// One worker's side towards the origins.
#[derive(Debug)]
pub(crate) struct OriginSide {
    pub(crate) io: Rc<Io>,
    pub(crate) counters: Rc<Counters>,
    pub(crate) origins: Arc<Origins>,
    pub(crate) pool: RefCell<pool::Pool>,
    pub(crate) names: RefCell<resolve::Names>,
}

impl OriginSide {
    pub(crate) fn new(io: Rc<Io>, counters: Rc<Counters>, origins: Arc<Origins>) -> Self {
        OriginSide { io, counters, origins, pool: RefCell::default(), names: RefCell::default() }
    }
}
