//! Which crate may use which, and what the pure ones may never name.

use std::path::Path;

use serde_json::Value;

use super::Finding;
use super::source::Source;
use crate::Outcome;

/// The crates and those of ours that each may use. A tool that reports on broken crates depends on
/// none of them; wire and slots know nobody.
const MAY_USE: &[(&str, &[&str])] = &[
    ("wire", &[]),
    ("slots", &[]),
    ("caching", &["wire"]),
    ("store", &["caching", "wire"]),
    ("testkit", &["wire"]),
    ("lab", &["slots", "store", "testkit"]),
    ("sepia", &["caching", "slots", "store", "testkit", "wire"]),
    ("xtask", &[]),
];

/// Crates that are functions of their arguments: no clock, no sockets, no files, no threads.
const PURE: &[&str] = &["crates/wire/src", "crates/caching/src", "crates/slots/src"];

/// What a pure crate may not name. Addresses are values; sockets are not.
const IMPURE: &[&[&str]] = &[
    &["Instant", ":", ":", "now"],
    &["SystemTime", ":", ":", "now"],
    &["TcpListener"],
    &["TcpStream"],
    &["UdpSocket"],
    &["ToSocketAddrs"],
    &["std", ":", ":", "env"],
    &["std", ":", ":", "fs"],
    &["std", ":", ":", "process"],
    &["std", ":", ":", "thread"],
];

/// Dependencies that point the wrong way, of any kind: a development dependency is one too.
///
/// # Errors
/// When cargo's description of the workspace has another shape than known.
pub fn check(metadata: &Value) -> Outcome<Vec<Finding>> {
    let packages = metadata["packages"].as_array().ok_or("no packages in cargo metadata")?;
    let is_ours = |name: &str| packages.iter().any(|package| package["name"] == name);
    let mut findings = Vec::new();
    for package in packages {
        let name = package["name"].as_str().ok_or("a package without a name")?;
        let manifest = format!("crates/{name}/Cargo.toml");
        let Some((_, may_use)) = MAY_USE.iter().find(|(crate_name, _)| *crate_name == name) else {
            let fault = "this crate stands in no row of crates/xtask/src/tidy/directions.rs";
            findings.push(Finding::new(Path::new(&manifest), 0, fault));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let used = dependency["name"].as_str().ok_or("a dependency without a name")?;
            if is_ours(used) && !may_use.contains(&used) {
                let fault = format!("{name} may not depend on {used}");
                findings.push(Finding::new(Path::new(&manifest), 0, fault));
            }
        }
    }
    Ok(findings)
}

/// Places in pure crates that look at the world. Their tests, which stand at the end of a file,
/// may: they read corpora.
pub fn purity(source: &Source) -> Vec<Finding> {
    if !PURE.iter().any(|folder| source.path.starts_with(folder)) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (place, token) in source.tokens.iter().enumerate() {
        if source.reads(place, &["mod", "tests", "{"]) {
            break;
        }
        for words in IMPURE.iter().filter(|words| source.reads(place, words)) {
            let fault = format!("{} in a crate that only computes", words.concat());
            findings.push(Finding::new(&source.path, token.line, fault));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_point_down() {
        let metadata = serde_json::json!({ "packages": [
            { "name": "wire", "dependencies": [{ "name": "memchr" }, { "name": "caching" }] },
            { "name": "caching", "dependencies": [{ "name": "wire" }] },
            { "name": "surprise", "dependencies": [] },
        ]});
        let found = check(&metadata).expect("a known shape");
        let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(shown.len(), 2, "{shown:?}");
        assert_eq!(shown[0], "crates/wire/Cargo.toml: wire may not depend on caching");
        assert!(shown[1].starts_with("crates/surprise/Cargo.toml: this crate stands in no row"));
    }

    #[test]
    fn pure_crates_do_not_look_at_the_clock() {
        let faults = |path: &str, text: &str| purity(&Source::new(path.into(), text.into())).len();
        assert_eq!(faults("crates/caching/src/age.rs", "f(Instant::now())"), 1);
        assert_eq!(faults("crates/caching/src/age.rs", "fn f(now: Instant) {}"), 0);
        assert_eq!(faults("crates/wire/src/target.rs", "mod tests { use std::fs; }"), 0);
        assert_eq!(faults("crates/wire/src/target.rs", "use std::net::{Ipv6Addr, TcpStream};"), 1);
        assert_eq!(faults("crates/sepia/src/io/clock.rs", "f(Instant::now())"), 0);
    }
}
