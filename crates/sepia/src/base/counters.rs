//! Counters and gauges: declared once, counted per worker, added up when somebody asks.
//!
//! A worker owns its cells and is their only writer, so that counting is a load and a store without
//! a locked instruction and without a cache line shared between cores. Readers may see a value that
//! is a moment old; they never see a torn one. The sentence of each row is what `sepia status`,
//! `/metrics` and the reference page say.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::hop::Hop;
use super::reason::Reason;

macro_rules! declare {
    (
        $(#[$outer:meta])* $kind:ident;
        $($variant:ident, $name:literal, $unit:ident, $sentence:literal;)+
    ) => {
        $(#[$outer])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        #[repr(u8)]
        pub enum $kind {
            $(#[doc = $sentence] $variant,)+
        }

        impl $kind {
            /// All of them, in the table's order.
            pub const ALL: &[$kind] = &[$($kind::$variant),+];

            /// The name in metrics, without prefix and suffix.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $($kind::$variant => $name,)+ }
            }

            /// What it counts, for a person.
            #[must_use]
            pub const fn sentence(self) -> &'static str {
                match self { $($kind::$variant => $sentence,)+ }
            }

            /// What one of it is.
            #[must_use]
            pub const fn unit(self) -> Unit {
                match self { $($kind::$variant => Unit::$unit,)+ }
            }
        }
    };
}

/// What a counter counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Unit {
    /// Things: shown as a plain number.
    Count,
    /// Bytes: shown with a binary unit.
    Bytes,
}

declare! {
    /// What only grows.
    Counter;
    SessionsAccepted, "sessions_accepted", Count, "Client connections accepted.";
    Exchanges, "exchanges", Count, "Requests answered, one way or another.";
    Hits, "hits", Count, "Requests answered from a fresh stored response.";
    StaleHits, "stale_hits", Count, "Requests answered stale, by a named grant.";
    Misses, "misses", Count, "Requests for which nothing was stored.";
    Validations, "validations", Count, "Stored responses validated with their origin server.";
    Freshened, "freshened", Count, "Validations that the origin server answered with 304.";
    Joined, "joined", Count, "Requests answered from a fetch that was already in flight.";
    Passes, "passes", Count, "Requests passed to the origin server without the cache.";
    Stored, "stored", Count, "Responses stored.";
    Evicted, "evicted", Count, "Stored responses evicted for room.";
    Invalidated, "invalidated", Count, "Stored responses invalidated by an unsafe method.";
    BytesToClients, "bytes_to_clients", Bytes, "Bytes written to clients.";
    BytesFromClients, "bytes_from_clients", Bytes, "Bytes read from clients.";
    BytesFromOrigins, "bytes_from_origins", Bytes, "Bytes read from origin servers.";
    BytesToOrigins, "bytes_to_origins", Bytes, "Bytes written to origin servers.";
    OriginConnects, "origin_connects", Count, "Connections opened to origin servers.";
    OriginConnectFailures, "origin_connect_failures", Count,
        "Connections to origin servers that could not be opened.";
    OriginReuses, "origin_reuses", Count, "Requests sent over an idle connection.";
    OriginRetries, "origin_retries", Count, "Requests sent a second time on a fresh connection.";
    Tunnels, "tunnels", Count, "Tunnels opened by CONNECT or Upgrade.";
    TunnelBytes, "tunnel_bytes", Bytes, "Bytes passed through tunnels, both ways.";
    LocalAnswers, "local_answers", Count, "Requests answered by the proxy itself.";
    Repairs, "repairs", Count, "Faults in response heads repaired before they were passed on.";
    LogLinesDropped, "log_lines_dropped", Count, "Access log lines lost to a slow or gone reader.";
    Reloads, "reloads", Count, "Configurations taken over while running.";
    ReloadFailures, "reload_failures", Count, "Configurations refused; the old one went on.";
    Panics, "panics", Count, "Exchanges ended by a fault of this program.";
}

