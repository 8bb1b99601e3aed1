//! `sepia status`: the running proxy for a person, or as JSON.
//!
//! Groups with aligned columns; each number has its sentence beside it, so that nobody has to look
//! up what a counter means.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

use super::live::{Facts, Live, OriginLine};
use crate::base::counters::Unit;
use crate::base::{ByteSize, Counter, Gauge, Hop, Period, Reason, Snapshot};
use crate::config::Role;

/// How much is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Amount {
    /// Counters and reasons that are not zero.
    NotZero,
    /// Everything.
    All,
}

/// A line of a group: value, name, sentence.
type Line = (String, &'static str, &'static str);

/// The text for people.
#[must_use]
pub fn text(live: &dyn Live, amount: Amount) -> String {
    let snapshot = live.snapshot();
    let mut out = String::new();
    encode_facts(&mut out, &live.facts(), live.ready());
    encode_ratio(&mut out, &snapshot);
    encode_group(&mut out, "Now", &gauges(&snapshot, amount));
    encode_group(&mut out, "Sessions by hop", &hops(&snapshot, amount));
    encode_group(&mut out, "Since the start", &counters(&snapshot, amount));
    encode_group(&mut out, "Reasons", &reasons(&snapshot, amount));
    encode_store(&mut out, &live.store_use(), live.facts().memory);
    encode_origins(&mut out, &live.origins());
    out
}

fn encode_facts(out: &mut String, facts: &Facts, is_ready: bool) {
    let state = if is_ready { "ready" } else { "draining" };
    let uptime = Period(Duration::from_secs(facts.uptime.as_secs()));
    let _ = writeln!(out, "sepia {} · {state} · up {uptime}", env!("CARGO_PKG_VERSION"));
    for listener in &facts.listeners {
        let role = match &listener.role {
            Role::Reverse(reverse) => {
                let to: Vec<_> = reverse.to.iter().map(ToString::to_string).collect();
                format!("gateway in front of {}", to.join(", "))
            }
            Role::Forward(_) => "forward proxy".into(),
        };
        let _ = writeln!(out, "  {} · {role}", listener.address);
    }
    let memory = ByteSize(facts.memory).rounded();
    let workers = facts.workers;
    let _ = writeln!(out, "  memory {memory} · workers {workers} · as {} in Via", facts.pseudonym);
}

/// The one figure that everybody asks for first.
fn encode_ratio(out: &mut String, snapshot: &Snapshot) {
    let count = |counter| u128::from(snapshot.counter(counter));
    let from_cache = count(Counter::Hits) + count(Counter::StaleHits) + count(Counter::Joined);
    let exchanges = count(Counter::Exchanges);
    if let Some(per_mille) = (from_cache * 1000).checked_div(exchanges) {
        let (percent, tenth) = (per_mille / 10, per_mille % 10);
        let _ = writeln!(out, "  {percent}.{tenth} % of the answers came without an origin server");
    }
}

fn gauges(snapshot: &Snapshot, amount: Amount) -> Vec<Line> {
    let is_hop = |gauge: &Gauge| Hop::ALL.iter().any(|hop| Gauge::at(*hop) == *gauge);
    let shown = Gauge::ALL.iter().filter(|gauge| !is_hop(gauge));
    let lines = shown.map(|gauge| (snapshot.gauge(*gauge), gauge.name(), gauge.sentence()));
    chosen(lines, amount)
}

fn hops(snapshot: &Snapshot, amount: Amount) -> Vec<Line> {
    let line = |hop: &Hop| (snapshot.gauge(Gauge::at(*hop)), hop.name(), hop.sentence());
    chosen(Hop::ALL.iter().map(line), amount)
}

fn counters(snapshot: &Snapshot, amount: Amount) -> Vec<Line> {
    let values = Counter::ALL.iter().map(|counter| (snapshot.counter(*counter), *counter));
    let shown = values.filter(|(value, _)| *value != 0 || amount == Amount::All);
    let line = |(value, counter): (u64, Counter)| {
        let value = match counter.unit() {
            Unit::Count => grouped(value),
            Unit::Bytes => ByteSize(value).rounded(),
        };
        (value, counter.name(), counter.sentence())
    };
    shown.map(line).collect()
}

fn reasons(snapshot: &Snapshot, amount: Amount) -> Vec<Line> {
    let line = |reason: &Reason| (snapshot.reason(*reason), reason.token(), reason.sentence());
    chosen(Reason::ALL.iter().map(line), amount)
}

fn chosen(
    lines: impl Iterator<Item = (u64, &'static str, &'static str)>,
    amount: Amount,
) -> Vec<Line> {
    let shown = lines.filter(|(value, ..)| *value != 0 || amount == Amount::All);
    shown.map(|(value, name, sentence)| (grouped(value), name, sentence)).collect()
}

/// A group with its columns aligned; nothing for an empty one.
fn encode_group(out: &mut String, title: &str, lines: &[Line]) {
    if lines.is_empty() {
        return;
    }
    let values = lines.iter().map(|(value, ..)| value.chars().count()).max().unwrap_or(0);
    let names = lines.iter().map(|(_, name, _)| name.len()).max().unwrap_or(0);
    let _ = writeln!(out, "\n{title}");
    for (value, name, sentence) in lines {
        let _ = writeln!(out, "  {value:>values$}  {name:<names$}  {sentence}");
    }
}

