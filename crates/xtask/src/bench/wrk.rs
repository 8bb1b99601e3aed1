//! wrk as the closed-loop generator: one thread on one core, for about a second.

use std::net::SocketAddr;
use std::path::Path;

use super::floor::on_core;
use crate::{Outcome, children};

/// What wrk did.
#[derive(Debug, PartialEq)]
pub struct Load {
    /// Answers received.
    pub requests: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
}

/// Lets wrk ask for `path` for a second.
///
/// # Errors
/// When an answer was no success, or a connection failed: such a run measures something else.
pub fn run(core: usize, connections: usize, address: SocketAddr, path: &str) -> Outcome<Load> {
    let mut wrk = on_core(core, Path::new("wrk"));
    wrk.args(["-t1", "-d1s"]);
    wrk.args([format!("-c{connections}"), format!("http://{address}{path}")]);
    read(&children::output(&mut wrk)?)
}

fn read(said: &str) -> Outcome<Load> {
    let lines = || said.lines().map(str::trim);
    let is_fault = |line: &&str| line.starts_with("Socket errors") || line.starts_with("Non-2xx");
    if let Some(fault) = lines().find(is_fault) {
        return Err(format!("wrk: {fault}").into());
    }
    let summary = lines().find_map(|line| line.split_once(" requests in "));
    let (requests, behind) = summary.ok_or("wrk printed no summary")?;
    let took = behind.split(',').next().unwrap_or_default();
    let seconds = seconds(took).ok_or_else(|| format!("wrk: no duration: {took}"))?;
    Ok(Load { requests: requests.parse()?, seconds })
}

/// A duration as wrk prints it.
fn seconds(text: &str) -> Option<f64> {
    let units = [("ms", 1e-3), ("us", 1e-6), ("s", 1.0), ("m", 60.0)];
    units.iter().find_map(|(unit, factor)| {
        text.strip_suffix(unit)?.parse::<f64>().ok().map(|number| number * factor)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_read() {
        let said = "Running 1s test @ http://127.0.0.1:1/\n  1 threads and 100 connections\n  \
                    123456 requests in 1.10s, 52.00MB read\nRequests/sec: 112232.00\n";
        let load = read(said).expect("a summary");
        assert_eq!(load, Load { requests: 123_456, seconds: 1.1 });
    }

    #[test]
    fn a_run_with_faults_counts_for_nothing() {
        let fault = "  1 requests in 1.00s, 1KB read\n  Non-2xx or 3xx responses: 1\n";
        assert!(read(fault).is_err());
        let reset = "  1 requests in 1.00s, 1KB read\n  Socket errors: connect 0, read 5\n";
        assert!(read(reset).is_err());
        assert!(read("").is_err());
    }
}