declare! {
    /// What goes up and down.
    Gauge;
    SessionsOpen, "sessions_open", Count, "Client connections open now.";
    TunnelsOpen, "tunnels_open", Count, "Tunnels open now.";
    OriginsConnected, "origin_connections_working", Count,
        "Connections to origin servers that carry an exchange or a tunnel now.";
    OriginsIdle, "origin_connections_idle", Count,
        "Connections to origin servers that wait for a request now.";
    HopAccept, "sessions_at_accept", Count, "Sessions at the hop accept now.";
    HopDecode, "sessions_at_decode", Count, "Sessions at the hop decode now.";
    HopDecide, "sessions_at_decide", Count, "Sessions at the hop decide now.";
    HopLookup, "sessions_at_lookup", Count, "Sessions at the hop lookup now.";
    HopForward, "sessions_at_forward", Count, "Sessions at the hop forward now.";
    HopAdmit, "sessions_at_admit", Count, "Sessions at the hop admit now.";
    HopRespond, "sessions_at_respond", Count, "Sessions at the hop respond now.";
    HopDeliver, "sessions_at_deliver", Count, "Sessions at the hop deliver now.";
}

impl Gauge {
    /// The gauge of the sessions that are at this hop.
    #[must_use]
    pub const fn at(hop: Hop) -> Gauge {
        match hop {
            Hop::Accept => Gauge::HopAccept,
            Hop::Decode => Gauge::HopDecode,
            Hop::Decide => Gauge::HopDecide,
            Hop::Lookup => Gauge::HopLookup,
            Hop::Forward => Gauge::HopForward,
            Hop::Admit => Gauge::HopAdmit,
            Hop::Respond => Gauge::HopRespond,
            Hop::Deliver => Gauge::HopDeliver,
        }
    }
}

/// Where each part of the table begins among the cells.
const FIRST_GAUGE: usize = Counter::ALL.len();
const FIRST_REASON: usize = FIRST_GAUGE + Gauge::ALL.len();
const CELLS: usize = FIRST_REASON + Reason::ALL.len();
const CELLS_PER_LINE: usize = 16;

/// Two cache lines, because the prefetcher of common processors fetches them in pairs.
#[repr(align(128))]
#[derive(Default)]
struct Line([AtomicU64; CELLS_PER_LINE]);

struct Cells(Box<[Line]>);

impl Cells {
    fn new() -> Self {
        Cells((0..CELLS.div_ceil(CELLS_PER_LINE)).map(|_| Line::default()).collect())
    }

    fn cell(&self, index: usize) -> &AtomicU64 {
        &self.0[index / CELLS_PER_LINE].0[index % CELLS_PER_LINE]
    }
}

/// The writing end: owned by one worker, movable to its thread, never shared.
///
/// `add`, `count`, `raise` and `lower` write; [`Counters::reader`] makes reading ends.
/// The type is not `Sync` and not `Clone`, which is what makes a plain load and store correct.
pub struct Counters {
    cells: Arc<Cells>,
    single_writer: PhantomData<Cell<()>>,
}

impl Counters {
    /// Cells that all stand at zero.
    #[must_use]
    pub fn new() -> Self {
        Counters { cells: Arc::new(Cells::new()), single_writer: PhantomData }
    }

    /// A reading end of these cells.
    #[must_use]
    pub fn reader(&self) -> CounterReader {
        CounterReader { cells: Arc::clone(&self.cells) }
    }

    /// Adds to a counter.
    pub fn add(&self, counter: Counter, amount: u64) {
        self.write(counter as usize, amount);
    }

    /// Counts one occurrence of a reason.
    pub fn count(&self, reason: Reason) {
        self.write(FIRST_REASON + reason as usize, 1);
    }

    /// Raises a gauge by one.
    pub fn raise(&self, gauge: Gauge) {
        self.write(FIRST_GAUGE + gauge as usize, 1);
    }

    /// Lowers a gauge by one. The one who raised it may have been another worker: cells wrap, and
    /// only their sum is ever shown.
    pub fn lower(&self, gauge: Gauge) {
        self.write(FIRST_GAUGE + gauge as usize, 1_u64.wrapping_neg());
    }

