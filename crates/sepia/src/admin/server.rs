//! The admin threads: one that accepts, and at most [`limits::ADMIN_CONNECTIONS`] that serve.
//!
//! They share nothing with the workers but what [`Live`] gives them.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use super::control::ControlSocket;
use super::live::Live;
use super::request::{Door, Stream, serve};
use crate::base::limits;

/// The running admin side; dropping it ends the accepting thread and removes the control socket.
/// Answers that are being written are finished by their own threads.
pub struct AdminServer {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
    control: Option<PathBuf>,
    admin: Option<SocketAddr>,
}

/// How the accepting thread is told to end.
struct Stop {
    wake: OwnedFd,
    is_stopping: AtomicBool,
}

impl AdminServer {
    /// Binds the control socket and the admin listener, whichever are given, and serves them.
    ///
    /// # Errors
    /// When a place is taken or cannot be used, or the thread cannot be made.
    pub fn start(
        control: Option<&Path>,
        admin: Option<SocketAddr>,
        live: Arc<dyn Live>,
    ) -> io::Result<Self> {
        let control = control
            .map(|path| ControlSocket::bind(path).map_err(|error| explain(&path.display(), &error)))
            .transpose()?;
        let admin = admin
            .map(|address| TcpListener::bind(address).map_err(|error| explain(&address, &error)))
            .transpose()?;
        if let Some(admin) = &admin {
            admin.set_nonblocking(true)?;
        }
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let stop = Arc::new(Stop { wake, is_stopping: AtomicBool::new(false) });
        let mut server = AdminServer {
            stop: Arc::clone(&stop),
            control: control.as_ref().map(|control| control.path().into()),
            admin: admin.as_ref().map(TcpListener::local_addr).transpose()?,
            thread: None,
        };
        let doors = Doors { control, admin, stop, live, busy: Arc::default() };
        let thread = thread::Builder::new().name("admin".into()).spawn(move || doors.watch())?;
        server.thread = Some(thread);
        Ok(server)
    }

    /// Where the control socket is.
    #[must_use]
    pub fn control(&self) -> Option<&Path> {
        self.control.as_deref()
    }

    /// The admin listener's bound address.
    #[must_use]
    pub fn admin(&self) -> Option<SocketAddr> {
        self.admin
    }
}

