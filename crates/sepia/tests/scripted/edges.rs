//! What an edge-triggered loop could overlook: bytes and ends that no further event announces.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::thread;

use sepia::base::{Counter, Gauge};
use testkit::script::ScriptedOrigin;

use super::bed::{Running, START_DATE, each_path};

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

/// A request for the warm page of exactly so many bytes.
fn request_of(bytes: usize) -> String {
    let head = "GET / HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n";
    head.replace("X: ", &format!("X: {}", "x".repeat(bytes - head.len())))
}

/// Sends the bytes from one thread and reads the answers in another; the session ends with the
/// client's end. Returns how many answers came.
fn answers(proxy: &Running, pieces: Vec<String>) -> usize {
    let mut output = proxy.client().into_stream();
    let mut input = output.try_clone().expect("a handle");
    let sending = thread::spawn(move || {
        for piece in pieces {
            output.write_all(piece.as_bytes()).expect("taken");
        }
        output.shutdown(Shutdown::Write).expect("an end");
    });
    let mut received = Vec::new();
    input.read_to_end(&mut received).expect("all answers, and the end");
    sending.join().expect("sent");
    let text = String::from_utf8(received).expect("text");
    assert!(text.ends_with("hello"));
    text.matches("HTTP/1.1 200 OK\r\n").count()
}

#[test]
fn pipelined_requests_of_exactly_one_read_and_of_many_are_all_answered() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        answer_all(&origin);
        let proxy = bed.gateway(&origin);
        assert_eq!(proxy.client().get("/", "a", &[]).text(), "hello");
        for kibibytes in [64, 128, 192, 256, 1024] {
            let requests = kibibytes << 10 >> 6;
            let sent = request_of(64).repeat(requests);
            assert_eq!(sent.len(), kibibytes << 10);
            assert_eq!(answers(&proxy, vec![sent]), requests, "{kibibytes} KiB");
        }
        assert_eq!(proxy.count(Counter::Misses), 1);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn requests_that_come_while_others_are_answered_are_not_forgotten() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        answer_all(&origin);
        let proxy = bed.gateway(&origin);
        assert_eq!(proxy.client().get("/", "a", &[]).text(), "hello");
        for _ in 0..20 {
            // More than a turn's share, then more, cut in the middle of a head.
            let sent = request_of(64).repeat(150);
            let pieces = sent.as_bytes().chunks(64 * 50 + 17);
            let pieces = pieces.map(|piece| String::from_utf8_lossy(piece).into_owned());
            assert_eq!(answers(&proxy, pieces.collect()), 150);
        }
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn a_client_that_ends_its_side_with_the_request_gets_the_answer_and_the_end() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        answer_all(&origin);
        let proxy = bed.gateway(&origin);
        // The first is a miss, the others are hits.
        for _ in 0..100 {
            let mut client = proxy.client();
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            client.half_close();
            assert_eq!(client.expect_response("GET").text(), "hello");
            client.expect_end();
        }
        proxy.until("all to be closed", |proxy| proxy.gauge(Gauge::SessionsOpen) == 0);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn a_large_hit_reaches_a_client_that_begins_to_read_late() {
    const BYTES: usize = 12 << 20;
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send(format!(
                "HTTP/1.1 200 OK\r\nDate: {START_DATE}\r\nCache-Control: max-age=60\r\n\
                 Content-Length: {BYTES}\r\n\r\n"
            ));
            c.send_generated(0, BYTES as u64);
            c.expect_closed();
        });
        let proxy = bed.gateway(&origin);
        let first = proxy.client().get("/", "a", &[]);
        assert_eq!(first.content.len(), BYTES);
        let mut late = proxy.client();
        late.send("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
        late.half_close();
        // The worker has others to serve meanwhile.
        proxy.until("a full socket", |proxy| proxy.count(Counter::Hits) >= 1);
        let mut other = proxy.client();
        other.send("OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n");
        assert_eq!(other.expect_response("OPTIONS").status, 200);
        for _ in 0..2 {
            assert!(late.expect_response("GET").content == first.content);
        }
        late.expect_end();
        drop(proxy);
        origin.finish();
    });
}
