//! The compiled configuration: one immutable value that the engine swaps as a whole.
//!
//! Command line and file both end here, through the same table of options (`config/option.rs`), so
//! that neither knows something which the other does not. Nothing in this type can be invalid:
//! whoever holds a [`Config`] need not check it again.

pub mod address;
mod address_rule;
pub mod draft;
pub mod file;
mod memory;
pub mod mistake;
mod nearest;
pub mod option;
pub mod reference;
mod settings;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use address::{ListenAddress, OriginAddress, PortRange};
pub(crate) use address_rule::{AddressRule, literal};
pub use file::LoadError;
use ipnet::IpNet;
pub use mistake::Mistakes;
pub(crate) use settings::{Settings, Site};

/// Everything that an operator can choose, in the engine's own terms.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where clients connect, and as what this proxy answers there; at least one.
    pub listeners: Vec<Listener>,
    /// The budget for stored responses, their heads and the index, in bytes.
    pub memory: u64,
    /// Threads that serve clients.
    pub workers: usize,
    /// Peers whose Forwarded, X-Forwarded-* and X-Request-ID are believed.
    pub trust: Vec<IpNet>,
    /// The name in Via (RFC 9110 §7.6.3); `None` is random for the life of the process.
    pub pseudonym: Option<String>,
    /// The separate clocks of a session, a fetch and a tunnel.
    pub timeouts: Timeouts,
    /// Bounds of request and response heads.
    pub heads: wire::HeadLimits,
    /// Whether every exchange writes a line to standard output.
    pub access_log: bool,
    /// Where `/metrics` and `/ready` are served; nowhere if `None`.
    pub admin_listen: Option<SocketAddr>,
    /// The control socket; `None` is the default place, named after the first listener.
    pub control: Option<PathBuf>,
    /// The most that a drain may take.
    pub drain: Duration,
    /// What RFC 9111 leaves to a cache's operator.
    pub caching: caching::Options,
    /// Client connections open at once.
    pub max_sessions: usize,
}

impl Config {
    /// The defaults on this machine, with these listeners.
    #[must_use]
    pub fn new(listeners: Vec<Listener>) -> Self {
        Config { listeners, ..draft::defaults() }
    }
}

/// An address with the role that the proxy has there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listener {
    /// Where clients connect.
    pub address: ListenAddress,
    /// As what they are answered.
    pub role: Role,
}

/// As what the proxy answers on a listener (RFC 9110 §3.7).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Role {
    /// A gateway in front of origin servers.
    Reverse(Reverse),
    /// A proxy that the client has chosen.
    Forward(Forward),
}

/// A gateway's own part of the configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reverse {
    /// The origin servers, taken in turn; at least one.
    pub to: Vec<OriginAddress>,
    /// The Host that they are told, which is also the host in the cache key.
    pub host_header: HostHeader,
}

/// Which Host goes to an origin server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HostHeader {
    /// The client's.
    Keep,
    /// The origin server's own address.
    Origin,
    /// This one.
    Value(String),
}

/// A forward proxy's own part of the configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Forward {
    /// Ports that CONNECT may name.
    pub connect_ports: Vec<PortRange>,
    /// Private networks that a name may resolve to.
    pub allow_private: Vec<IpNet>,
}

/// The separate clocks; none of them is zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeouts {
    /// From a request's first byte to the end of its head.
    pub head: Duration,
    /// A session without a request.
    pub idle: Duration,
    /// A client that neither reads its answer nor sends its content.
    pub client: Duration,
    /// Opening a connection to an origin server.
    pub connect: Duration,
    /// From the end of a request to the first byte of its response head.
    pub first_byte: Duration,
    /// Silence in the middle of a response's content.
    pub silence: Duration,
    /// A tunnel through which no byte goes.
    pub tunnel_idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            head: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            client: Duration::from_secs(30),
            connect: Duration::from_secs(5),
            first_byte: Duration::from_secs(60),
            silence: Duration::from_secs(60),
            tunnel_idle: Duration::from_secs(600),
        }
    }
}
