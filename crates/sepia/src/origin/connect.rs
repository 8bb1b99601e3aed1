//! A connection to an origin: an idle one, or a new one to the first address that answers.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use mio::net::TcpStream;
use tokio::select;

use super::OriginSide;
use super::connection::OriginConnection;
use super::registry::Origin;
use super::resolve::resolve;
use crate::base::{Counter, Reason, millis};
use crate::config::{AddressRule, Timeouts};
use crate::io::{Owner, Peer, Sleep, Socket, Stream};

/// Where a request may go: the origins in the order in which they are tried.
#[derive(Debug)]
pub(crate) struct Destination {
    pub(crate) origins: Vec<Arc<Origin>>,
    pub(crate) rule: AddressRule,
}

/// Opens a connection. Every address of the origin is tried, each for the connect timeout.
pub(crate) async fn connect(
    side: &OriginSide,
    origin: &Arc<Origin>,
    rule: &AddressRule,
    timeouts: &Timeouts,
) -> Result<OriginConnection, Reason> {
    let patience = millis(timeouts.connect);
    let addresses = select! {
        addresses = resolve(side, &origin.host) => addresses?,
        () = Sleep::for_millis(&side.io, patience) => return Err(Reason::OriginNameTimeout),
    };
    let mut failure = Reason::PrivateTarget;
    for address in addresses.iter().filter(|address| rule.allows(**address)) {
        side.counters.add(Counter::OriginConnects, 1);
        match connect_to(side, *address, origin, patience).await {
            Ok(connection) => return Ok(connection),
            Err(reason) => failure = reason,
        }
        side.counters.add(Counter::OriginConnectFailures, 1);
        origin.failures.fetch_add(1, Ordering::Relaxed);
    }
    side.names.borrow_mut().forget(&origin.host);
    Err(failure)
}

async fn connect_to(
    side: &OriginSide,
    address: IpAddr,
    origin: &Arc<Origin>,
    patience: u64,
) -> Result<OriginConnection, Reason> {
    let address = SocketAddr::new(address, origin.port);
    let socket = TcpStream::connect(address).map_err(|error| connect_reason(&error))?;
    // Requests are written whole; a segment that waits for an acknowledgement helps nobody.
    let _ = socket.set_nodelay(true);
    let inserted = side.io.insert(Socket::Tcp(socket), Peer::Ip(address), Owner::Origin);
    let id = inserted.map_err(|error| connect_reason(&error))?;
    let stream = Stream::hold(&side.io, id);
    origin.open.fetch_add(1, Ordering::Relaxed);
    let connection = OriginConnection::new(stream, origin, &side.counters);
    connection.stream().set_deadline_in(patience);
    let connected = connection.stream().connected().await;
    connection.stream().clear_deadline();
    connected.map_err(|error| connect_reason(&error))?;
    Ok(connection)
}

fn connect_reason(error: &io::Error) -> Reason {
    match error.kind() {
        io::ErrorKind::TimedOut => Reason::OriginConnectTimeout,
        io::ErrorKind::ConnectionRefused => Reason::OriginRefused,
        io::ErrorKind::ConnectionReset => Reason::OriginReset,
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            Reason::OriginUnreachable
        }
        _ if matches!(error.raw_os_error(), Some(EMFILE | ENFILE)) => Reason::DescriptorsExhausted,
        _ => Reason::OriginUnreachable,
    }
}

const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
