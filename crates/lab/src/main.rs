//! `sepia-lab`: what the project measures itself and others with.
//!
//! So far it holds the null server, the floor that every server's cost is divided by.

#![forbid(unsafe_code)]

mod null_server;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Measures HTTP servers.
#[derive(Debug, Parser)]
#[command(name = "sepia-lab", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    NullServer(null_server::Options),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::NullServer(options) => null_server::run(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sepia-lab: {error}");
            ExitCode::FAILURE
        }
    }
}
