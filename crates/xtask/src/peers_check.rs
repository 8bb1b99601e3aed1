//! `cargo xtask peers-check`: real programs on both sides of Sepia.
//!
//! nginx and Python's file server as origins over a generated tree; curl and `wget -r` as clients,
//! through the gateway and through the forward proxy, twice. What arrives is byte-identical to the
//! tree, and the second run reaches the origin for validation only, or not at all.

mod origins;

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::packages::{self, CURL, NGINX, PYTHON, Peer, WGET};
use crate::{Outcome, children, sepia, workspace};
use origins::Origin;

/// What this check needs installed.
pub const PEERS: &[Peer] = &[NGINX, PYTHON, WGET, CURL];

/// The way a client is told to take.
#[derive(Clone, Copy)]
enum Way {
    /// It believes the gateway to be the origin.
    Gateway,
    /// It knows its proxy.
    Forward,
}

#[derive(Clone, Copy)]
enum Client {
    Wget,
    Curl,
}

/// Runs every pair of origin and way, and both clients in each.
///
/// # Errors
/// When a peer is missing, a byte differs, or the second run is no second run.
pub fn run() -> Outcome {
    packages::install(PEERS)?;
    let binary = workspace::release_binary("sepia", "sepia")?;
    let scratch = Scratch::new()?;
    let tree = scratch.folder("tree")?;
    let tree_path = tree.to_str().ok_or("a folder for scratch files that is no UTF-8")?;
    let arguments =
        ["run", "--quiet", "--package", "testkit", "--example", "tree", "--", tree_path];
    children::output(&mut workspace::cargo(&arguments))?;
    let files = files_below(&tree, Path::new(""))?;
    println!("   {} files", files.len());

    for start in [origins::nginx, origins::python] {
        for way in [Way::Gateway, Way::Forward] {
            for client in [Client::Wget, Client::Curl] {
                let mut origin = start(&scratch.folder("origin")?, &tree)?;
                let visit = Visit { sepia: &binary, tree: &tree, files: &files, way, client };
                let line = format!("{} {} {}", client.name(), way.name(), origin.name);
                let seen = visit.twice(&mut origin, &scratch);
                let seen = seen.map_err(|fault| format!("{line}: {fault}"))?;
                println!("   {line:<58} identical twice, then {seen}");
            }
        }
    }
    Ok(())
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Gateway => "through the gateway to",
            Way::Forward => "through the forward proxy to",
        }
    }
}

impl Client {
    fn name(self) -> &'static str {
        match self {
            Client::Wget => "wget",
            Client::Curl => "curl",
        }
    }
}

/// One client, one way, one origin.
struct Visit<'a> {
    sepia: &'a Path,
    tree: &'a Path,
    files: &'a [PathBuf],
    way: Way,
    client: Client,
}

