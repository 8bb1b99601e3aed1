//! The generated reference pages: written, or compared with what is in the tree.
//!
//! They come from the declarations of the options, reasons, counters and commands; nobody edits
//! them by hand, and CI fails where they differ.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ArgMatches;

use super::{command, fail};
use crate::base::{Counter, Gauge, Reason};
use crate::config::reference as config_reference;

/// Name and content of each page.
fn pages() -> [(&'static str, String); 4] {
    [
        ("configuration.md", config_reference::reference_page()),
        ("reasons.md", reasons_page()),
        ("counters.md", counters_page()),
        ("cli.md", command::reference_page()),
    ]
}

pub(super) fn run(matches: &ArgMatches) -> ExitCode {
    let directory: Option<&PathBuf> = matches.get_one("directory");
    let directory = directory.expect("the argument has a default");
    let outcome = if matches.get_flag("check") { compare(directory) } else { write(directory) };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => fail(&message),
    }
}

fn write(directory: &Path) -> Result<(), String> {
    fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    for (name, page) in pages() {
        let path = directory.join(name);
        fs::write(&path, page).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

fn compare(directory: &Path) -> Result<(), String> {
    let is_old = |(name, page): &(&str, String)| {
        fs::read_to_string(directory.join(name)).ok().as_ref() != Some(page)
    };
    let old: Vec<_> = pages().iter().filter(|page| is_old(page)).map(|(name, _)| *name).collect();
    if old.is_empty() {
        return Ok(());
    }
    let names = old.join(", ");
    Err(format!("{names} in {} not up to date: run `sepia docs`", directory.display()))
}

fn reasons_page() -> String {
    let mut page = String::from(
        "# Reasons\n\nEvery refusal and every abnormal end. The token is in the access log and in \
         `sepia status`; the status goes\nto the client, with the error type in Proxy-Status \
         (RFC 9209). No status: nobody is there to receive one, or the\nanswer has begun. Closes: \
         the client's connection ends with it.\n\n\
         | reason | side | status | closes | level | Proxy-Status | tried again | sentence |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for reason in Reason::ALL {
        let status = match reason.status() {
            0 => String::new(),
            status => status.to_string(),
        };
        let closes = if reason.closes() { "yes" } else { "" };
        page.push_str(&format!(
            "| `{}` | {} | {status} | {closes} | {} | {} | {} | {} |\n",
            reason.token(),
            reason.source().name(),
            reason.level().name(),
            reason.proxy_status().unwrap_or(""),
            reason.retry().name(),
            reason.sentence(),
        ));
    }
    page
}

fn counters_page() -> String {
    let mut page = String::from(
        "# Counters\n\nWhat `sepia status` and `/metrics` show. In `/metrics` each name begins \
         with `sepia_`, and what only grows ends\nin `_total`; reasons are one family, \
         `sepia_reasons_total`, with the labels `reason` and `source`.\n\n\
         | name | kind | what it counts |\n|---|---|---|\n",
    );
    for counter in Counter::ALL {
        page.push_str(&format!("| `{}` | counter | {} |\n", counter.name(), counter.sentence()));
    }
    for gauge in Gauge::ALL {
        page.push_str(&format!("| `{}` | gauge | {} |\n", gauge.name(), gauge.sentence()));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::{compare, counters_page, reasons_page, write};
    use crate::admin::control::tests::Scratch;
    use crate::base::{Counter, Reason};

    #[test]
    fn what_is_written_compares_equal_and_an_edit_does_not() {
        let scratch = Scratch::new("docs");
        let directory = scratch.0.join("reference");
        assert!(compare(&directory).is_err(), "no page yet");
        write(&directory).unwrap();
        assert_eq!(compare(&directory), Ok(()));
        std::fs::write(directory.join("reasons.md"), "edited").unwrap();
        assert!(compare(&directory).unwrap_err().starts_with("reasons.md in "));
    }

    #[test]
    fn every_declaration_is_on_its_page() {
        let (reasons, counters) = (reasons_page(), counters_page());
        assert!(Reason::ALL.iter().all(|reason| reasons.contains(reason.sentence())));
        assert!(Counter::ALL.iter().all(|counter| counters.contains(counter.sentence())));
    }
}
