//! From a host name to addresses, off the worker's thread.
//!
//! The system's resolver is asked in the runtime's blocking pool, so that /etc/hosts and nsswitch
//! count. It tells no time to live; names are remembered for a fixed, short time instead.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use super::OriginSide;
use crate::base::{Reason, limits, millis};
use crate::config::literal;

/// Names that this worker has resolved.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: HashMap<String, Known>,
}

#[derive(Debug)]
struct Known {
    /// Milliseconds of the clock.
    until: u64,
    addresses: Result<Arc<[IpAddr]>, Reason>,
}

impl Names {
    fn find(&self, host: &str, now: u64) -> Option<Result<Arc<[IpAddr]>, Reason>> {
        let known = self.known.get(host).filter(|known| now < known.until)?;
        Some(known.addresses.clone())
    }

    fn learn(&mut self, host: &str, addresses: Result<Arc<[IpAddr]>, Reason>, now: u64) {
        if self.known.len() >= limits::RESOLVED_NAMES {
            self.known.retain(|_, known| now < known.until);
        }
        if self.known.len() >= limits::RESOLVED_NAMES {
            self.known.clear();
        }
        let kept = if addresses.is_ok() { limits::RESOLVED_FOR } else { limits::UNRESOLVED_FOR };
        let until = now.saturating_add(millis(kept));
        self.known.insert(host.to_owned(), Known { until, addresses });
    }

    /// Forgets a name whose addresses have failed, so that the next request asks again.
    pub(crate) fn forget(&mut self, host: &str) {
        self.known.remove(host);
    }
}

/// The addresses of a host: a literal, a remembered name, or what the system's resolver says.
pub(crate) async fn resolve(side: &OriginSide, host: &str) -> Result<Arc<[IpAddr]>, Reason> {
    if let Some(address) = literal(host.as_bytes()) {
        return Ok(Arc::new([address]));
    }
    let now = side.io.clock().millis();
    if let Some(known) = side.names.borrow().find(host, now) {
        return known;
    }
    let name = host.to_owned();
    let asked = side.io.spawn_blocking(move || look_up(&name)).await;
    let addresses = asked.unwrap_or(Err(Reason::OriginNameUnresolved));
    side.names.borrow_mut().learn(host, addresses.clone(), side.io.clock().millis());
    addresses
}

/// Asks the system; blocks.
fn look_up(host: &str) -> Result<Arc<[IpAddr]>, Reason> {
    let found = (host, 0).to_socket_addrs().map_err(|_| Reason::OriginNameUnresolved)?;
    let mut addresses: Vec<IpAddr> = Vec::new();
    for address in found.map(|address: SocketAddr| address.ip()) {
        if !addresses.contains(&address) && addresses.len() < limits::ADDRESSES_PER_NAME {
            addresses.push(address);
        }
    }
    if addresses.is_empty() { Err(Reason::OriginNameUnresolved) } else { Ok(addresses.into()) }
}
