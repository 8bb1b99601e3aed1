//! `cargo xtask bench idle`: how much memory a connection costs that waits for its next request.
//!
//! Anonymous memory of the process with 10,000 connections held open after one hit each, less what
//! it had with none, divided by 10,000. The kernel's own memory for a socket is not in it.

use std::path::PathBuf;
use std::process::Command;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::floor::NullServer;
use super::probe::Probe;
use crate::children::wait_for;
use crate::sepia::{self, Sepia};
use crate::{Outcome, workspace};

/// How many connections are held open.
const CONNECTIONS: usize = 10_000;

/// What one of them may cost.
const BYTES_MAX: f64 = 128.0;

/// Connections that come and go before the first reading, so that what is made once is there.
const WARM_CONNECTIONS: usize = 16;

/// Descriptors for other things than the connections held.
const SPARE_DESCRIPTORS: u64 = 200;

/// Bytes of content of the answer.
const CONTENT_BYTES: usize = 100;

/// Measures and prints.
///
/// # Errors
/// When a connection costs more than the limit, or is not held.
pub fn run() -> Outcome {
    raise_descriptors()?;
    let binary = workspace::release_binary("sepia", "sepia")?;
    let lab = workspace::release_binary("lab", "sepia-lab")?;
    let origin = NullServer::new(lab, None).as_origin(CONTENT_BYTES)?;
    let mut command = Command::new(binary);
    command.args(["reverse", "--workers", "1", "--memory", "256MiB"]);
    command.args(["--to", &format!("http://{}", origin.address)]);
    let mut sepia = sepia::start(&mut command)?;

    let before = descriptors(&sepia)?;
    hold(&sepia, WARM_CONNECTIONS)?.clear();
    // One descriptor may have come to stay: the idle connection to the origin.
    wait_for("closed connections to be gone", || {
        Ok((descriptors(&sepia)? <= before + 1).then_some(()))
    })?;
    let empty = anonymous_bytes(&sepia)?;
    let mut held = hold(&sepia, CONNECTIONS)?;
    let full = anonymous_bytes(&sepia)?;
    if descriptors(&sepia)? < before + CONNECTIONS {
        return Err("Sepia has closed connections that were to be held".into());
    }
    for probe in [0, CONNECTIONS / 2, CONNECTIONS - 1] {
        held[probe].ask()?;
    }
    sepia.server.must_run()?;

    let each = full.saturating_sub(empty) as f64 / CONNECTIONS as f64;
    println!("anonymous memory with 0 connections: {empty} B, with {CONNECTIONS}: {full} B");
    println!("an idle connection: {each:.1} B, the limit is {BYTES_MAX:.0} B");
    if each > BYTES_MAX {
        return Err("an idle connection costs more than the limit".into());
    }
    Ok(())
}

/// Opens connections with one answer each.
fn hold(sepia: &Sepia, connections: usize) -> Outcome<Vec<Probe>> {
    let mut held = Vec::with_capacity(connections);
    for _ in 0..connections {
        let mut probe = Probe::connect(sepia.address, "/")?;
        probe.ask()?;
        held.push(probe);
    }
    Ok(held)
}

/// Lets us, and the programs that we start, hold as many descriptors as we need.
fn raise_descriptors() -> Outcome {
    let needed = u64::try_from(CONNECTIONS)? + SPARE_DESCRIPTORS;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if maximum.is_some_and(|maximum| maximum < needed) {
        return Err(format!("{needed} descriptors are needed (ulimit -Hn)").into());
    }
    Ok(setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum })?)
}

fn process_folder(sepia: &Sepia) -> PathBuf {
    PathBuf::from(format!("/proc/{}", sepia.server.id()))
}

fn descriptors(sepia: &Sepia) -> Outcome<usize> {
    Ok(std::fs::read_dir(process_folder(sepia).join("fd"))?.count())
}

fn anonymous_bytes(sepia: &Sepia) -> Outcome<u64> {
    let status = workspace::read(process_folder(sepia).join("status"))?;
    anonymous_in(&status).ok_or_else(|| "the kernel does not say RssAnon".into())
}

fn anonymous_in(status: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kibibytes: u64 = value.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anonymous_memory_is_read_in_bytes() {
        let status = "Name:\tsepia\nVmRSS:\t  900 kB\nRssAnon:\t     512 kB\nRssFile:\t1 kB\n";
        assert_eq!(anonymous_in(status), Some(524_288));
        assert_eq!(anonymous_in("Name:\tsepia\n"), None);
    }
}
