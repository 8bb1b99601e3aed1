//! In the steady state a hit allocates nothing: ten thousand of them through real sockets, of
//! every kind, with the access log on and its reader stuck.
//!
//! The allocator counts for the whole process while the client below only uses buffers that it
//! has already, so that every allocation counted is the proxy's.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};

use sepia::base::{Counter, Gauge};
use sepia::config::{Config, HostHeader, ListenAddress, Listener, OriginAddress, Reverse, Role};
use sepia::{Clock, Proxy};
use testkit::script::{Gate, ScriptedOrigin};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on to the system's allocator as it came; counting touches no memory
// but an atomic.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises about `layout` are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `System.alloc` with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the pointer came from `System.alloc` with this layout.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// An access log whose reader does not read.
struct Stuck(Gate);

impl Write for Stuck {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.wait();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const BIG: usize = 100_000;
/// Requests for big content that are sent before any answer is read: more than a socket buffers.
const UNREAD: usize = 100;

/// A request, how often it is sent in one write, and the bytes of all its answers.
struct Kind {
    name: &'static str,
    request: Vec<u8>,
    answers: usize,
    bytes: usize,
}

fn start(origin: &ScriptedOrigin, stuck: Gate) -> Proxy {
    let to = vec![OriginAddress { host: "127.0.0.1".into(), port: origin.address().port() }];
    let role = Role::Reverse(Reverse { to, host_header: HostHeader::Keep });
    let address = ListenAddress::Tcp(([127, 0, 0, 1], 0).into());
    let mut config = Config::new(vec![Listener { address, role }]);
    config.workers = 1;
    config.memory = 64 << 20;
    config.access_log = true;
    // Ages, and with them the answers' lengths, stand still.
    let clock = Clock::manual(2_014_879_777);
    Proxy::builder(config).clock(clock).log_to(Stuck(stuck)).start().expect("the proxy starts")
}

fn address(proxy: &Proxy) -> SocketAddr {
    match proxy.addresses().first() {
        Some(ListenAddress::Tcp(address)) => *address,
        other => panic!("no TCP listener: {other:?}"),
    }
}

/// Serves a small and a big cacheable response, once each.
fn serve(origin: &ScriptedOrigin) {
    origin.connection(|c| {
        for length in [100, BIG] {
            c.expect_head();
            c.send(format!(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nETag: \"1\"\r\n\
                 Vary: Accept-Encoding\r\nContent-Length: {length}\r\n\r\n"
            ));
            c.send_generated(0, length as u64);
        }
        c.expect_end();
    });
}

fn kind(name: &'static str, line: &str, fields: &str, count: usize) -> Kind {
    let request = format!("{line} HTTP/1.1\r\nHost: a\r\n{fields}\r\n").repeat(count);
    Kind { name, request: request.into_bytes(), answers: count, bytes: 0 }
}

/// Sends the kind's requests and reads as many bytes as the answers have; allocates nothing.
fn exchange(client: &mut TcpStream, kind: &Kind, buffer: &mut [u8]) {
    client.write_all(&kind.request).expect("the proxy reads");
    let mut read = 0;
    while read < kind.bytes {
        let wanted = buffer.len().min(kind.bytes - read);
        match client.read(&mut buffer[..wanted]).expect("the proxy answers") {
            0 => panic!("{}: closed after {read} of {} bytes", kind.name, kind.bytes),
            count => read += count,
        }
    }
    assert_eq!(read, kind.bytes, "{}", kind.name);
}

/// The length of one answer, read from a connection that closes behind it.
fn measure(address: SocketAddr, kind: &Kind) -> usize {
    let mut client = TcpStream::connect(address).expect("connect");
    let one = &kind.request[..kind.request.len() / kind.answers];
    let closing = [&one[..one.len() - 2], b"Connection: close\r\n\r\n"].concat();
    client.write_all(&closing).expect("write");
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).expect("read");
    // The answer of the steady state lacks this line.
    answer.len() - b"Connection: close\r\n".len()
}

#[test]
fn ten_thousand_hits_allocate_nothing() {
    let origin = ScriptedOrigin::start();
    serve(&origin);
    let stuck = Gate::new();
    let proxy = start(&origin, stuck.clone());
    let address = address(&proxy);
    let mut kinds = [
        kind("GET", "GET /small", "", 1),
        kind("HEAD", "HEAD /small", "", 1),
        kind("304", "GET /small", "If-None-Match: \"1\"\r\n", 1),
        kind("range", "GET /small", "Range: bytes=10-19\r\n", 1),
        kind("pipelined", "GET /small", "Accept-Encoding: \r\nCookie: a=b\r\n", 16),
        kind("big range", "GET /big", "Range: bytes=1000-59999\r\n", 1),
        kind("big under backpressure", "GET /big", "", UNREAD),
    ];
    // Both responses into the store; empty and missing Accept-Encoding are different variants.
    kinds[4].request = kinds[0].request.repeat(16);
    let mut client = TcpStream::connect(address).expect("connect");
    for target in ["/small", "/big"] {
        measure(address, &kind("fill", &format!("GET {target}"), "", 1));
    }
    for kind in &mut kinds {
        kind.bytes = kind.answers * measure(address, kind);
    }
    let mut buffer = vec![0; 1 << 20];
    let hits: usize = kinds.iter().map(|kind| kind.answers).sum();
    let rounds = 10_000_usize.div_ceil(hits);
    // The first rounds grow every buffer to its size, and fill the log.
    for _ in 0..rounds {
        kinds.iter().for_each(|kind| exchange(&mut client, kind, &mut buffer));
    }
    let hits_before = proxy.counters().counter(Counter::Hits);
    let mut blamed = Vec::with_capacity(kinds.len());
    for kind in &kinds {
        let before = ALLOCATIONS.load(Ordering::SeqCst);
        for _ in 0..rounds {
            exchange(&mut client, kind, &mut buffer);
        }
        let count = ALLOCATIONS.load(Ordering::SeqCst) - before;
        if count > 0 {
            blamed.push((kind.name, count));
        }
    }
    let hits_after = proxy.counters().counter(Counter::Hits);
    assert!(hits_after - hits_before >= 10_000, "{}", hits_after - hits_before);
    assert_eq!(blamed, [], "allocations by kind of request");
    let counters = proxy.counters();
    assert!(counters.counter(Counter::LogLinesDropped) > 0, "the log's reader was stuck");
    assert_eq!(counters.gauge(Gauge::SessionsOpen), 1);
    stuck.open();
    drop(client);
    drop(proxy);
    origin.finish();
}
