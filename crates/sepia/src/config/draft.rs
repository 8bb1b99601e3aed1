//! A configuration while it is being filled in, by the command line or by a file.
//!
//! It begins as the defaults, takes one value after another from the options' setters, and becomes
//! a [`Config`] only when each listener has what its role needs.

use std::path::Path;

use ipnet::IpNet;

use super::{
    Config, Forward, HostHeader, ListenAddress, Listener, OriginAddress, PortRange, Reverse, Role,
    Timeouts, memory,
};
use crate::base::limits;
use std::time::Duration;

/// The configuration so far, and the listener whose options are being set.
#[derive(Clone, Debug)]
pub struct Draft {
    pub(super) config: Config,
    pub(super) listener: ListenerDraft,
}

/// A listener so far.
#[derive(Clone, Debug)]
pub(super) struct ListenerDraft {
    pub(super) addresses: Vec<ListenAddress>,
    pub(super) role: Option<RoleName>,
    pub(super) to: Vec<OriginAddress>,
    pub(super) host_header: HostHeader,
    pub(super) connect_ports: Vec<PortRange>,
    pub(super) allow_private: Vec<IpNet>,
}

impl Default for ListenerDraft {
    fn default() -> Self {
        ListenerDraft {
            addresses: Vec::new(),
            role: None,
            to: Vec::new(),
            host_header: HostHeader::Keep,
            connect_ports: vec![PortRange { first: 443, last: 443 }],
            allow_private: Vec::new(),
        }
    }
}

/// A role without its options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RoleName {
    /// A gateway.
    Reverse,
    /// A proxy that the client has chosen.
    Forward,
}

impl RoleName {
    /// Both roles.
    pub const ALL: &[RoleName] = &[RoleName::Reverse, RoleName::Forward];

    /// The word in the file and the name of the command.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            RoleName::Reverse => "reverse",
            RoleName::Forward => "forward",
        }
    }

    /// Where the command of this name listens if nothing else is said.
    #[must_use]
    pub const fn default_listen(self) -> &'static str {
        match self {
            RoleName::Reverse => "127.0.0.1:8080",
            RoleName::Forward => "127.0.0.1:8123",
        }
    }
}

/// What a listener lacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lack {
    Address,
    Role,
    To,
}

impl Lack {
    /// The option that is missing.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Lack::Address => "address",
            Lack::Role => "role",
            Lack::To => "to",
        }
    }
}

impl Draft {
    /// The defaults, on this machine.
    #[must_use]
    pub fn new() -> Self {
        Draft { config: defaults(), listener: ListenerDraft::default() }
    }

    /// Turns the listener being set into one for each of its addresses, and begins another.
    /// Returns what it lacks, which leaves it out.
    pub(super) fn end_listener(&mut self) -> Vec<Lack> {
        let draft = std::mem::take(&mut self.listener);
        let is_aimless = draft.role == Some(RoleName::Reverse) && draft.to.is_empty();
        let lacks = [
            (draft.addresses.is_empty(), Lack::Address),
            (draft.role.is_none(), Lack::Role),
            (is_aimless, Lack::To),
        ];
        let lacks: Vec<_> = lacks.into_iter().filter(|(lacks, _)| *lacks).map(|l| l.1).collect();
        let Some(role) = draft.role.filter(|_| lacks.is_empty()) else { return lacks };
        let role = match role {
            RoleName::Reverse => {
                Role::Reverse(Reverse { to: draft.to, host_header: draft.host_header })
            }
            RoleName::Forward => Role::Forward(Forward {
                connect_ports: draft.connect_ports,
                allow_private: draft.allow_private,
            }),
        };
        let listeners = draft.addresses.into_iter();
        let listeners = listeners.map(|address| Listener { address, role: role.clone() });
        self.config.listeners.extend(listeners);
        Vec::new()
    }

    /// Ends a configuration of one listener table, as the command line makes it.
    ///
    /// # Errors
    /// What it lacks, or which two addresses are one place.
    pub fn into_config(mut self, role: RoleName) -> Result<Config, String> {
        self.listener.role = Some(role);
        if let Some(lack) = self.end_listener().first() {
            return Err(format!("a listener needs `{}`", lack.key()));
        }
        let listeners = &self.config.listeners;
        for (index, one) in listeners.iter().enumerate() {
            let before = &listeners[..index];
            if let Some(other) = before.iter().find(|o| o.address.conflicts_with(&one.address)) {
                let (one, other) = (&one.address, &other.address);
                return Err(format!("two listeners on {one}: {other} has it already"));
            }
        }
        Ok(self.config)
    }
}

impl Default for Draft {
    fn default() -> Self {
        Draft::new()
    }
}

/// The defaults that depend on the machine, and those that do not; without listeners.
pub(super) fn defaults() -> Config {
    Config {
        listeners: Vec::new(),
        memory: memory::default_budget(Path::new("/")),
        workers: std::thread::available_parallelism().map_or(1, usize::from),
        trust: Vec::new(),
        pseudonym: None,
        timeouts: Timeouts::default(),
        heads: wire::HeadLimits {
            head_bytes: limits::HEAD_BYTES,
            line_bytes: limits::LINE_BYTES,
            fields: limits::FIELDS,
        },
        access_log: false,
        admin_listen: None,
        control: None,
        drain: Duration::from_secs(30),
        caching: caching::Options::default(),
        max_sessions: limits::SESSIONS,
    }
}
