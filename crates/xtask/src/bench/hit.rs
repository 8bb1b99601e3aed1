//! `cargo xtask bench hit`: the CPU time of a hit, divided by the null server's.
//!
//! Sepia, in front of a tiny origin, and the null server with answers of the same length take
//! turns on one core; wrk drives them from another. CPU time a request is what the server's
//! threads were on a core (`schedstat`, in nanoseconds), divided by wrk's count of answers; its
//! split into user and system is the share of clock ticks in `stat`, over all rounds together. A
//! cell where a server was busy for less than 90 % of the time is marked: there the generator was
//! the limit, and the server paid for more wake-ups than under load.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::cpu::{CpuTime, two_cores};
use super::floor::{Floor, NullServer, on_core};
use super::instructions;
use super::pairs::{Median, median};
use super::probe::Probe;
use super::wrk::{self, Load};
use crate::sepia::{self, Sepia};
use crate::{Outcome, packages, workspace};

/// The cell that the limit is about, as connections and bytes of content.
const JUDGED: (usize, usize) = (100, 100);

/// What the upper end of the interval may be there.
const RATIO_MAX: f64 = 1.30;

/// A server busy for a smaller share of the time waited for the generator.
const BUSY_SHARE_MIN: f64 = 0.90;

/// The head of a hit, for the null server to repeat.
const HEAD_FILE: &str = "bench-hit-head";

struct Plan {
    pairs: usize,
    connections: &'static [usize],
    contents: &'static [usize],
    json: Option<PathBuf>,
}

/// The programs, and the cores they run on.
struct Bench {
    sepia: PathBuf,
    null_server: NullServer,
    server_core: usize,
    generator_core: usize,
}

/// One second of one server.
struct Round {
    cpu: CpuTime,
    load: Load,
}

/// All rounds of one number of connections and one size of content.
struct Cell {
    connections: usize,
    content_bytes: usize,
    answer_bytes: usize,
    sepia: Vec<Round>,
    null: Vec<Round>,
}

/// Counts the instructions of a hit, runs the cells and prints the table.
///
/// # Errors
/// When an option is unknown, a program is missing, or a run was no run of hits.
pub fn run(options: &[&str]) -> Outcome {
    let plan = plan(options)?;
    packages::install(&[packages::WRK, packages::VALGRIND])?;
    let (server_core, generator_core) = two_cores()?;
    let sepia = workspace::release_binary("sepia", "sepia")?;
    let lab = workspace::release_binary("lab", "sepia-lab")?;
    let null_server = NullServer::new(lab, Some(server_core));
    let bench = Bench { sepia, null_server, server_core, generator_core };

    let origin = bench.null_server.as_origin(JUDGED.1)?;
    let instructions = instructions::of_a_hit(&bench.sepia, origin.address)?;
    println!("user instructions a hit (callgrind, 100 B, 1 connection): {instructions:.0}");
    println!("{} pairs a cell; server on core {server_core}, wrk on {generator_core}", plan.pairs);
    println!("{}", header());
    let mut cells = Vec::new();
    for &content_bytes in plan.contents {
        let origin = bench.null_server.as_origin(content_bytes)?;
        let sepia = bench.start_sepia(&origin)?;
        for &connections in plan.connections {
            let cell = bench.cell(&sepia, connections, content_bytes, plan.pairs)?;
            println!("{}", row(&cell));
            cells.push(cell);
        }
    }
    println!("* a server was busy for less than 90 % of the time: the generator was the limit");
    println!("interval: order statistics of the median of the paired ratios");
    for cell in cells.iter().filter(|cell| (cell.connections, cell.content_bytes) == JUDGED) {
        let high = cell.ratio().high;
        let verdict = if high <= RATIO_MAX { "within" } else { "ABOVE" };
        println!("100 connections, 100 B: upper end {high:.3}, {verdict} the limit {RATIO_MAX:.2}");
    }

    if let Some(path) = &plan.json {
        let cells: Vec<Value> = cells.iter().map(Cell::raw).collect();
        let raw = json!({ "cells": cells, "instructions_per_hit": instructions });
        std::fs::write(path, serde_json::to_string_pretty(&raw)?)?;
    }
    Ok(())
}