impl Drop for AdminServer {
    fn drop(&mut self) {
        self.stop.is_stopping.store(true, Ordering::Release);
        // The eventfd is full only if it has been written before, which wakes as well.
        rustix::io::write(&self.stop.wake, &1_u64.to_ne_bytes()).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// Names the place that cannot be listened on.
fn explain(place: &dyn std::fmt::Display, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot listen on {place} for operators: {error}"))
}

/// What the accepting thread owns.
struct Doors {
    control: Option<ControlSocket>,
    admin: Option<TcpListener>,
    stop: Arc<Stop>,
    live: Arc<dyn Live>,
    busy: Arc<AtomicUsize>,
}

impl Doors {
    /// Accepts until it is told to stop.
    fn watch(self) {
        while !self.stop.is_stopping.load(Ordering::Acquire) {
            let mut watched = vec![PollFd::new(&self.stop.wake, PollFlags::IN)];
            if let Some(control) = &self.control {
                watched.push(PollFd::new(control.listener(), PollFlags::IN));
            }
            if let Some(admin) = &self.admin {
                watched.push(PollFd::new(admin, PollFlags::IN));
            }
            if poll(&mut watched, None).is_err() {
                // Interrupted by a signal: look again.
                continue;
            }
            self.accept();
        }
    }

    /// Takes at most one connection from each door. One that cannot be accepted for want of
    /// descriptors waits in the queue; the pause keeps this thread from spinning meanwhile.
    fn accept(&self) {
        let control = self.control.as_ref().map(|control| control.listener().accept());
        let admin = self.admin.as_ref().map(TcpListener::accept);
        let mut is_short = false;
        match control {
            Some(Ok((stream, _))) => self.serve(stream, Door::Control),
            Some(Err(error)) => is_short |= error.kind() != io::ErrorKind::WouldBlock,
            None => {}
        }
        match admin {
            Some(Ok((stream, _))) => self.serve(stream, Door::Admin),
            Some(Err(error)) => is_short |= error.kind() != io::ErrorKind::WouldBlock,
            None => {}
        }
        if is_short {
            thread::park_timeout(std::time::Duration::from_millis(100));
        }
    }

    /// Serves a connection on a thread of its own; one too many is closed without an answer.
    fn serve(&self, mut stream: impl Stream + Send + 'static, door: Door) {
        let Some(place) = Place::take(&self.busy) else { return };
        let live = Arc::clone(&self.live);
        let run = move || {
            // The peer has gone or was too slow: nobody is left to tell.
            serve(&mut stream, door, live.as_ref()).ok();
            drop(place);
        };
        // Without a thread the connection is closed, as when there are too many.
        thread::Builder::new().name("admin-connection".into()).spawn(run).ok();
    }
}

/// One of the few places for connections; given back when dropped, also by a panic.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(busy: &Arc<AtomicUsize>) -> Option<Place> {
        let place = Place(Arc::clone(busy));
        let before = busy.fetch_add(1, Ordering::AcqRel);
        (before < limits::ADMIN_CONNECTIONS).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::AdminServer;
    use crate::admin::control::tests::Scratch;
    use crate::admin::live::tests::Still;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::os::unix::net::UnixStream;
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    struct Stage {
        server: AdminServer,
        live: Arc<Still>,
        _scratch: Scratch,
    }

    fn stage(name: &str) -> Stage {
        let scratch = Scratch::new(name);
        let live = Arc::new(Still::new());
        let path = scratch.0.join("control.sock");
        let any_port = Some(([127, 0, 0, 1], 0).into());
        let server = AdminServer::start(Some(&path), any_port, live.clone()).unwrap();
        Stage { server, live, _scratch: scratch }
    }

    impl Stage {
        fn control(&self, request: &str) -> String {
            let mut stream = UnixStream::connect(self.server.control().unwrap()).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        }

        fn admin(&self, request: &str) -> String {
            let mut stream = TcpStream::connect(self.server.admin().unwrap()).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        }
    }

    fn request(method: &str, target: &str) -> String {
        format!("{method} {target} HTTP/1.1\r\nHost: sepia\r\n\r\n")
    }

    #[test]
    fn the_control_socket_serves_everything() {
        let stage = stage("control");
        let status = stage.control(&request("GET", "/status"));
        assert!(status.starts_with("HTTP/1.1 200 OK\r\n"), "{status}");
        assert!(status.contains("Requests answered from a fresh stored response."), "{status}");
        let json = stage.control(&request("GET", "/status?json"));
        assert!(json.contains("Content-Type: application/json\r\n"), "{json}");
        assert!(stage.control(&request("GET", "/metrics")).ends_with("# EOF\n"));
        assert!(stage.control(&request("GET", "/ready")).ends_with("\r\n\r\nready\n"));

        let answer = stage.control(&request("POST", "/reload"));
        assert!(answer.contains("200 OK") && answer.ends_with("sepia.toml taken over\n"));
        let answer = stage.control(&request("POST", "/reload"));
        assert!(answer.starts_with("HTTP/1.1 422 "), "{answer}");
        assert!(answer.ends_with("1 mistake in sepia.toml\n"), "{answer}");
    }

    #[test]
    fn the_admin_listener_serves_only_what_harms_nobody() {
        let stage = stage("admin");
        assert!(stage.admin(&request("GET", "/metrics")).contains("sepia_hits_total 1234\n"));
        for target in ["/status", "/reload", "/"] {
            let answer = stage.admin(&request("POST", target));
            assert!(answer.starts_with("HTTP/1.1 404 "), "{target} {answer}");
        }
        assert_eq!(stage.live.reloads.load(Ordering::Relaxed), 0);
        let head = stage.admin(&request("HEAD", "/metrics"));
        assert!(head.ends_with("\r\n\r\n") && !head.contains("Content-Length: 0"), "{head}");
    }

    #[test]
    fn readiness_ends_with_the_drain() {
        let stage = stage("ready");
        assert!(stage.admin(&request("GET", "/ready")).starts_with("HTTP/1.1 200 "));
        stage.live.ready.store(false, Ordering::Relaxed);
        assert!(stage.admin(&request("GET", "/ready")).starts_with("HTTP/1.1 503 "));
    }

    #[test]
    fn wrong_methods_and_malformed_heads_are_answered() {
        let stage = stage("wrong");
        let cases = [
            (request("GET", "/reload"), "HTTP/1.1 405 ", "Allow: POST\r\n"),
            (request("POST", "/status"), "HTTP/1.1 405 ", "Allow: GET, HEAD\r\n"),
            ("GET /status HTTP/1.1\r\n\r\n".into(), "HTTP/1.1 400 ", "Host"),
            (format!("GET /{} HTTP/1.1\r\n", "x".repeat(9_000)), "HTTP/1.1 414 ", "too"),
        ];
        for (request, status, part) in cases {
            let answer = stage.control(&request);
            assert!(answer.starts_with(status), "{answer}");
            assert!(answer.contains(part) || part == "too", "{answer}");
        }
    }

    #[test]
    fn connections_that_say_nothing_take_only_the_places_there_are() {
        let stage = stage("silent");
        let path: PathBuf = stage.server.control().unwrap().into();
        let silent: Vec<_> = (0..8).map(|_| UnixStream::connect(&path).unwrap()).collect();
        let mut one_too_many = UnixStream::connect(&path).unwrap();
        let mut answer = Vec::new();
        one_too_many.read_to_end(&mut answer).unwrap();
        assert!(answer.is_empty(), "closed at once");
        drop(silent);
        // Their places come free when their threads have seen the close.
        while stage.control_try().is_none() {
            std::thread::yield_now();
        }
    }

    impl Stage {
        fn control_try(&self) -> Option<()> {
            let mut stream = UnixStream::connect(self.server.control().unwrap()).ok()?;
            stream.write_all(request("GET", "/ready").as_bytes()).ok()?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).ok()?;
            answer.ends_with("ready\n").then_some(())
        }
    }

    #[test]
    fn the_end_removes_the_control_socket() {
        let stage = stage("end");
        let path: PathBuf = stage.server.control().unwrap().into();
        assert!(path.exists());
        drop(stage.server);
        assert!(!path.exists());
    }
}
