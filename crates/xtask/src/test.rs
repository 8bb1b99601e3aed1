//! `cargo xtask test`: all of CI, step by step, each going on after the failure of another.
//!
//! It ends with a line `N passed, N failed` that a program can read: tests count one each, and so
//! does every step that is not a test.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Outcome, children, packages, peers_check, tidy, workspace};

/// How much is done.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The developer's loop: what a change breaks most often.
    Fast,
    /// All of CI.
    Full,
}

/// What a step ended with.
struct Score {
    passed: usize,
    failed: usize,
    /// Why it was not done, if it was not.
    skipped: Option<String>,
}

/// A name for the table and what to do.
type Step = (&'static str, fn() -> Score);

const FAST: &[Step] = &[
    ("formatting", || once(format_check())),
    ("clippy", || once(clippy())),
    ("tidy", || once(tidy::run())),
    ("tests", tests),
];

const FULL: &[Step] = &[
    ("formatting", || once(format_check())),
    ("clippy", || once(clippy())),
    ("tidy", || once(tidy::run())),
    ("generated pages", || once(generated_pages())),
    ("tests", tests),
    ("loom tests", loom_tests),
    ("demo", || once(demo())),
    ("real peers", real_peers),
];

/// Runs the steps and prints the table.
///
/// # Errors
/// When anything failed.
pub fn run(extent: Extent) -> Outcome {
    let steps = if extent == Extent::Fast { FAST } else { FULL };
    let mut done = Vec::new();
    for (name, step) in steps {
        println!("── {name}");
        let start = Instant::now();
        let score = step();
        let took = start.elapsed();
        println!("   {}", line_of(name, &score, took));
        done.push((*name, score, took));
    }
    println!("\n── summary");
    for (name, score, took) in &done {
        println!("   {}", line_of(name, score, *took));
    }
    let passed: usize = done.iter().map(|(_, score, _)| score.passed).sum();
    let failed: usize = done.iter().map(|(_, score, _)| score.failed).sum();
    println!("{passed} passed, {failed} failed");
    std::io::stdout().flush()?;
    if failed > 0 { Err("not everything is as it should be".into()) } else { Ok(()) }
}

fn line_of(name: &str, score: &Score, took: Duration) -> String {
    let outcome = match &score.skipped {
        Some(why) => format!("skipped: {why}"),
        None if score.failed > 0 => format!("{} passed, {} FAILED", score.passed, score.failed),
        None => format!("{} passed", score.passed),
    };
    format!("{name:<16} {:>6.1} s  {outcome}", took.as_secs_f64())
}

/// A step that counts as one.
fn once(outcome: Outcome) -> Score {
    match outcome {
        Ok(()) => Score { passed: 1, failed: 0, skipped: None },
        Err(fault) => {
            eprintln!("{fault}");
            Score { passed: 0, failed: 1, skipped: None }
        }
    }
}

fn format_check() -> Outcome {
    component("rustfmt", "fmt")?;
    children::succeed(&mut workspace::cargo(&["fmt", "--all", "--check"]))
}

fn clippy() -> Outcome {
    component("clippy", "clippy")?;
    let arguments = ["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"];
    children::succeed(&mut workspace::cargo(&arguments))
}

/// Adds a component of the toolchain when a minimal one lacks it.
fn component(name: &str, command: &str) -> Outcome {
    let mut probe = workspace::cargo(&[command, "--version"]);
    let is_there = probe.output().is_ok_and(|output| output.status.success());
    if is_there {
        return Ok(());
    }
    let mut rustup = Command::new("rustup");
    children::succeed(rustup.args(["component", "add", name]).current_dir(workspace::root()))
}

/// Help, configuration, reasons and counters are declared in the program; their pages in docs/ are
/// printed from there.
fn generated_pages() -> Outcome {
    let arguments = ["run", "--quiet", "--package", "sepia", "--", "docs", "--check"];
    children::succeed(&mut workspace::cargo(&arguments))
}

fn tests() -> Score {
    count(&mut workspace::cargo(&["test", "--workspace", "--no-fail-fast"]))
}

/// The index that readers walk without a lock, through all interleavings of small histories. Its
/// own target folder, since the flag would rebuild everything else back and forth.
fn loom_tests() -> Score {
    let arguments = ["test", "--package", "store", "--release", "--lib", "loom"];
    let mut cargo = workspace::cargo(&arguments);
    cargo.env("RUSTFLAGS", "--cfg loom");
    cargo.env("CARGO_TARGET_DIR", workspace::target_folder().join("loom"));
    count(&mut cargo)
}

fn demo() -> Outcome {
    let arguments = ["run", "--quiet", "--release", "--package", "sepia", "--", "demo", "--once"];
    children::succeed(&mut workspace::cargo(&arguments))
}

/// Missing peers are a reason to skip on a developer's machine, a failure in CI.
fn real_peers() -> Score {
    let is_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    match packages::install(peers_check::PEERS) {
        Err(fault) if !is_ci => Score { passed: 0, failed: 0, skipped: Some(fault.to_string()) },
        Err(fault) => once(Err(fault)),
        Ok(()) => once(peers_check::run()),
    }
}

/// Runs tests, showing their output, and adds up what they report. A run that breaks off without
/// a failed test (it does not compile, it aborts) is one failure.
fn count(command: &mut Command) -> Score {
    match counted(command) {
        Ok(score) => score,
        Err(fault) => once(Err(fault)),
    }
}

fn counted(command: &mut Command) -> Outcome<Score> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let stdout = child.stdout.take().ok_or("no output to read")?;
    let mut score = Score { passed: 0, failed: 0, skipped: None };
    for line in BufReader::new(stdout).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        if let Some((passed, failed)) = result_of(&line) {
            score.passed += passed;
            score.failed += failed;
        }
        // A test that passed has nothing to say to a reader of the whole.
        if !line.starts_with("test ") || !line.ends_with(" ... ok") {
            println!("{line}");
        }
    }
    if !child.wait()?.success() && score.failed == 0 {
        score.failed = 1;
    }
    Ok(score)
}

/// The numbers of a line like `test result: ok. 3 passed; 1 failed; …`.
fn result_of(line: &str) -> Option<(usize, usize)> {
    let counts = line.strip_prefix("test result: ")?.split_once(". ")?.1;
    let number = |word: &str| {
        let part = counts.split("; ").find(|part| part.ends_with(word))?;
        part.split(' ').next()?.parse().ok()
    };
    Some((number(" passed")?, number(" failed")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_tests_are_read() {
        let tail = "0 ignored; 0 measured; 2 filtered out; finished in 0.01s";
        let ok = format!("test result: ok. 12 passed; 0 failed; {tail}");
        let failed = format!("test result: FAILED. 3 passed; 4 failed; {tail}");
        assert_eq!(result_of(&ok), Some((12, 0)));
        assert_eq!(result_of(&failed), Some((3, 4)));
        assert_eq!(result_of("test reason::tests::all ... ok"), None);
        assert_eq!(result_of("running 3 tests"), None);
    }

    #[test]
    fn a_run_that_breaks_off_is_one_failure() {
        let score = count(Command::new("sh").args(["-c", "echo error; exit 101"]));
        assert_eq!((score.passed, score.failed), (0, 1));
        let failed = "test result: FAILED. 3 passed; 2 failed; 0 ignored";
        let script = format!("echo '{failed}'; exit 101");
        let score = count(Command::new("sh").args(["-c", script.as_str()]));
        assert_eq!((score.passed, score.failed), (3, 2));
    }
}
