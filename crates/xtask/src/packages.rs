//! Debian packages that a step needs, installed when they are missing and we may.

use std::process::Command;

use crate::{Outcome, children};

/// A program and the Debian package that has it.
#[derive(Clone, Copy)]
pub struct Peer {
    /// The program's name.
    pub program: &'static str,
    /// The package's name.
    pub package: &'static str,
}

/// The peers that steps ask for.
pub const NGINX: Peer = Peer { program: "nginx", package: "nginx-light" };
pub const PYTHON: Peer = Peer { program: "python3", package: "python3" };
pub const WGET: Peer = Peer { program: "wget", package: "wget" };
pub const CURL: Peer = Peer { program: "curl", package: "curl" };
pub const WRK: Peer = Peer { program: "wrk", package: "wrk" };
pub const VALGRIND: Peer = Peer { program: "valgrind", package: "valgrind" };

/// Makes sure that these programs are there.
///
/// # Errors
/// When one is missing and could not be installed; the sentence names the packages.
pub fn install(peers: &[Peer]) -> Outcome {
    let lacking = missing(peers);
    if lacking.is_empty() {
        return Ok(());
    }
    let names = lacking.join(" ");
    let Some(prefix) = administrator() else {
        return Err(format!("missing and not installable without root: {names}").into());
    };
    println!("installing {names}");
    if apt_get(prefix, &["install", "-y", "--no-install-recommends"], &lacking).is_err() {
        // The lists of packages may be absent or old.
        apt_get(prefix, &["update"], &[])?;
        apt_get(prefix, &["install", "-y", "--no-install-recommends"], &lacking)?;
    }
    match missing(peers).as_slice() {
        [] => Ok(()),
        still => Err(format!("installed, yet missing: {}", still.join(" ")).into()),
    }
}

fn missing(peers: &[Peer]) -> Vec<&'static str> {
    let absent = peers.iter().filter(|peer| !is_there(peer.program));
    absent.map(|peer| peer.package).collect()
}

fn is_there(program: &str) -> bool {
    // Servers live in a folder that is not on every user's path.
    children::is_installed(program) || std::path::Path::new("/usr/sbin").join(program).is_file()
}

/// What makes a command run as root: nothing, sudo without a password, or there is no way.
fn administrator() -> Option<&'static [&'static str]> {
    if !children::is_installed("apt-get") {
        return None;
    }
    if rustix::process::geteuid().is_root() {
        return Some(&[]);
    }
    let sudo = children::output(Command::new("sudo").args(["-n", "true"])).is_ok();
    sudo.then_some(&["sudo", "-n"])
}

fn apt_get(prefix: &[&str], verb: &[&str], packages: &[&str]) -> Outcome {
    let words: Vec<&str> =
        [prefix, &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"], verb, packages]
            .concat();
    let (program, arguments) = words.split_first().expect("the list starts with env or sudo");
    children::output(Command::new(program).args(arguments)).map(drop)
}
