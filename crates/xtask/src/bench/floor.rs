//! The null server of the lab: the floor that everything is divided by, and a tiny origin.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Outcome;
use crate::children::{Server, read_until};

/// A running null server.
pub struct Floor {
    /// Where it listens.
    pub address: SocketAddr,
    /// Killed when this value goes.
    pub server: Server,
}

/// The null server as a program.
pub struct NullServer {
    binary: PathBuf,
    core: Option<usize>,
}

impl NullServer {
    /// The program at this path, to run on this core alone, or where the kernel puts it.
    pub fn new(binary: PathBuf, core: Option<usize>) -> NullServer {
        NullServer { binary, core }
    }

    /// Starts it as an origin whose answers may be stored for an hour.
    ///
    /// # Errors
    /// When it does not start.
    pub fn as_origin(&self, content_bytes: usize) -> Outcome<Floor> {
        self.start(content_bytes, |command| {
            command.args(["--field", "Cache-Control: max-age=3600"]);
        })
    }

    /// Starts it with the head that stands in a file.
    ///
    /// # Errors
    /// When it does not start.
    pub fn with_head(&self, head: &Path, content_bytes: usize) -> Outcome<Floor> {
        self.start(content_bytes, |command| {
            command.arg("--head-file").arg(head);
        })
    }

    fn start(&self, content_bytes: usize, more: impl FnOnce(&mut Command)) -> Outcome<Floor> {
        let mut command = match self.core {
            Some(core) => on_core(core, &self.binary),
            None => Command::new(&self.binary),
        };
        command.args(["null-server", "--listen", "127.0.0.1:0", "--until-stdin-closes"]);
        command.args(["--content-bytes", &content_bytes.to_string()]);
        more(&mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = Server::start("the null server", &mut command)?;
        let stdout = server.take_stdout().ok_or("no output to read")?;
        let port = read_until(stdout, port_in, drop)?;
        Ok(Floor { address: SocketAddr::from(([127, 0, 0, 1], port)), server })
    }
}

/// A program that will run on one core only.
pub fn on_core(core: usize, program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", &core.to_string()]).arg(program);
    command
}

/// The number that a line ends with.
fn port_in(line: &str) -> Option<u16> {
    let line = line.trim_end();
    let digits = line.len() - line.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    line[line.len() - digits..].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_stands_at_the_end_of_the_line() {
        assert_eq!(port_in("41234"), Some(41234));
        assert_eq!(port_in("listening on 127.0.0.1:41234\n"), Some(41234));
        assert_eq!(port_in("listening"), None);
    }
}
