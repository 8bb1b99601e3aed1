//! Random histories: an origin whose content changes, clients that ask for it in every way, and a
//! clock that jumps ahead. Whatever happens, every answer must be one that the origin has made,
//! whole or visibly cut, fresh as it says, and never older than a change that was confirmed.
//!
//! `SEPIA_SEEDS=a-b` runs those seeds instead of the usual few; a failure names its seed. The
//! choices follow from the seed, their interleaving does not.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sepia::base::{Counter, Gauge};
use sepia::config::{
    Config, HostHeader, ListenAddress, Listener, OriginAddress, Reverse, Role, Timeouts,
};
use sepia::{Clock, Proxy};
use testkit::script::DEADLINE;

use client::Client;
use origin::Origin;
use world::{START, World};

#[path = "histories/check.rs"]
mod check;
#[path = "histories/client.rs"]
mod client;
#[path = "histories/message.rs"]
mod message;
#[path = "histories/origin.rs"]
mod origin;
#[path = "histories/random.rs"]
mod random;
#[path = "histories/world.rs"]
mod world;

const CLIENTS: u64 = 4;
/// Batches of requests that each client sends.
const BATCHES: u64 = 30;
/// Budgets in bytes: one that evicts all the time, and one that never does.
const BUDGETS: [u64; 2] = [256 << 10, 64 << 20];
/// Longer than any history.
const NEVER: Duration = Duration::from_secs(1_000_000);

fn seeds() -> std::ops::RangeInclusive<u64> {
    let Ok(text) = std::env::var("SEPIA_SEEDS") else { return 1..=8 };
    let (first, last) = text.split_once('-').unwrap_or((&text, &text));
    let number = |text: &str| text.parse::<u64>().expect("SEPIA_SEEDS is a number or a-b");
    number(first)..=number(last)
}

/// Eight seeds in a row have every combination of budget, path and workers.
fn start(seed: u64, clock: &Clock, origin: &Origin) -> Proxy {
    let address = origin.address();
    let to = vec![OriginAddress { host: address.ip().to_string(), port: address.port() }];
    let role = Role::Reverse(Reverse { to, host_header: HostHeader::Keep });
    let address = ListenAddress::Tcp(([127, 0, 0, 1], 0).into());
    let mut config = Config::new(vec![Listener { address, role }]);
    config.memory = BUDGETS[usize::from(seed & 1 == 0)];
    config.workers = if seed & 2 == 0 { 1 } else { 3 };
    config.timeouts = Timeouts {
        head: NEVER,
        idle: NEVER,
        client: NEVER,
        connect: NEVER,
        first_byte: NEVER,
        silence: NEVER,
        tunnel_idle: NEVER,
    };
    let builder = Proxy::builder(config).clock(clock.clone()).straight_path(seed & 4 == 0);
    builder.start().expect("the proxy starts")
}

/// Waits until something is so, while time passes in the proxy.
fn until(what: &str, clock: &Clock, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited for {what}");
        clock.advance(Duration::from_secs(1));
        std::thread::yield_now();
    }
}

fn run(seed: u64) -> u64 {
    let clock = Clock::manual(i64::try_from(START).expect("this century"));
    let world = Arc::new(World::new(seed, clock.clone()));
    let origin = Origin::start(&world, seed);
    let proxy = start(seed, &clock, &origin);
    let Some(ListenAddress::Tcp(address)) = proxy.addresses().first().cloned() else {
        panic!("no TCP listener")
    };
    let clients = (0..CLIENTS).map(|number| {
        let client = Client::new(&world, address, seed, number);
        std::thread::spawn(move || client.run(BATCHES))
    });
    let clients: Vec<_> = clients.collect();
    let failed = clients.into_iter().filter_map(|client| client.join().err()).count();
    if failed > 0 {
        // The proxy may be stuck: it cannot be drained.
        std::mem::forget(proxy);
        panic!("a client of SEPIA_SEEDS={seed} has failed, see above");
    }
    check_rest(&proxy, &clock, seed);
    Client::new(&world, address, seed, CLIENTS).change_all();
    let is_empty = || proxy.store_use().iter().all(|(_, bytes)| *bytes == 0);
    until("an empty store once all has changed", &clock, is_empty);
    let hits = proxy.counters().counter(Counter::Hits);
    drop(proxy);
    origin.finish();
    hits
}

/// When all clients have gone, nothing is left at work and the budget holds what is stored.
fn check_rest(proxy: &Proxy, clock: &Clock, seed: u64) {
    for gauge in [Gauge::SessionsOpen, Gauge::OriginsConnected] {
        until(gauge.name(), clock, || proxy.counters().gauge(gauge) == 0);
    }
    assert_eq!(proxy.counters().counter(Counter::Panics), 0, "seed {seed}");
    let used: u64 = proxy.store_use().iter().map(|(_, bytes)| bytes).sum();
    assert!(used <= BUDGETS[usize::from(seed & 1 == 0)], "{used} bytes, seed {seed}");
}

#[test]
fn every_answer_of_a_random_history_is_one_that_may_be() {
    let hits: u64 = seeds().map(run).sum();
    assert!(hits > 0, "histories that never hit show nothing");
}
