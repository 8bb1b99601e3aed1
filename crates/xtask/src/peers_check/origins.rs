//! nginx and Python's file server as origins, on free ports, with a log that we can read.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::children::{PATIENCE, Server, free_port, wait_for};
use crate::{Outcome, workspace};

/// A path that no tree has: a request for it is seen to end the log.
const SENTINEL: &str = "/where-the-log-ends-";

/// A running origin.
pub struct Origin {
    /// What a reader knows it as.
    pub name: &'static str,
    /// Where it listens.
    pub address: SocketAddr,
    server: Server,
    log: PathBuf,
    sentinels: usize,
}

/// nginx as Debian ships it, with a configuration of its own: one process, the given user, nothing
/// outside of `folder`.
///
/// # Errors
/// When it does not start.
pub fn nginx(folder: &Path, tree: &Path) -> Outcome<Origin> {
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let log = folder.join("access.log");
    let (place, root) = (folder.display(), tree.display());
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|what| format!("  {what}_temp_path {place}/{what};\n"))
        .collect();
    let configuration = format!(
        "daemon off;\nmaster_process off;\npid {place}/pid;\nerror_log {place}/error.log;\n\
         events {{ worker_connections 512; }}\n\
         http {{\n  types {{ text/html html; }}\n  log_format seen '\"$request\" $status';\n  \
         access_log {place}/access.log seen;\n{temporary}  \
         server {{ listen {address}; root {root}; index index.html; }}\n}}\n"
    );
    let path = folder.join("nginx.conf");
    std::fs::write(&path, configuration)?;
    let mut command = Command::new(nginx_program());
    command.arg("-p").arg(folder).arg("-c").arg(&path).arg("-e").arg(folder.join("error.log"));
    Origin::start("nginx", &mut command, address, log)
}

/// `python3 -m http.server`.
///
/// # Errors
/// When it does not start.
pub fn python(folder: &Path, tree: &Path) -> Outcome<Origin> {
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let log = folder.join("access.log");
    let mut command = Command::new("python3");
    command.args(["-u", "-m", "http.server", "--bind", "127.0.0.1", "--directory"]).arg(tree);
    command.arg(address.port().to_string()).stderr(File::create(&log)?);
    Origin::start("python3 -m http.server", &mut command, address, log)
}

impl Origin {
    fn start(
        name: &'static str,
        command: &mut Command,
        address: SocketAddr,
        log: PathBuf,
    ) -> Outcome<Origin> {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut server = Server::start(name, command)?;
        server.wait_until_it_accepts(address)?;
        Ok(Origin { name, address, server, log, sentinels: 0 })
    }

    /// The status of every answer so far, in order.
    ///
    /// # Errors
    /// When the log cannot be read, or the origin has stopped answering.
    pub fn statuses(&mut self) -> Outcome<Vec<u16>> {
        self.server.must_run()?;
        // An answer may be logged after its client has it; what we ask now is logged behind it.
        let sentinel = format!("{SENTINEL}{}", self.sentinels);
        self.sentinels += 1;
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let host = self.address;
        write!(stream, "GET {sentinel} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
        stream.read_to_end(&mut Vec::new())?;
        let log = wait_for("the end of the log", || {
            let log = workspace::read(&self.log)?;
            Ok(log.contains(&format!(" {sentinel} ")).then_some(log))
        })?;
        Ok(log.lines().filter_map(status_of).collect())
    }
}

/// The status in a line with the request in quotes before it; none for a sentinel, a line without
/// a request, or a connection without one.
fn status_of(line: &str) -> Option<u16> {
    let (_, quoted) = line.split_once('"')?;
    let (request, behind) = quoted.split_once('"')?;
    if request.is_empty() || request.contains(SENTINEL) {
        return None;
    }
    behind.split_whitespace().next()?.parse().ok()
}

/// Servers live in a folder that is not on every user's path.
fn nginx_program() -> &'static str {
    let usual = "/usr/sbin/nginx";
    if Path::new(usual).is_file() { usual } else { "nginx" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_logs_are_read() {
        let python = "127.0.0.1 - - [20/Nov/2026 10:00:00] \"GET /a/ HTTP/1.1\" 304 -";
        assert_eq!(status_of(python), Some(304));
        assert_eq!(status_of("\"GET / HTTP/1.1\" 200"), Some(200));
        assert_eq!(status_of("\"\" 400"), None);
        assert_eq!(status_of(&format!("\"GET {SENTINEL}3 HTTP/1.1\" 404")), None);
        assert_eq!(status_of("127.0.0.1 - - [20/Nov/2026] code 404, message File not"), None);
    }
}
