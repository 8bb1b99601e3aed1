//! `sepia-lab null-server`: the least that a server over the kernel's sockets can cost.
//!
//! One thread, one edge-triggered epoll set; each complete request head is answered with the same
//! prebuilt bytes, whatever it asks. A warm request costs one read and one write, and a batch of
//! ready connections one epoll_wait; heads that came with one read leave with one write. What a
//! real server needs above this is what it has to be worth.
//!
//! It must never do more: no parsing beyond finding the empty line, no timers, no log. Nor may it
//! be used as a server: request content is taken for heads, and silent clients stay for ever.
//!
//! Signals keep their default effect: SIGINT and SIGTERM end the process.

mod answer;
mod connection;

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::path::PathBuf;

use clap::Args;
use mio::event::Event;
use mio::net::TcpListener;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use answer::Answers;
use connection::{Connection, Outcome};

/// Ready connections taken by one epoll_wait.
const EVENTS_MAX: usize = 1024;
/// Bytes taken by one read.
const READ_BYTES: usize = 16 << 10;

const LISTENER: Token = Token(usize::MAX - 1);
const STDIN: Token = Token(usize::MAX - 2);

/// Answer every request with the same prebuilt bytes, as cheaply as the kernel allows.
///
/// The first line of the output ends with the port. SIGINT and SIGTERM end the server.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    sepia-lab null-server --content-bytes 100\n  \
    sepia-lab null-server --head-bytes 250 --content-bytes 1000\n  \
    sepia-lab null-server --field 'Cache-Control: max-age=3600' --content-bytes 100000")]
pub(crate) struct Options {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Send the head in this file, byte for byte
    #[arg(long, value_name = "FILE", conflicts_with_all = ["head_bytes", "field"])]
    head_file: Option<PathBuf>,
    /// Make the head exactly this long, by a field that fills it up
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=65_536))]
    head_bytes: Option<u32>,
    /// Add a field line to the head; repeatable
    #[arg(long, value_name = "NAME: VALUE")]
    field: Vec<String>,
    /// Length of the content
    #[arg(long, value_name = "N", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(..=1_000_000_000))]
    content_bytes: u32,
    /// End when standard input, a pipe or a terminal, is closed
    #[arg(long)]
    until_stdin_closes: bool,
}

/// Serves until the process is ended, or standard input when that was asked for.
///
/// # Errors
/// When the answer cannot be built as asked, or the listener or the epoll set fails.
pub(crate) fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let answers = Answers::new(options)?;
    raise_descriptor_limit();
    let mut server = Server::new(options, answers)?;
    let mut output = io::stdout().lock();
    writeln!(output, "null server listening on http://{}", server.listener.local_addr()?)?;
    writeln!(output, "{} bytes an answer", server.answers.answer_bytes())?;
    output.flush()?;
    Ok(server.serve()?)
}

/// The epoll set and everything in it.
#[derive(Debug)]
struct Server {
    poll: Poll,
    listener: TcpListener,
    /// False while the process has no descriptor left for another connection.
    may_accept: bool,
    connections: Vec<Option<Connection>>,
    free_slots: Vec<usize>,
    answers: Answers,
    /// One buffer for all: a request is never kept beyond its read.
    buffer: Vec<u8>,
}

impl Server {
    fn new(options: &Options, answers: Answers) -> io::Result<Server> {
        let poll = Poll::new()?;
        let mut listener = TcpListener::bind(options.listen).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot listen on {}: {error}", options.listen))
        })?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        if options.until_stdin_closes {
            let stdin: RawFd = io::stdin().as_raw_fd();
            let watched =
                poll.registry().register(&mut SourceFd(&stdin), STDIN, Interest::READABLE);
            watched.map_err(|error| {
                let cause = format!("standard input is neither a pipe nor a terminal: {error}");
                io::Error::new(error.kind(), cause)
            })?;
        }
        Ok(Server {
            poll,
            listener,
            may_accept: true,
            connections: Vec::new(),
            free_slots: Vec::new(),
            answers,
            buffer: vec![0; READ_BYTES],
        })
    }

    fn serve(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS_MAX);
        loop {
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                outcome => outcome?,
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.accept()?,
                    STDIN if is_stdin_closed(event) => return Ok(()),
                    STDIN => {}
                    Token(slot) => self.handle_ready(slot, event),
                }
            }
            if !self.may_accept {
                self.accept()?;
            }
        }
    }

    /// Accepts until nobody waits; without a descriptor left, goes on after the next events.
    fn accept(&mut self) -> io::Result<()> {
        loop {
            match self.listener.accept() {
                Ok((mut stream, _)) => {
                    stream.set_nodelay(true)?;
                    let slot = self.free_slots.pop().unwrap_or(self.connections.len());
                    let interest = Interest::READABLE | Interest::WRITABLE;
                    self.poll.registry().register(&mut stream, Token(slot), interest)?;
                    if slot == self.connections.len() {
                        self.connections.push(None);
                    }
                    self.connections[slot] = Some(Connection::new(stream));
                    self.may_accept = true;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.may_accept = true;
                    return Ok(());
                }
                Err(error) if is_for_one_connection(&error) => {}
                Err(_) => {
                    self.may_accept = false;
                    return Ok(());
                }
            }
        }
    }

    fn handle_ready(&mut self, slot: usize, event: &Event) {
        let Some(Some(connection)) = self.connections.get_mut(slot) else { return };
        if event.is_readable() {
            connection.handle_readable(event.is_read_closed());
        }
        match connection.drive(&mut self.buffer, &self.answers) {
            Outcome::Waits => {}
            Outcome::Ended => {
                // Closing the socket takes it out of the epoll set.
                self.connections[slot] = None;
                self.free_slots.push(slot);
            }
        }
    }
}

/// Whether `accept` failed for one client alone (accept(2): pending network errors).
fn is_for_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}

fn is_stdin_closed(event: &Event) -> bool {
    event.is_read_closed() || matches!(io::stdin().read(&mut [0; 256]), Ok(0) | Err(_))
}

/// A thousand connections need more descriptors than the usual soft limit.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    // With the old limit the server works too, for fewer connections.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
