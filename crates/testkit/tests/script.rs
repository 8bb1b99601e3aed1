//! The scripted test bed against itself: what its expectations accept, refuse and report.

use std::os::unix::net::UnixListener;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use testkit::script::{Gate, RefusingAddress, ScriptedClient, ScriptedOrigin};
use testkit::site::content_at;

/// The message with which `story` fails.
fn failure_of(story: impl FnOnce()) -> String {
    let cause = catch_unwind(AssertUnwindSafe(story)).expect_err("the story fails");
    *cause.downcast::<String>().expect("a failure is a text")
}

#[test]
fn a_story_over_one_connection() {
    let origin = ScriptedOrigin::start();
    origin.connection(|c| {
        let request = c.expect_head();
        assert_eq!((&*request.method, &*request.target), ("GET", "/a"));
        assert_eq!(request.field("HOST"), Some("a"));
        assert_eq!(request.field_all("x"), ["1", "2"]);
        c.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
        let request = c.expect_request();
        assert_eq!(request.text(), "posted");
        c.send("HTTP/1.1 204 No Content\r\n\r\n");
        c.expect_end();
    });
    let mut client = ScriptedClient::connect(origin.address());
    let response = client.get("/a", "a", &[("X", "1"), ("X", "2")]);
    assert_eq!((response.status, &*response.text()), (200, "hello"));
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nposted");
    assert_eq!(client.expect_response("POST").status, 204);
    client.half_close();
    client.expect_end();
    origin.finish();
}

#[test]
fn rfc9112_6_3_where_the_content_of_a_response_ends() {
    let chunked =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: 1\r\n\r\n";
    let table = [
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", ""),
        ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", ""),
        ("GET", "HTTP/1.1 103 Early Hints\r\n\r\n", ""),
        ("CONNECT", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", ""),
        ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde", "abcde"),
        ("GET", "HTTP/1.1 200\nContent-Length:5\n\nabcde", "abcde"),
        ("GET", chunked, "abc"),
        ("GET", "HTTP/1.0 200 OK\r\n\r\nuntil the end", "until the end"),
    ];
    let origin = ScriptedOrigin::start();
    for (method, sent, content) in table {
        origin.connection(move |c| c.send(sent));
        let mut client = ScriptedClient::connect(origin.address());
        let response = client.expect_response(method);
        assert_eq!(response.text(), content, "{sent}");
        client.expect_end();
    }
    origin.finish();
}

#[test]
fn trailers_and_obs_text_are_kept() {
    let origin = ScriptedOrigin::start();
    origin.connection(|c| {
        c.send(b"HTTP/1.1 200 OK\r\nX: caf\xe9\r\nTransfer-Encoding: chunked\r\n\r\n");
        c.send("2\r\nab\r\n0\r\nDigest: 1\r\n\r\n");
    });
    let mut client = ScriptedClient::connect(origin.address());
    let response = client.expect_response("GET");
    assert_eq!(response.field("x"), Some("caf\u{e9}"));
    assert_eq!(response.trailers.first("digest"), Some("1"));
    assert!(response.raw_head.ends_with(b"chunked\r\n\r\n"));
    origin.finish();
}

#[test]
fn a_gate_holds_an_answer_back_until_the_test_opens_it() {
    let origin = ScriptedOrigin::start();
    let (gate, own) = (Gate::new(), Gate::new());
    let (held, reached) = (gate.clone(), own.clone());
    origin.connection(move |c| {
        c.expect_head();
        c.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na");
        reached.open();
        held.wait();
        c.send("b");
    });
    let mut client = ScriptedClient::connect(origin.address());
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    own.wait();
    assert_eq!(client.expect_head().status, 200);
    client.expect_bytes("a");
    client.expect_nothing_buffered();
    gate.open();
    client.expect_bytes("b");
    client.expect_end();
    origin.finish();
}

#[test]
fn resets_closes_and_slow_bytes_arrive_as_such() {
    let origin = ScriptedOrigin::start();
    origin.connection(|c| {
        c.expect_bytes("slow");
        c.reset();
    });
    let mut client = ScriptedClient::connect(origin.address());
    client.send_slowly("slow");
    client.expect_reset();

    origin.connection(|c| {
        c.send_generated(7, 100_000);
        c.close();
    });
    let mut client = ScriptedClient::connect(origin.address());
    assert!(client.expect_closed() == content_at(7, 100_000));

    origin.connection(|c| c.expect_reset());
    ScriptedClient::connect(origin.address()).reset();
    origin.finish();
}

#[test]
fn a_client_may_go_on_sending_after_the_other_side_is_gone() {
    let origin = ScriptedOrigin::start();
    origin.connection(|c| c.reset());
    let mut client = ScriptedClient::connect(origin.address());
    client.expect_reset();
    assert!(client.send_anyway(vec![0; 10_000_000]) < 10_000_000);
    origin.finish();
}

#[test]
fn nobody_listens_at_a_refusing_address() {
    let refusing = RefusingAddress::hold();
    let failure = failure_of(|| drop(ScriptedClient::connect(refusing.address())));
    assert!(failure.contains("refused"), "{failure}");
}

#[test]
fn unix_sockets_too() {
    let path = std::env::temp_dir().join(format!("testkit-{}.sock", std::process::id()));
    let listener = UnixListener::bind(&path).unwrap();
    let other_side = thread::spawn(move || listener.accept().map(drop));
    let mut client = ScriptedClient::connect_unix(&path);
    client.expect_end();
    other_side.join().unwrap().unwrap();
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_failed_expectation_shows_what_had_come() {
    let origin = ScriptedOrigin::start();
    origin.connection(|c| c.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"));
    let mut client = ScriptedClient::connect(origin.address());
    let failure = failure_of(|| drop(client.expect_response("GET")));
    assert!(failure.contains("closed after 3 of 5 bytes"), "{failure}");
    assert!(failure.contains("Content-Length: 5"), "{failure}");
    origin.finish();
}

#[test]
fn bytes_before_the_end_are_not_the_end() {
    let origin = ScriptedOrigin::start();
    origin.connection(|c| c.send("more"));
    let mut client = ScriptedClient::connect(origin.address());
    let failure = failure_of(|| client.expect_end());
    assert!(failure.contains("4 bytes came first"), "{failure}");
    origin.finish();
}

#[test]
fn finish_reports_a_failed_script() {
    let origin = ScriptedOrigin::start();
    origin.connection(|c| {
        assert_eq!(c.expect_head().target, "/b", "the target");
    });
    let mut client = ScriptedClient::connect(origin.address());
    client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    client.expect_closed();
    let failure = failure_of(|| origin.finish());
    assert!(failure.contains("script 1") && failure.contains("the target"), "{failure}");
}

#[test]
fn finish_reports_connections_without_a_script() {
    let origin = ScriptedOrigin::start();
    let _client = ScriptedClient::connect(origin.address());
    let _another = ScriptedClient::connect(origin.address());
    let failure = failure_of(|| origin.finish());
    assert!(failure.contains("2 connections more than scripts"), "{failure}");
}

#[test]
fn a_dropped_origin_reports_as_finish_does() {
    let origin = ScriptedOrigin::start();
    origin.connection(|c| c.expect_bytes("a"));
    let mut client = ScriptedClient::connect(origin.address());
    client.send("b");
    client.expect_closed();
    let failure = failure_of(|| drop(origin));
    assert!(failure.contains("other bytes came"), "{failure}");
}
