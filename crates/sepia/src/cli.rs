//! The command line: from words to a running proxy, a check, a question or a generated page.
//!
//! The commands' options come from the configuration's own table, so that a flag, a key of the file
//! and a line of the reference page can never disagree. Exit codes: 0 all is well, 1 something at
//! work failed or a check found a fault, 2 the command was not understood.

mod banner;
mod client;
mod command;
mod reference;

use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal, Write, stderr, stdin, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ArgMatches;
use clap::error::ErrorKind as ClapErrorKind;

pub use banner::banner;

use crate::config::draft::RoleName;
use crate::config::{Config, LoadError, reference as config_reference};
use crate::demo::{self, DemoOptions};
use crate::proxy::{Proxy, Signals};

/// Runs the command that these words name, the program's own name first.
#[must_use]
pub fn run(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let matches = match command::command().try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(error) => return explain(&error),
    };
    let Some((name, matches)) = matches.subcommand() else { return ExitCode::from(2) };
    match name {
        "reverse" => run_role(RoleName::Reverse, matches),
        "forward" => run_role(RoleName::Forward, matches),
        "serve" => serve(matches),
        "check" => check(matches),
        "config" => print_config(matches),
        "status" => client::status(matches),
        "reload" => client::reload(matches),
        "demo" => demo::run(&DemoOptions {
            port: matches.get_one("port").copied(),
            once: matches.get_flag("once"),
        }),
        _ => reference::run(matches),
    }
}

/// Prints a message of the command line's own: help to standard output, mistakes to standard error.
fn explain(error: &clap::Error) -> ExitCode {
    // A closed standard output leaves nobody to tell.
    error.print().ok();
    match error.kind() {
        ClapErrorKind::DisplayHelp | ClapErrorKind::DisplayVersion => ExitCode::SUCCESS,
        _ => ExitCode::from(2),
    }
}

/// Writes to standard output. A reader that has seen enough closes the pipe, which is no fault; a
/// full disk is one. The standard macros would panic.
fn print(bytes: &[u8]) -> ExitCode {
    let mut out = stdout();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            fail(&format_args!("cannot write to standard output: {error}"))
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Writes a line to standard error; nobody is left to tell if that is closed.
fn tell(line: &dyn std::fmt::Display) {
    writeln!(stderr(), "{line}").ok();
}

fn fail(message: &dyn std::fmt::Display) -> ExitCode {
    tell(&format_args!("sepia: {message}"));
    ExitCode::FAILURE
}

fn run_role(role: RoleName, matches: &ArgMatches) -> ExitCode {
    match command::config_of(role, matches) {
        Ok(config) => start(config, None),
        Err(message) => {
            let mut command =
                command::role_command(role).bin_name(format!("sepia {}", role.name()));
            explain(&command.error(ClapErrorKind::ValueValidation, message))
        }
    }
}

fn serve(matches: &ArgMatches) -> ExitCode {
    let path = config_path(matches);
    match Config::load(&path) {
        Ok(config) => start(config, Some(path)),
        Err(error) => show_load_error(&error),
    }
}

fn check(matches: &ArgMatches) -> ExitCode {
    let path = config_path(matches);
    match Config::load(&path) {
        Ok(config) => {
            let noun = if config.listeners.len() == 1 { "listener" } else { "listeners" };
            let count = config.listeners.len();
            print(format!("{} is good: {count} {noun}\n", path.display()).as_bytes())
        }
        Err(error) => show_load_error(&error),
    }
}

fn config_path(matches: &ArgMatches) -> PathBuf {
    let path: Option<&PathBuf> = matches.get_one("config");
    path.cloned().expect("the argument is required")
}

fn show_load_error(error: &LoadError) -> ExitCode {
    match error {
        LoadError::Mistaken(mistakes) if stderr().is_terminal() => {
            tell(&mistakes.styled());
        }
        LoadError::Mistaken(mistakes) => tell(mistakes),
        LoadError::Unreadable { .. } => return fail(error),
    }
    ExitCode::FAILURE
}

/// Starts the proxy, says so, and waits until it has been told to end.
fn start(config: Config, reload_from: Option<PathBuf>) -> ExitCode {
    let mut builder = Proxy::builder(config).with_control().with_notices();
    if let Some(path) = reload_from {
        builder = builder.reload_from(path);
    }
    let started = Signals::receive().and_then(|signals| Ok((builder.start()?, signals)));
    let (proxy, signals) = match started {
        Ok(started) => started,
        Err(error) => return fail(&error),
    };
    tell(&banner(&proxy.facts()).trim_end());
    if stdin().is_terminal() && stderr().is_terminal() {
        tell(&"Ctrl-C ends it.");
    }
    match proxy.wait(signals) {
        0 => ExitCode::SUCCESS,
        1 => fail(&"the drain's time was over; 1 exchange was cut off"),
        cut => fail(&format_args!("the drain's time was over; {cut} exchanges were cut off")),
    }
}

fn print_config(matches: &ArgMatches) -> ExitCode {
    if matches.get_flag("schema") {
        print(format!("{:#}\n", config_reference::schema()).as_bytes())
    } else {
        print(config_reference::default_file().as_bytes())
    }
}
