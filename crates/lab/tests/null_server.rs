//! The null server as a process: what clients get, and how it ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A running server, which ends with its standard input.
struct NullServer {
    child: Child,
    port: u16,
}

impl NullServer {
    fn start(options: &[&str]) -> NullServer {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sepia-lab"))
            .args(["null-server", "--until-stdin-closes"])
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut line = String::new();
        let output = child.stdout.as_mut().expect("a piped output");
        BufReader::new(output).read_line(&mut line).expect("a line");
        let port = line.trim().rsplit(':').next().and_then(|port| port.parse().ok());
        NullServer { child, port: port.expect("a port at the end of the line") }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
        stream
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().expect("an ended server").success());
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        // It has ended already, unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn pipelined_heads_get_one_answer_each() {
    let server =
        NullServer::start(&["--field", "Cache-Control: max-age=3600", "--content-bytes", "3"]);
    let mut stream = server.connect();
    stream.write_all(&b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(1_000)).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    let one = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nCache-Control: max-age=3600\r\n\r\n...";
    assert_eq!(answers, one.repeat(1_000));
    server.end();
}

#[test]
fn a_client_that_reads_late_gets_every_byte() {
    let server = NullServer::start(&["--head-bytes", "100", "--content-bytes", "100000"]);
    let mut stream = server.connect();
    // Far more than the sockets can hold: the server has to wait and go on.
    stream.write_all(&b"GET / HTTP/1.1\r\n\r\n".repeat(400)).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut other = server.connect();
    other.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    other.read_exact(&mut vec![0; 100_100]).unwrap();
    let mut answers = Vec::new();
    stream.read_to_end(&mut answers).unwrap();
    assert_eq!(answers.len(), 400 * 100_100);
    server.end();
}

#[test]
fn a_head_from_a_file_is_sent_as_it_is() {
    let path = std::env::temp_dir().join(format!("null-server-{}.head", std::process::id()));
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nAge: 7\r\n\r\n";
    std::fs::write(&path, head).unwrap();
    let name = path.to_str().unwrap();
    let server = NullServer::start(&["--head-file", name, "--content-bytes", "2"]);
    let mut stream = server.connect();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = vec![0; head.len() + 2];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer, format!("{head}..").into_bytes());
    server.end();
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_standard_input_that_cannot_close_is_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_sepia-lab"))
        .args(["null-server", "--until-stdin-closes"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("standard input"));
}
