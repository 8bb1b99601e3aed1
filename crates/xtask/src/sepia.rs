//! A Sepia beside us, on a port of its own choice.

use std::net::SocketAddr;
use std::process::{Command, Stdio};

use crate::Outcome;
use crate::children::{Server, read_until};

/// What the banner says before the address of the first listener.
const BEFORE_ADDRESS: &str = "listening on http://";

/// A running Sepia and where it listens.
pub struct Sepia {
    /// Killed at the latest when this value goes.
    pub server: Server,
    /// Of its first listener.
    pub address: SocketAddr,
}

/// Starts Sepia with a role and options of the caller's and a free loopback port.
///
/// # Errors
/// When it ends before its banner is there.
pub fn start(command: &mut Command) -> Outcome<Sepia> {
    command.args(["--listen", "127.0.0.1:0"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut server = Server::start("sepia", command)?;
    let banner = server.take_stderr().ok_or("no errors to read")?;
    let address = read_until(banner, address_in, |line| show(&line))?;
    Ok(Sepia { server, address })
}

/// Passes on what is not the banner: notices that tell why a check fails.
fn show(line: &str) {
    let of_banner = ["in front of ", "forward proxy;", "memory "];
    if !of_banner.iter().any(|start| line.starts_with(start)) {
        eprintln!("{line}");
    }
}

fn address_in(line: &str) -> Option<SocketAddr> {
    let behind = line.split_once(BEFORE_ADDRESS)?.1;
    let end = behind.find(|c: char| c.is_whitespace() || c == ',' || c == '/');
    behind[..end.unwrap_or(behind.len())].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_banner_names_the_address() {
        let expected = "127.0.0.1:41234".parse().ok();
        let lines = [
            "sepia 0.1.0 listening on http://127.0.0.1:41234 (gateway)",
            "sepia 0.1.0 listening on http://127.0.0.1:41234, unix:/run/x (gateway)",
            "==12== sepia 0.1.0 listening on http://127.0.0.1:41234",
        ];
        for line in lines {
            assert_eq!(address_in(line), expected, "{line}");
        }
        assert_eq!(address_in("in front of http://127.0.0.1:3000"), None);
    }
}
