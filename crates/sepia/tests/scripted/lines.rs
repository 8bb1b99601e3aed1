//! The access log: a line an exchange, whatever the peers write and however its reader behaves.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use sepia::base::Counter;
use sepia::config::ListenAddress;
use testkit::script::{RefusingAddress, ScriptedClient, ScriptedOrigin};

use super::bed::{Bed, START_DATE, each_path};
use super::listeners::Folder;

/// Keeps what is written.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Kept {
    fn lines(&self) -> Vec<String> {
        let bytes = self.0.lock().expect("no writer panics").clone();
        let text = String::from_utf8(bytes).expect("a log is text");
        text.lines().map(str::to_owned).collect()
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no writer panics").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes nothing until it is told to, and says when it has been reached.
struct Stalled {
    reached: Sender<()>,
    go_on: Receiver<()>,
    kept: Kept,
}

impl Write for Stalled {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The story may have ended.
        let _ = self.reached.send(());
        let _ = self.go_on.recv();
        self.kept.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The columns of a line, the quoted one as one.
fn columns(line: &str) -> Vec<String> {
    let (front, rest) = line.split_once(" \"").expect("a quoted Cache-Status");
    let (cache_status, back) = rest.split_once("\" ").expect("the quote ends");
    let mut columns: Vec<String> = front.split(' ').map(str::to_owned).collect();
    columns.push(cache_status.to_owned());
    columns.extend(back.split(' ').map(str::to_owned));
    columns
}

fn answer_all(origin: &ScriptedOrigin) {
    origin.connection(|c| {
        while c.next_request().is_some() {
            c.send(format!(
                "HTTP/1.1 200 OK\r\nDate: {START_DATE}\r\nCache-Control: max-age=60\r\n\
                 Content-Length: 5\r\n\r\nhello"
            ));
        }
    });
}

#[test]
fn each_exchange_has_its_line() {
    each_path(|bed| {
        let kept = Kept::default();
        let origin = ScriptedOrigin::start();
        answer_all(&origin);
        let trusting = |bed: Bed| {
            bed.with(|config| config.trust = vec!["127.0.0.0/8".parse().expect("a network")])
        };
        let proxy = trusting(bed).log_to(kept.clone()).gateway(&origin);
        let mut client = proxy.client();
        client.get("/a?b=c", "example.org:8080", &[("X-Request-ID", "first")]);
        client.get("/a?b=c", "example.org:8080", &[("X-Request-ID", "second")]);
        client.send("HEAD /a?b=c HTTP/1.1\r\nHost: example.org:8080\r\n\r\n");
        client.expect_response("HEAD");
        client.send("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n");
        client.expect_response("CONNECT");
        client.send("no request\r\n\r\n");
        client.expect_response("GET");
        client.close();
        drop(proxy);
        origin.finish();
        let lines = kept.lines();
        assert_eq!(lines.len(), 5, "{lines:#?}");
        let columns: Vec<_> = lines.iter().map(|line| columns(line)).collect();
        assert_eq!(columns[0][0], "2033-11-06T08:49:37.000Z");
        assert!(columns[0][1].starts_with("127.0.0.1:"), "{lines:#?}");
        let fixed = |line: &[String]| line[2..].join("|");
        let target = "http://example.org:8080/a?b=c";
        let first = format!("GET|{target}|200|5|0us|sepia; fwd=uri-miss; stored|first");
        assert_eq!(fixed(&columns[0]), first);
        assert_eq!(fixed(&columns[1]), format!("GET|{target}|200|5|0us|sepia; hit; ttl=60|second"));
        assert!(fixed(&columns[2]).starts_with(&format!("HEAD|{target}|200|0|0us|sepia; hit")));
        assert!(columns[2][8].len() >= 8, "a request id of our own: {lines:#?}");
        assert!(fixed(&columns[3]).starts_with("CONNECT|a:443|405|"), "{lines:#?}");
        assert!(lines[3].ends_with(" method-not-allowed"), "{lines:#?}");
        assert_eq!(columns[4][4], "400");
        assert_eq!(columns[4].len(), 10, "{lines:#?}");
    });
}

#[test]
fn nobody_can_forge_a_line_or_a_column() {
    each_path(|bed| {
        let kept = Kept::default();
        let origin = ScriptedOrigin::start();
        answer_all(&origin);
        let proxy = bed
            .with(|config| config.trust = vec!["127.0.0.0/8".parse().expect("a network")])
            .log_to(kept.clone())
            .gateway(&origin);
        let mut client = proxy.client();
        client.get("/", "a", &[("X-Request-ID", "x y\" 200 \u{e9}\t\\n")]);
        client.close();
        drop(proxy);
        origin.finish();
        let lines = kept.lines();
        assert_eq!(lines.len(), 1);
        assert!(lines[0].is_ascii(), "{lines:?}");
        assert_eq!(columns(&lines[0]).len(), 9, "{lines:?}");
    });
}

#[test]
fn a_tunnel_has_one_line_at_its_end_and_a_unix_peer_no_address() {
    each_path(|bed| {
        let (kept, folder) = (Kept::default(), Folder::new());
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_bytes("123");
            c.send("4567");
        });
        let path = folder.0.join("proxy.sock");
        let place = ListenAddress::Unix(path.clone());
        let proxy = bed
            .with(move |config| config.listeners[0].address = place.clone())
            .log_to(kept.clone())
            .forward();
        let mut client = ScriptedClient::connect_unix(&path);
        let address = origin.address();
        client.send(format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n123"));
        assert_eq!(client.expect_response("CONNECT").status, 200);
        client.expect_bytes("4567");
        client.expect_end();
        client.close();
        drop(proxy);
        origin.finish();
        let lines = kept.lines();
        assert_eq!(lines.len(), 1, "{lines:#?}");
        let front = format!("2033-11-06T08:49:37.000Z unix CONNECT {address} 200 7 0us ");
        assert!(lines[0].starts_with(&front), "{lines:#?}");
    });
}

#[test]
fn a_failure_names_its_reason() {
    each_path(|bed| {
        let kept = Kept::default();
        let nobody = RefusingAddress::hold();
        let proxy = bed.log_to(kept.clone()).gateway_to(&[nobody.address()]);
        let mut client = proxy.client();
        assert_eq!(client.get("/", "a", &[]).status, 502);
        drop(proxy);
        let lines = kept.lines();
        assert!(lines[0].ends_with(" origin-refused"), "{lines:?}");
    });
}

#[test]
fn a_reader_that_stalls_costs_lines_and_no_answers() {
    const REQUESTS: u64 = 3_000;
    each_path(|bed| {
        let (reached, at_reader) = channel();
        let (release, go_on) = channel();
        let kept = Kept::default();
        let stalled = Stalled { reached, go_on, kept: kept.clone() };
        let origin = ScriptedOrigin::start();
        answer_all(&origin);
        let proxy = bed.log_to(stalled).gateway(&origin);
        let mut client = proxy.client();
        let target = format!("/{}", "x".repeat(300));
        client.get(&target, "a", &[]);
        at_reader.recv().expect("the first line reaches the reader");
        let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
        let batch = request.repeat(100);
        for _ in 0..REQUESTS / 100 {
            client.send(&batch);
            for _ in 0..100 {
                assert_eq!(client.expect_response("GET").status, 200);
            }
        }
        proxy.until("dropped lines", |proxy| proxy.count(Counter::LogLinesDropped) > 0);
        // What is dropped is counted at the end of a turn: another one has to follow the last.
        let trace = "TRACE / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n";
        for _ in 0..2 {
            client.send(trace);
            assert_eq!(client.expect_response("TRACE").status, 200);
        }
        let dropped = proxy.count(Counter::LogLinesDropped);
        drop(release);
        client.close();
        drop(proxy);
        origin.finish();
        let lines = kept.lines();
        // The last one may not have been counted when it was asked.
        let told = lines.len() as u64 + dropped;
        assert!((REQUESTS + 2..=REQUESTS + 3).contains(&told), "{told} are there or counted");
        assert!(lines.iter().all(|line| columns(line).len() == 9));
    });
}

#[test]
fn the_answer_to_a_refused_head_counts_no_bytes() {
    each_path(|bed| {
        let kept = Kept::default();
        let origin = ScriptedOrigin::start();
        let proxy = bed.log_to(kept.clone()).gateway(&origin);
        let mut client = proxy.client();
        client.send("HEAD / HTTP/1.1\r\nHost: a\r\nCache-Control: only-if-cached\r\n\r\n");
        assert_eq!(client.expect_response("HEAD").status, 504);
        client.send("HEAD / HTTP/1.1\r\n\r\n");
        assert_eq!(client.expect_response("HEAD").status, 400);
        client.expect_end();
        drop((client, proxy));
        origin.finish();
        let lines = kept.lines();
        let bytes: Vec<_> = lines.iter().map(|line| columns(line)[5].clone()).collect();
        assert_eq!(bytes, ["0", "0"], "{lines:#?}");
    });
}
