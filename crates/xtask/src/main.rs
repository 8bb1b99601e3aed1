//! `cargo xtask`: everything that CI does, as a program.
//!
//! It must never need anything of the workspace to compile: a broken crate is what it reports on.
//! So it depends on none of our crates and on only two others: serde_json, which reads what cargo
//! says about the workspace, and rustix, for the two system calls that std does not have.

mod bench;
mod children;
mod packages;
mod peers_check;
mod sepia;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

/// What a step gives: its value, or the sentence that says why not.
type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

const USAGE: &str = "\
cargo xtask test [--fast]       formatting, clippy, tidy, generated pages, all tests; the full form
                                adds the loom tests, the demo and the checks with real peers
cargo xtask tidy                the rules of the tree that no compiler checks
cargo xtask bench hit [--quick] [--json FILE]
                                CPU time and instructions of a hit, divided by the null server's
cargo xtask bench idle          bytes of memory for an idle connection
cargo xtask peers-check         nginx and Python as origins, curl and wget as clients
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["test"] => test::run(test::Extent::Full),
        ["test", "--fast"] => test::run(test::Extent::Fast),
        ["tidy"] => tidy::run(),
        ["bench", "hit", options @ ..] => bench::hit::run(options),
        ["bench", "idle"] => bench::idle::run(),
        ["peers-check"] => peers_check::run(),
        [] | ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("unknown: {}\n\n{USAGE}", words.join(" "));
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("{fault}");
            ExitCode::FAILURE
        }
    }
}
