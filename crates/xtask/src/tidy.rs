//! `cargo xtask tidy`: the rules of the tree that no compiler checks.
//!
//! Each rule is a function from the files to findings. It reads Rust by a light scanner
//! ([`source`]), so it can be deceived by macros that make up names; it is for people who want the
//! rules kept, not against people who do not.

mod directions;
mod packages;
mod rows;
mod sizes;
mod source;
mod words;

use std::fmt;
use std::path::{Path, PathBuf};

use crate::{Outcome, workspace};
use source::Source;

/// One place where a rule is broken.
pub struct Finding {
    path: PathBuf,
    /// Counted from 1; 0 means the whole file.
    line: usize,
    fault: String,
}

impl Finding {
    fn new(path: &Path, line: usize, fault: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line, fault: fault.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(out, "{}: {}", self.path.display(), self.fault),
            line => write!(out, "{}:{line}: {}", self.path.display(), self.fault),
        }
    }
}

/// Checks all rules and prints what breaks them.
///
/// # Errors
/// When a rule is broken, or a file cannot be read.
pub fn run() -> Outcome {
    let findings = findings()?;
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => Ok(()),
        1 => Err("tidy: 1 finding".into()),
        many => Err(format!("tidy: {many} findings").into()),
    }
}

fn findings() -> Outcome<Vec<Finding>> {
    let root = workspace::root();
    let mut sources = Vec::new();
    let mut findings = Vec::new();
    for path in workspace::files()? {
        let bytes = std::fs::read(root.join(&path))?;
        // Pictures and corpora are not text and not ours to judge.
        let Ok(text) = String::from_utf8(bytes) else { continue };
        findings.extend(words::in_any_file(&path, &text));
        if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push(Source::new(path, text));
        }
    }
    let exemptions = sizes::Exemptions::read()?;
    findings.extend(sizes::check(&sources, &exemptions));
    for source in &sources {
        findings.extend(words::in_rust(source));
        findings.extend(rows::check(source));
        findings.extend(directions::purity(source));
    }
    let metadata = packages::metadata()?;
    findings.extend(directions::check(&metadata)?);
    findings.extend(packages::check(&metadata)?);
    Ok(findings)
}