fn plan(options: &[&str]) -> Outcome<Plan> {
    let mut plan = Plan {
        pairs: 20,
        connections: &[1, 10, 100, 1_000],
        contents: &[100, 1_000, 100_000],
        json: None,
    };
    let mut rest = options.iter();
    while let Some(option) = rest.next() {
        match *option {
            "--quick" => {
                plan.pairs = 5;
                plan.connections = &[JUDGED.0];
                plan.contents = &[JUDGED.1];
            }
            "--json" => {
                let path = rest.next().ok_or("--json needs a file")?;
                plan.json = Some(PathBuf::from(path));
            }
            other => return Err(format!("bench hit: unknown option {other}").into()),
        }
    }
    Ok(plan)
}

impl Bench {
    fn start_sepia(&self, origin: &Floor) -> Outcome<Sepia> {
        let mut command = on_core(self.server_core, &self.sepia);
        command.args(["reverse", "--workers", "1", "--memory", "256MiB"]);
        command.args(["--to", &format!("http://{}", origin.address)]);
        sepia::start(&mut command)
    }

    fn cell(
        &self,
        sepia: &Sepia,
        connections: usize,
        content_bytes: usize,
        pairs: usize,
    ) -> Outcome<Cell> {
        // For each cell anew, since Age grows by a digit now and then.
        let head_path = workspace::target_folder().join(HEAD_FILE);
        let answer_bytes = write_head_of_hit(sepia, &head_path)? + content_bytes;
        let floor = self.null_server.with_head(&head_path, content_bytes)?;
        let answer = Probe::connect(floor.address, "/")?.ask()?;
        if answer.head.len() + answer.content_bytes != answer_bytes {
            return Err("the null server's answer has another length than Sepia's".into());
        }
        let of_sepia = || self.round(sepia.server.id(), sepia.address, connections);
        let of_null = || self.round(floor.server.id(), floor.address, connections);
        of_sepia()?;
        of_null()?;
        let mut cell = Cell {
            connections,
            content_bytes,
            answer_bytes,
            sepia: Vec::with_capacity(pairs),
            null: Vec::with_capacity(pairs),
        };
        for pair in 0..pairs {
            // Who goes first alternates too, so that a drift favours neither.
            if pair % 2 == 0 {
                cell.sepia.push(of_sepia()?);
                cell.null.push(of_null()?);
            } else {
                cell.null.push(of_null()?);
                cell.sepia.push(of_sepia()?);
            }
        }
        Ok(cell)
    }

    fn round(&self, server: u32, address: SocketAddr, many: usize) -> Outcome<Round> {
        let before = CpuTime::of(server)?;
        let load = wrk::run(self.generator_core, many, address, "/")?;
        Ok(Round { cpu: CpuTime::of(server)?.since(before), load })
    }
}

/// Asks until the answer comes from the store, keeps its head, and says how long it is.
fn write_head_of_hit(sepia: &Sepia, path: &Path) -> Outcome<usize> {
    let mut probe = Probe::connect(sepia.address, "/")?;
    probe.ask()?;
    let answer = probe.ask()?;
    let status = answer.field("Cache-Status").unwrap_or_default();
    if !status.contains("hit") {
        return Err(format!("the second answer is no hit: {status}").into());
    }
    std::fs::write(path, &answer.head)?;
    Ok(answer.head.len())
}

impl Round {
    fn micros(&self) -> f64 {
        self.cpu.total_ns as f64 / 1e3 / self.load.requests.max(1) as f64
    }

    fn busy_share(&self) -> f64 {
        self.cpu.total_ns as f64 / 1e9 / self.load.seconds
    }
}

impl Cell {
    fn ratio(&self) -> Median {
        let pairs = self.sepia.iter().zip(&self.null);
        let ratios: Vec<f64> = pairs.map(|(sepia, null)| sepia.micros() / null.micros()).collect();
        median(&ratios)
    }