    fn write(&self, index: usize, amount: u64) {
        let cell = self.cells.cell(index);
        cell.store(cell.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Counters {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Counters")
    }
}

impl Default for Counters {
    fn default() -> Self {
        Counters::new()
    }
}

/// A reading end, for the control socket.
#[derive(Clone)]
pub struct CounterReader {
    cells: Arc<Cells>,
}

/// The sums over all workers at about one moment.
#[derive(Clone)]
pub struct Snapshot {
    sums: Box<[u64]>,
}

impl Snapshot {
    /// Adds up all workers' cells.
    #[must_use]
    pub fn of(readers: &[CounterReader]) -> Self {
        let sum = |index: usize| {
            readers.iter().fold(0_u64, |sum, reader| {
                sum.wrapping_add(reader.cells.cell(index).load(Ordering::Relaxed))
            })
        };
        Snapshot { sums: (0..CELLS).map(sum).collect() }
    }

    /// The same with a counter that is kept elsewhere.
    #[must_use]
    pub fn with(mut self, counter: Counter, value: u64) -> Self {
        self.sums[counter as usize] = value;
        self
    }

    /// The sum of a counter.
    #[must_use]
    pub fn counter(&self, counter: Counter) -> u64 {
        self.sums[counter as usize]
    }

    /// The value of a gauge. A raise and its lower on two workers may be read in the wrong order;
    /// what would then be below zero is shown as zero.
    #[must_use]
    pub fn gauge(&self, gauge: Gauge) -> u64 {
        let value = self.sums[FIRST_GAUGE + gauge as usize];
        if value > u64::MAX / 2 { 0 } else { value }
    }

    /// How often a reason has occurred.
    #[must_use]
    pub fn reason(&self, reason: Reason) -> u64 {
        self.sums[FIRST_REASON + reason as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::{Counter, Counters, Gauge, Snapshot};
    use crate::base::{Hop, Reason};
    use std::collections::HashSet;

    #[test]
    fn a_snapshot_sums_all_workers() {
        let workers = [Counters::new(), Counters::new()];
        workers[0].add(Counter::Hits, 3);
        workers[1].add(Counter::Hits, 4);
        workers[1].count(Reason::HeadTooLarge);
        let readers: Vec<_> = workers.iter().map(Counters::reader).collect();
        let snapshot = Snapshot::of(&readers);
        assert_eq!(snapshot.counter(Counter::Hits), 7);
        assert_eq!(snapshot.reason(Reason::HeadTooLarge), 1);
        assert_eq!(snapshot.reason(Reason::Panicked), 0);
        assert_eq!(snapshot.counter(Counter::Misses), 0);
    }

    #[test]
    fn a_gauge_may_be_lowered_by_another_worker() {
        let workers = [Counters::new(), Counters::new()];
        workers[0].raise(Gauge::SessionsOpen);
        workers[0].raise(Gauge::SessionsOpen);
        workers[1].lower(Gauge::SessionsOpen);
        let readers: Vec<_> = workers.iter().map(Counters::reader).collect();
        assert_eq!(Snapshot::of(&readers).gauge(Gauge::SessionsOpen), 1);
        assert_eq!(Snapshot::of(&readers[1..]).gauge(Gauge::SessionsOpen), 0, "never negative");
    }

    #[test]
    fn a_worker_counts_while_another_thread_reads() {
        let counters = Counters::new();
        let reader = counters.reader();
        let worker = std::thread::spawn(move || {
            (0..10_000).for_each(|_| counters.add(Counter::Exchanges, 1));
        });
        let mut last = 0;
        while !worker.is_finished() {
            let now = Snapshot::of(std::slice::from_ref(&reader)).counter(Counter::Exchanges);
            assert!(now >= last, "a counter never goes back");
            last = now;
        }
        worker.join().unwrap();
        assert_eq!(Snapshot::of(&[reader]).counter(Counter::Exchanges), 10_000);
    }

    #[test]
    fn names_are_unique_and_fit_openmetrics() {
        let mut seen = HashSet::new();
        let names =
            Counter::ALL.iter().map(|c| c.name()).chain(Gauge::ALL.iter().map(|g| g.name()));
        for name in names {
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
            assert!(seen.insert(name), "{name} twice");
        }
    }

    #[test]
    fn every_hop_has_its_gauge() {
        for hop in Hop::ALL {
            assert_eq!(Gauge::at(*hop).name(), format!("sessions_at_{}", hop.name()));
        }
    }
}