fn encode_store(out: &mut String, kinds: &[(&'static str, u64)], budget: u64) {
    let used = kinds.iter().fold(0_u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
    let names = kinds.iter().map(|(kind, _)| kind.len()).max().unwrap_or(0);
    let (used, budget) = (ByteSize(used).rounded(), ByteSize(budget).rounded());
    let _ = writeln!(out, "\nStore: {used} of {budget}");
    for (kind, bytes) in kinds {
        let _ = writeln!(out, "  {kind:<names$}  {:>9}", ByteSize(*bytes).rounded());
    }
}

fn encode_origins(out: &mut String, origins: &[OriginLine]) {
    if origins.is_empty() {
        return;
    }
    let names = origins.iter().map(|origin| origin.address.chars().count()).max().unwrap_or(0);
    let _ = writeln!(out, "\nOrigin servers");
    let _ = writeln!(
        out,
        "  {:<names$}  {:>6}  {:>6}  {:>7}  {:>8}",
        "", "open", "idle", "waiting", "failures"
    );
    for OriginLine { address, open, idle, waiting, failures } in origins {
        let _ =
            writeln!(out, "  {address:<names$}  {open:>6}  {idle:>6}  {waiting:>7}  {failures:>8}");
    }
}

/// A number with its thousands apart: `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Everything as JSON, with names as in `/metrics`.
#[must_use]
pub fn json(live: &dyn Live) -> Value {
    let (snapshot, facts) = (live.snapshot(), live.facts());
    let listeners: Vec<_> = facts
        .listeners
        .iter()
        .map(|listener| {
            let role = match listener.role {
                Role::Reverse(_) => "reverse",
                Role::Forward(_) => "forward",
            };
            json!({ "address": listener.address.to_string(), "role": role })
        })
        .collect();
    let number = |name: &str, value: u64| (name.to_owned(), Value::from(value));
    let counters = Counter::ALL.iter().map(|c| number(c.name(), snapshot.counter(*c)));
    let gauges = Gauge::ALL.iter().map(|g| number(g.name(), snapshot.gauge(*g)));
    let reasons = Reason::ALL.iter().map(|r| number(r.token(), snapshot.reason(*r)));
    let store = live.store_use();
    let origin = |origin: &OriginLine| {
        json!({
            "address": origin.address,
            "open": origin.open,
            "idle": origin.idle,
            "waiting": origin.waiting,
            "failures": origin.failures,
        })
    };
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "ready": live.ready(),
        "uptime_seconds": facts.uptime.as_secs(),
        "listeners": listeners,
        "memory_bytes": facts.memory,
        "workers": facts.workers,
        "pseudonym": facts.pseudonym,
        "counters": Value::Object(counters.collect()),
        "gauges": Value::Object(gauges.collect()),
        "reasons": Value::Object(reasons.collect()),
        "store_bytes": Value::Object(store.iter().map(|(k, bytes)| number(k, *bytes)).collect()),
        "origins": live.origins().iter().map(origin).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::{Amount, grouped, json, text};
    use crate::admin::live::tests::Still;
    use crate::base::{Counter, Reason};

    #[test]
    fn what_an_operator_reads() {
        let version = env!("CARGO_PKG_VERSION");
        let expected = format!(
            "\
sepia {version} · ready · up 1h2m3s
  127.0.0.1:8080 · gateway in front of 127.0.0.1:3000
  memory 64.0 MiB · workers 2 · as sepia-5f3a in Via
  94.9 % of the answers came without an origin server

Now
  2  sessions_open  Client connections open now.

Sessions by hop
  1  forward  The request goes to an origin server and its response head is awaited.

Since the start
     1,300  exchanges         Requests answered, one way or another.
     1,234  hits              Requests answered from a fresh stored response.
  5.00 MiB  bytes_to_clients  Bytes written to clients.

Reasons
  3  origin-refused  The origin server refused the connection.

Store: 5.00 MiB of 64.0 MiB
  content   5.00 MiB
  heads     1.50 KiB
  index          0 B

Origin servers
                    open    idle  waiting  failures
  127.0.0.1:3000       4       3        0         2
"
        );
        assert_eq!(text(&Still::new(), Amount::NotZero), expected);
    }

    #[test]
    fn all_shows_every_sentence() {
        let text = text(&Still::new(), Amount::All);
        assert!(Counter::ALL.iter().all(|counter| text.contains(counter.sentence())));
        assert!(Reason::ALL.iter().all(|reason| text.contains(reason.sentence())));
    }

    #[test]
    fn json_has_everything() {
        let json = json(&Still::new());
        assert_eq!(json["counters"]["hits"], 1234);
        assert_eq!(json["gauges"]["sessions_open"], 2);
        assert_eq!(json["reasons"]["origin-refused"], 3);
        assert_eq!(json["listeners"][0]["address"], "127.0.0.1:8080");
        assert_eq!(json["store_bytes"]["heads"], 1536);
        assert_eq!(json["origins"][0]["idle"], 3);
    }

    #[test]
    fn thousands_stand_apart() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }
}
