//! Instructions of a hit, counted by callgrind: a figure that does not depend on the machine's
//! mood. Two runs with different numbers of hits; start and end cancel out in the difference.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use super::probe::Probe;
use crate::{Outcome, sepia, workspace};

/// Hits in the two runs.
const FEW: usize = 2_000;
const MANY: usize = 12_000;

/// User instructions that one hit takes, on one connection that stays open.
///
/// # Errors
/// When Sepia or valgrind fails.
pub fn of_a_hit(binary: &Path, origin: SocketAddr) -> Outcome<f64> {
    let few = in_all(binary, origin, FEW)?;
    let many = in_all(binary, origin, MANY)?;
    Ok(many.saturating_sub(few) as f64 / (MANY - FEW) as f64)
}

fn in_all(binary: &Path, origin: SocketAddr, hits: usize) -> Outcome<u64> {
    let counts = workspace::target_folder().join(format!("callgrind-{}.out", std::process::id()));
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--quiet"]);
    valgrind.arg(format!("--callgrind-out-file={}", counts.display())).arg(binary);
    valgrind.args(["reverse", "--workers", "1", "--memory", "256MiB"]);
    valgrind.args(["--to", &format!("http://{origin}")]);
    let sepia = sepia::start(&mut valgrind)?;
    let mut probe = Probe::connect(sepia.address, "/")?;
    for _ in 0..hits {
        probe.ask()?;
    }
    drop(probe);
    sepia.server.stop()?;
    let written = workspace::read(&counts)?;
    std::fs::remove_file(&counts)?;
    total_in(&written).ok_or_else(|| "callgrind wrote no total".into())
}

fn total_in(written: &str) -> Option<u64> {
    let total = written
        .lines()
        .find_map(|line| line.strip_prefix("totals: ").or_else(|| line.strip_prefix("summary: ")));
    total?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read() {
        assert_eq!(total_in("version: 1\nevents: Ir\n\ntotals: 123456\n"), Some(123_456));
        assert_eq!(total_in("summary: 99\nfn=(1)\n"), Some(99));
        assert_eq!(total_in("events: Ir"), None);
    }
}