impl Visit<'_> {
    /// Fetches the tree twice and says what the second run asked of the origin.
    fn twice(&self, origin: &mut Origin, scratch: &Scratch) -> Outcome<String> {
        let to = format!("http://{}", origin.address);
        let mut command = Command::new(self.sepia);
        match self.way {
            Way::Gateway => command.args(["reverse", "--to", &to]),
            Way::Forward => command.arg("forward"),
        };
        let sepia = sepia::start(&mut command)?;
        self.fetch(sepia.address, origin.address, &scratch.folder("first")?)?;
        let first = origin.statuses()?.len();
        if first < self.files.len() {
            return Err(format!("the origin saw {first} requests: it is not behind Sepia").into());
        }
        self.fetch(sepia.address, origin.address, &scratch.folder("second")?)?;
        let statuses = origin.statuses()?;
        sepia.server.stop()?;
        validations(&statuses[first..])
    }

    /// Fetches the tree into a folder and compares.
    fn fetch(&self, sepia: SocketAddr, origin: SocketAddr, into: &Path) -> Outcome {
        match self.client {
            Client::Wget => self.wget(sepia, origin, into)?,
            Client::Curl => self.curl(sepia, origin, into)?,
        }
        let mut diff = Command::new("diff");
        children::succeed(diff.args(["--recursive", "--brief"]).arg(self.tree).arg(into))
    }

    fn address_for_client(&self, sepia: SocketAddr, origin: SocketAddr) -> SocketAddr {
        match self.way {
            Way::Gateway => sepia,
            Way::Forward => origin,
        }
    }

    fn wget(&self, sepia: SocketAddr, origin: SocketAddr, into: &Path) -> Outcome {
        let mut wget = Command::new("wget");
        // robots.txt is not in the tree; its 404 would be asked for again.
        let options = ["--recursive", "--level=inf", "--no-host-directories", "--no-verbose"];
        wget.args(options).args(["--execute", "robots=off", "--directory-prefix"]).arg(into);
        wget.arg(format!("http://{}/", self.address_for_client(sepia, origin)));
        self.choose_proxy(&mut wget, sepia);
        quietly(&mut wget)
    }

    fn curl(&self, sepia: SocketAddr, origin: SocketAddr, into: &Path) -> Outcome {
        let address = self.address_for_client(sepia, origin);
        let list = into.with_extension("curl");
        let mut config = std::fs::File::create(&list)?;
        for file in self.files {
            let output = into.join(file);
            let name = file.to_str().ok_or("a file's name that is no UTF-8")?;
            writeln!(config, "url = \"http://{address}/{}\"", percent_encoded(name))?;
            writeln!(config, "output = \"{}\"", output.display())?;
        }
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--fail", "--create-dirs", "--config"]).arg(&list);
        self.choose_proxy(&mut curl, sepia);
        quietly(&mut curl)
    }

    fn choose_proxy(&self, client: &mut Command, sepia: SocketAddr) {
        for name in ["http_proxy", "all_proxy", "no_proxy", "ALL_PROXY", "NO_PROXY"] {
            client.env_remove(name);
        }
        if matches!(self.way, Way::Forward) {
            client.env("http_proxy", format!("http://{sepia}"));
        }
    }
}

/// What the second run asked of the origin, in words.
fn validations(statuses: &[u16]) -> Outcome<String> {
    let others: Vec<u16> = statuses.iter().copied().filter(|status| *status != 304).collect();
    let Some(first) = others.first() else {
        return Ok(format!("{} validations", statuses.len()));
    };
    let share = format!("{} of {} requests", others.len(), statuses.len());
    Err(format!("second run: {share} at the origin were no 304; the first of them {first}").into())
}

/// A path as it stands in a request target (RFC 3986 §2.1).
fn percent_encoded(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                encoded.push(char::from(byte));
            }
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}

/// Runs a client and shows what it said only when it failed.
fn quietly(command: &mut Command) -> Outcome {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said.lines().collect();
    let tail = lines[lines.len().saturating_sub(5)..].join("\n");
    Err(format!("{}: {}\n{tail}", command.get_program().to_string_lossy(), output.status).into())
}

fn files_below(root: &Path, inside: &Path) -> Outcome<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(root.join(inside))? {
        let entry = entry?;
        let path = inside.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            files.extend(files_below(root, &path)?);
        } else {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// A folder for the files of one run, removed at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Outcome<Scratch> {
        let name = format!("sepia-peers-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path)?;
        Ok(Scratch(path))
    }

    /// An empty folder of this name.
    fn folder(&self, name: &str) -> Outcome<PathBuf> {
        let path = self.0.join(name);
        if path.exists() {
            std::fs::remove_dir_all(&path)?;
        }
        std::fs::create_dir(&path)?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder left behind in the system's own place is no reason to fail.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded_for_the_request_target() {
        assert_eq!(percent_encoded("a/two words~1.txt"), "a/two%20words~1.txt");
        assert_eq!(percent_encoded("\u{e4}?%"), "%C3%A4%3F%25");
    }

    #[test]
    fn the_second_run_may_only_validate() {
        assert_eq!(validations(&[304, 304]).ok().as_deref(), Some("2 validations"));
        assert_eq!(validations(&[]).ok().as_deref(), Some("0 validations"));
        let fault = validations(&[304, 200, 304]).expect_err("a whole answer").to_string();
        assert!(fault.contains("1 of 3") && fault.ends_with("200"), "{fault}");
    }
}
