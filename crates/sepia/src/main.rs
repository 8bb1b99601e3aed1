//! The program `sepia`: hands its words to the command line of the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    sepia::cli::run(std::env::args_os())
}