    fn is_limited_by_generator(&self) -> bool {
        [&self.sepia, &self.null].iter().any(|rounds| {
            let shares: Vec<f64> = rounds.iter().map(Round::busy_share).collect();
            median(&shares).value < BUSY_SHARE_MIN
        })
    }

    /// Everything that was measured, for later questions.
    fn raw(&self) -> Value {
        let rounds = |rounds: &[Round]| -> Vec<Value> {
            let raw = |round: &Round| {
                json!({
                    "cpu_ns": round.cpu.total_ns,
                    "user_ticks": round.cpu.user_ticks,
                    "system_ticks": round.cpu.system_ticks,
                    "requests": round.load.requests,
                    "seconds": round.load.seconds,
                })
            };
            rounds.iter().map(raw).collect()
        };
        json!({
            "connections": self.connections,
            "content_bytes": self.content_bytes,
            "answer_bytes": self.answer_bytes,
            "sepia": rounds(&self.sepia),
            "null": rounds(&self.null),
        })
    }
}

fn header() -> String {
    "connections  content  answer B   sepia µs (user + system)   null µs   ratio  interval".into()
}

fn row(cell: &Cell) -> String {
    let micros_of = |rounds: &[Round]| {
        let all: Vec<f64> = rounds.iter().map(Round::micros).collect();
        median(&all).value
    };
    let sepia = micros_of(&cell.sepia);
    let user: u64 = cell.sepia.iter().map(|round| round.cpu.user_ticks).sum();
    let system: u64 = cell.sepia.iter().map(|round| round.cpu.system_ticks).sum();
    let user_micros = sepia * user as f64 / (user + system).max(1) as f64;
    let system_micros = sepia - user_micros;
    let null = micros_of(&cell.null);
    let Median { value, low, high, confidence } = cell.ratio();
    let content = match cell.content_bytes {
        bytes if bytes >= 1_000 => format!("{} kB", bytes / 1_000),
        bytes => format!("{bytes} B"),
    };
    let mark = if cell.is_limited_by_generator() { " *" } else { "" };
    let many = cell.connections;
    let bytes = cell.answer_bytes;
    let split = format!("({user_micros:.2} + {system_micros:.2})");
    let interval = format!("{low:.3} to {high:.3} ({:.1} %)", confidence * 100.0);
    format!(
        "{many:>11} {content:>8} {bytes:>9} {sepia:>10.2} {split:<17} {null:>7.2} {value:>7.3}  \
         {interval}{mark}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_make_the_plan() {
        let full = plan(&[]).expect("a plan");
        assert_eq!((full.pairs, full.connections.len() * full.contents.len()), (20, 12));
        let quick = plan(&["--quick", "--json", "x"]).expect("a plan");
        assert_eq!((quick.pairs, quick.connections, quick.contents), (5, &[100][..], &[100][..]));
        assert_eq!(quick.json, Some(PathBuf::from("x")));
        assert!(plan(&["--json"]).is_err());
        assert!(plan(&["--fast"]).is_err());
    }

    #[test]
    fn a_row_divides_pair_by_pair() {
        let round = |total_ns, requests| Round {
            cpu: CpuTime { total_ns, user_ticks: 25, system_ticks: 75 },
            load: Load { requests, seconds: 1.0 },
        };
        let cell = Cell {
            connections: 100,
            content_bytes: 1_000,
            answer_bytes: 1_300,
            sepia: vec![round(1_000_000_000, 200_000), round(1_000_000_000, 100_000)],
            null: vec![round(1_000_000_000, 250_000), round(1_000_000_000, 125_000)],
        };
        assert!((cell.ratio().value - 1.25).abs() < 1e-9);
        assert!(!cell.is_limited_by_generator());
        let shown = row(&cell);
        assert!(shown.contains("1 kB"), "{shown}");
        assert!(shown.contains("7.50 (1.88 + 5.62)"), "{shown}");
        let idle = Cell { sepia: vec![round(500_000_000, 10)], null: cell.null, ..cell };
        assert!(idle.is_limited_by_generator());
    }
}
