//! The test bed: a proxy between a scripted origin and scripted clients, all on ephemeral ports,
//! with a clock that only the case moves.

use std::io::Write;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use sepia::base::{Counter, Gauge, Reason};
use sepia::config::{
    Config, Forward, HostHeader, ListenAddress, Listener, OriginAddress, Reverse, Role,
};
use sepia::{Clock, Proxy};
use testkit::script::{DEADLINE, ScriptedClient, ScriptedOrigin};

/// Seconds since the epoch at which every case begins: Sun, 06 Nov 2033 08:49:37 GMT.
pub const START: i64 = 2_014_879_777;

/// The same moment as an IMF-fixdate.
pub const START_DATE: &str = "Sun, 06 Nov 2033 08:49:37 GMT";

/// Runs a case on the straight path and by tasks.
pub fn each_path(case: impl Fn(Bed)) {
    for is_straight in [true, false] {
        case(Bed::new(is_straight));
    }
}

/// The same for two proxies.
pub fn each_pair(case: impl Fn(Bed, Bed)) {
    for is_straight in [true, false] {
        case(Bed::new(is_straight), Bed::new(is_straight));
    }
}

/// What a case changes in its configuration.
type Change = Box<dyn Fn(&mut Config)>;

/// How a case's proxy is made; [`Bed::gateway`] and its kin start it.
pub struct Bed {
    is_straight: bool,
    change: Vec<Change>,
    log_to: Option<Box<dyn Write + Send>>,
}

impl Bed {
    fn new(is_straight: bool) -> Self {
        Bed { is_straight, change: Vec::new(), log_to: None }
    }

    /// Changes the configuration before the start.
    pub fn with(mut self, change: impl Fn(&mut Config) + 'static) -> Self {
        self.change.push(Box::new(change));
        self
    }

    /// Writes the access log there.
    pub fn log_to(mut self, out: impl Write + Send + 'static) -> Self {
        self.log_to = Some(Box::new(out));
        self
    }

    /// A gateway in front of `origin`.
    pub fn gateway(self, origin: &ScriptedOrigin) -> Running {
        self.gateway_to(&[origin.address()])
    }

    /// A gateway in front of several origins, taken in turn.
    pub fn gateway_to(self, origins: &[SocketAddr]) -> Running {
        self.start(role_to(origins))
    }

    /// A forward proxy that opens tunnels to every port.
    pub fn forward(self) -> Running {
        let connect_ports = vec!["1-65535".parse().expect("a range")];
        self.start(Role::Forward(Forward { connect_ports, allow_private: Vec::new() }))
    }

    fn start(self, role: Role) -> Running {
        let address = ListenAddress::Tcp(([127, 0, 0, 1], 0).into());
        let mut config = Config::new(vec![Listener { address, role }]);
        config.workers = 1;
        config.memory = 64 << 20;
        config.pseudonym = Some("bed".into());
        self.change.iter().for_each(|change| change(&mut config));
        let clock = Clock::manual(START);
        let mut builder =
            Proxy::builder(config).clock(clock.clone()).straight_path(self.is_straight);
        if let Some(out) = self.log_to {
            builder = builder.log_to(out);
        }
        let proxy = builder.start().expect("the proxy starts");
        Running { _hurry: Hurry(clock.clone()), proxy, clock }
    }
}

/// The role of a gateway in front of these origins.
pub fn role_to(origins: &[SocketAddr]) -> Role {
    let to = origins
        .iter()
        .map(|address| OriginAddress { host: address.ip().to_string(), port: address.port() })
        .collect();
    Role::Reverse(Reverse { to, host_header: HostHeader::Keep })
}

/// A running proxy of a case.
pub struct Running {
    // Before the proxy: fields are dropped in this order.
    _hurry: Hurry,
    pub proxy: Proxy,
    pub clock: Clock,
}

/// Lets time fly when a case has failed: the proxy would else wait for ever, for a peer that has
/// ended or for a time that nobody lets pass.
struct Hurry(Clock);

impl Drop for Hurry {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let clock = self.0.clone();
        std::thread::spawn(move || {
            let deadline = Instant::now() + DEADLINE;
            while Instant::now() < deadline {
                clock.advance(Duration::from_secs(1));
                std::thread::yield_now();
            }
        });
    }
}

impl Running {
    /// The first listener's address.
    pub fn address(&self) -> SocketAddr {
        match self.proxy.addresses().first() {
            Some(ListenAddress::Tcp(address)) => *address,
            other => panic!("no TCP listener: {other:?}"),
        }
    }

    /// A new client connection.
    pub fn client(&self) -> ScriptedClient {
        ScriptedClient::connect(self.address())
    }

    /// Lets so many seconds pass.
    pub fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// What a counter stands at.
    pub fn count(&self, counter: Counter) -> u64 {
        self.proxy.counters().counter(counter)
    }

    /// What a gauge stands at.
    pub fn gauge(&self, gauge: Gauge) -> u64 {
        self.proxy.counters().gauge(gauge)
    }

    /// How often something ended for this reason.
    pub fn reasons(&self, reason: Reason) -> u64 {
        self.proxy.counters().reason(reason)
    }

    /// Waits until something is so in the running proxy: for states that no peer can see.
    ///
    /// # Panics
    /// When it is not so within the deadline of every expectation.
    #[track_caller]
    pub fn until(&self, what: &str, mut is_so: impl FnMut(&Running) -> bool) {
        let deadline = Instant::now() + DEADLINE;
        while !is_so(self) {
            assert!(Instant::now() < deadline, "waited for {what}");
            std::thread::yield_now();
        }
    }
}
