//! Sessions: how long a connection lives, and many requests on it. RFC 9112 sections 9.3 and 9.6.

use sepia::base::{Counter, Gauge, Reason};
use testkit::script::{Gate, ScriptedOrigin};
use testkit::site::content_at;

use super::bed::{Bed, each_path};

/// An origin that answers `GET /<content>` with its content, storable if it begins with `s`.
fn echoing_origin() -> ScriptedOrigin {
    let origin = ScriptedOrigin::start();
    origin.connection(|c| {
        while let Some(request) = c.next_request() {
            let content = request.target.rsplit('/').next().unwrap_or_default();
            let caching = if content.starts_with('s') { "max-age=60" } else { "no-store" };
            c.send(format!(
                "HTTP/1.1 200 OK\r\nCache-Control: {caching}\r\nContent-Length: {}\r\n\r\n",
                content.len()
            ));
            if request.method != "HEAD" {
                c.send(content);
            }
        }
    });
    origin
}

fn request(target: &str, version: &str, connection: &str) -> String {
    let field =
        if connection.is_empty() { String::new() } else { format!("Connection: {connection}\r\n") };
    format!("GET {target} HTTP/{version}\r\nHost: example.org\r\n{field}\r\n")
}

/// Whether the session goes on after the answer, for a version and Connection of the request.
type KeepRule = (&'static str, &'static str, bool, Option<&'static str>);

#[test]
fn rfc9112_9_3_a_gateway_keeps_what_the_client_wants_kept() {
    let rows: [KeepRule; 7] = [
        ("1.1", "", true, None),
        ("1.1", "keep-alive", true, None),
        ("1.1", "close", false, Some("close")),
        ("1.1", "x, CLOSE", false, Some("close")),
        ("1.0", "", false, Some("close")),
        ("1.0", "close, keep-alive", false, Some("close")),
        ("1.0", "Keep-Alive", true, Some("keep-alive")),
    ];
    // A miss, a hit and a response that passes obey the same rule.
    for target in ["/stored", "/stored", "/passing"] {
        each_path(|bed| {
            let origin = echoing_origin();
            let proxy = bed.gateway(&origin);
            for (version, connection, keeps, expected) in rows {
                let mut client = proxy.client();
                client.send(request(target, version, connection));
                let answer = client.expect_response("GET");
                assert_eq!(answer.version, "HTTP/1.1");
                assert_eq!(answer.text(), target[1..]);
                assert_eq!(answer.field("connection"), expected, "{version} {connection}");
                if keeps {
                    client.send(request("/again", "1.1", "close"));
                    assert_eq!(client.expect_response("GET").text(), "again");
                }
                client.expect_end();
            }
            drop(proxy);
            origin.finish();
        });
    }
}

#[test]
fn rfc9112_9_3_a_proxy_keeps_no_connection_to_an_old_client() {
    each_path(|bed| {
        let origin = echoing_origin();
        let proxy = bed.forward();
        let target = format!("http://{}/stored", origin.address());
        for (version, connection, keeps) in [
            ("1.1", "", true),
            ("1.1", "close", false),
            ("1.0", "", false),
            ("1.0", "keep-alive", false),
        ] {
            let mut client = proxy.client();
            client.send(request(&target, version, connection));
            let answer = client.expect_response("GET");
            assert_eq!(answer.text(), "stored");
            assert_eq!(answer.field("connection"), (!keeps).then_some("close"), "{version}");
            if keeps {
                client.send(request(&target, "1.1", "close"));
                assert_eq!(client.expect_response("GET").text(), "stored");
            }
            client.expect_end();
        }
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn nothing_behind_a_request_that_closes_is_served() {
    each_path(|bed| {
        let origin = echoing_origin();
        let proxy = bed.gateway(&origin);
        for target in ["/stored", "/stored", "/passing"] {
            let mut client = proxy.client();
            client.send(request(target, "1.1", "close") + &request("/never", "1.1", ""));
            assert_eq!(client.expect_response("GET").text(), target[1..]);
            client.expect_end();
        }
        proxy.until("the sessions to count", |proxy| proxy.count(Counter::Exchanges) == 3);
        drop(proxy);
        origin.finish();
    });
}

/// Hits, misses, local answers and answers without content, in this order on one connection.
fn mixed_requests() -> (String, Vec<(&'static str, u16, &'static str)>) {
    let mut bytes = String::new();
    let mut expected = Vec::new();
    for round in 0..30 {
        let (method, target, status, text) = match round % 5 {
            0 => ("GET", "/stored", 200, "stored"),
            1 => ("GET", "/passing", 200, "passing"),
            2 => ("HEAD", "/stored", 200, ""),
            3 => ("CONNECT", "a:1", 405, "405"),
            _ => ("OPTIONS", "/local", 200, ""),
        };
        let field = if method == "OPTIONS" { "Max-Forwards: 0\r\n" } else { "" };
        bytes += &format!("{method} {target} HTTP/1.1\r\nHost: a\r\n{field}\r\n");
        expected.push((method, status, text));
    }
    (bytes, expected)
}

#[test]
fn pipelined_requests_of_all_kinds_are_answered_in_order() {
    each_path(|bed| {
        let origin = echoing_origin();
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        let (bytes, expected) = mixed_requests();
        client.send(bytes + "GET / HTTP/1.1\r\nHost : a\r\n\r\n" + &request("/never", "1.1", ""));
        for (method, status, text) in expected {
            let answer = client.expect_response(method);
            assert_eq!(answer.status, status, "{method}");
            assert!(answer.text().starts_with(text), "{method}: {}", answer.text());
        }
        assert_eq!(client.expect_response("GET").status, 400);
        client.expect_end();
        assert_eq!(proxy.reasons(Reason::SpaceBeforeColon), 1);
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn pipelined_requests_may_be_cut_anywhere() {
    each_path(|bed| {
        let origin = echoing_origin();
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        let (bytes, expected) = mixed_requests();
        for piece in bytes.as_bytes().chunks(7) {
            client.send(piece);
            std::thread::yield_now();
        }
        for (method, status, text) in expected {
            let answer = client.expect_response(method);
            assert_eq!((answer.status, answer.text().starts_with(text)), (status, true));
        }
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn five_thousand_pipelined_hits_are_all_answered() {
    const REQUESTS: usize = 5_000;
    each_path(|bed: Bed| {
        let origin = echoing_origin();
        let proxy = bed.gateway(&origin);
        assert_eq!(proxy.client().get("/stored", "a", &[]).text(), "stored");
        let mut reading = proxy.client();
        reading.send("GET /stored HTTP/1.1\r\nHost: a\r\n\r\n".repeat(REQUESTS));
        reading.half_close();
        for _ in 0..REQUESTS {
            assert_eq!(reading.expect_response("GET").text(), "stored");
        }
        reading.expect_end();
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn a_client_that_has_ended_its_sending_still_gets_every_answer() {
    each_path(|bed| {
        let origin = echoing_origin();
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send(request("/passing", "1.1", "") + &request("/stored", "1.1", ""));
        client.half_close();
        assert_eq!(client.expect_response("GET").text(), "passing");
        assert_eq!(client.expect_response("GET").text(), "stored");
        client.expect_end();
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn no_later_answer_overtakes_a_slow_one() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let gate = Gate::new();
        let held = gate.clone();
        origin.connection(move |c| {
            c.expect_head();
            c.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\nfast");
            assert_eq!(c.expect_head().target, "/slow");
            held.wait();
            c.send("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 4\r\n\r\nslow");
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        assert_eq!(client.get("/fast", "a", &[]).text(), "fast");
        client.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\nGET /fast HTTP/1.1\r\nHost: a\r\n\r\n");
        proxy.until("the wait", |proxy| proxy.gauge(Gauge::HopForward) == 1);
        assert_eq!(proxy.client().get("/fast", "a", &[]).text(), "fast");
        client.expect_nothing_buffered();
        gate.open();
        assert_eq!(client.expect_response("GET").text(), "slow");
        assert_eq!(client.expect_response("GET").text(), "fast");
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn a_client_that_does_not_read_its_answers_for_thirty_seconds_is_dropped() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 16000000\r\n\r\n",
            );
            c.send_generated(0, 16_000_000);
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        assert_eq!(proxy.client().get("/large", "a", &[]).content.len(), 16_000_000);
        proxy.until("one session less", |proxy| proxy.gauge(Gauge::SessionsOpen) == 0);
        let mut client = proxy.client();
        client.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
        client.expect_head();
        proxy.until("the client to be dropped", |proxy| {
            proxy.pass(31);
            proxy.gauge(Gauge::SessionsOpen) == 0
        });
        assert_eq!(proxy.reasons(Reason::ClientStalled), 1);
        assert!(client.expect_closed().len() < 16_000_000);
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn large_answers_do_not_mix_with_what_is_pipelined_behind_them() {
    const LARGE: u64 = 3_000_000;
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n");
            c.send(format!("Content-Length: {LARGE}\r\n\r\n"));
            c.send_generated(0, LARGE);
            let upload = c.expect_request();
            assert!(upload.content == content_at(7, 100_000));
            c.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nthis");
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        assert!(client.get("/large", "a", &[]).content == content_at(0, 3_000_000));
        let get = "GET /large HTTP/1.1\r\nHost: a\r\n\r\n";
        client.send(get.repeat(3) + "PUT /b HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
        client.send_generated(7, 100_000);
        client.send(get);
        for _ in 0..3 {
            assert!(client.expect_response("GET").content == content_at(0, 3_000_000));
        }
        assert_eq!(client.expect_response("PUT").text(), "this");
        assert!(client.expect_response("GET").content == content_at(0, 3_000_000));
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

/// RFC 9112 section 2.2: some clients send an empty line behind the content of a request.
#[test]
fn rfc9112_2_2_an_empty_line_between_requests_begins_no_head() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        let request = "GET / HTTP/1.1\r\nHost: a\r\nCache-Control: only-if-cached\r\n\r\n";
        client.send(format!("{request}\r\n"));
        assert_eq!(client.expect_response("GET").status, 504);
        proxy.pass(30);
        client.send(request);
        assert_eq!(client.expect_response("GET").status, 504);
        client.send("\r\n");
        proxy.until("the idle time is over", |proxy| {
            proxy.pass(10);
            proxy.reasons(Reason::IdleTimeout) == 1
        });
        client.expect_end();
        assert_eq!(proxy.reasons(Reason::HeadTimeout), 0);
    });
}
