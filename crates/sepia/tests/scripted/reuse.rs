//! Connections to origins: which one carries a request, which one is kept, how many there are.
//! RFC 9112 section 9.3 to 9.5, RFC 9110 section 9.2.2.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use sepia::base::{Counter, Gauge, Reason};
use testkit::script::{Gate, OriginConnection, ScriptedClient, ScriptedOrigin};

use super::bed::{Running, each_path};

const ANSWER: &str = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\r\nok";

fn idle(proxy: &Running) -> u64 {
    proxy.gauge(Gauge::OriginsIdle)
}

/// An origin's connection that answers so many requests and is then closed by the proxy.
fn answers(requests: usize) -> impl FnOnce(&mut OriginConnection) + Send + 'static {
    move |c| {
        for _ in 0..requests {
            c.expect_request();
            c.send(ANSWER);
        }
        c.expect_end();
    }
}

#[test]
fn rfc9112_9_3_one_connection_carries_many_exchanges() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(answers(5));
        let proxy = bed.gateway(&origin);
        for _ in 0..5 {
            assert_eq!(proxy.client().get("/", "a", &[]).text(), "ok");
        }
        assert_eq!(proxy.count(Counter::OriginConnects), 1);
        assert_eq!(proxy.count(Counter::OriginReuses), 4);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc9112_9_3_a_connection_is_kept_only_if_its_origin_wants_it() {
    for (head, requests) in [
        ("HTTP/1.1 200 OK\r\nConnection: close\r\n", 1),
        ("HTTP/1.1 200 OK\r\nConnection: x, CLOSE\r\n", 1),
        ("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n", 2),
        ("HTTP/1.0 200 OK\r\n", 1),
        ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n", 2),
    ] {
        each_path(|bed| {
            let origin = ScriptedOrigin::start();
            for _ in 0..2 / requests {
                origin.connection(move |c| {
                    for _ in 0..requests {
                        c.expect_head();
                        c.send(format!("{head}Content-Length: 0\r\n\r\n"));
                    }
                    c.expect_end();
                });
            }
            let proxy = bed.gateway(&origin);
            let mut client = proxy.client();
            for _ in 0..2 {
                let answer = client.get("/", "a", &[("Cache-Control", "no-store")]);
                assert_eq!(answer.status, 200, "{head:?}");
                assert_eq!(answer.field("connection"), None, "the client's connection goes on");
            }
            drop(proxy);
            origin.finish();
        });
    }
}

#[test]
fn the_connection_that_was_used_last_is_used_first() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let gates = [Gate::new(), Gate::new()];
        for (gate, requests) in gates.iter().cloned().zip([1, 2]) {
            origin.connection(move |c| {
                c.expect_head();
                gate.wait();
                c.send(ANSWER);
                for _ in 1..requests {
                    c.expect_head();
                    c.send(ANSWER);
                }
                c.expect_end();
            });
        }
        let proxy = bed.gateway(&origin);
        let mut clients = [proxy.client(), proxy.client()];
        for (number, client) in clients.iter_mut().enumerate() {
            client.send(format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n"));
            proxy.until("it is with the origin", |_| origin.connections() == number + 1);
        }
        for (gate, client) in gates.iter().zip(&mut clients) {
            gate.open();
            client.expect_response("GET");
        }
        assert_eq!(clients[0].get("/", "a", &[]).text(), "ok");
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn an_idle_connection_that_its_origin_closes_is_not_used_again() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send(ANSWER);
            c.close();
        });
        origin.connection(answers(1));
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.get("/", "a", &[]);
        proxy.until("the idle connection is gone", |proxy| idle(proxy) == 0);
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
        assert_eq!(client.expect_response("POST").status, 200);
        assert_eq!(proxy.count(Counter::OriginRetries), 0);
        assert_eq!(proxy.count(Counter::OriginReuses), 0);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc9112_9_3_1_a_request_that_meets_the_close_is_sent_again_if_it_may_be() {
    for (method, is_sent_again) in [("GET", true), ("OPTIONS", true), ("POST", false)] {
        each_path(|bed| {
            let origin = ScriptedOrigin::start();
            origin.connection(|c| {
                c.expect_head();
                c.send(ANSWER);
                c.expect_head();
                c.close();
            });
            if is_sent_again {
                origin.connection(answers(1));
            }
            let proxy = bed.gateway(&origin);
            let mut client = proxy.client();
            client.get("/", "a", &[]);
            client.send(format!("{method} /2 HTTP/1.1\r\nHost: a\r\n\r\n"));
            let status = client.expect_response(method).status;
            assert_eq!(status, if is_sent_again { 200 } else { 502 }, "{method}");
            assert_eq!(proxy.count(Counter::OriginRetries), u64::from(is_sent_again));
            drop(proxy);
            origin.finish();
        });
    }
}

#[test]
fn rfc9110_9_2_2_content_that_was_passed_on_is_not_sent_again() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send(ANSWER);
            assert_eq!(c.expect_request().text(), "content");
            c.close();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.get("/", "a", &[]);
        client.send("PUT /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\ncontent");
        assert_eq!(client.expect_response("PUT").status, 502);
        assert_eq!(proxy.count(Counter::OriginRetries), 0);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn an_unsafe_request_takes_no_connection_that_was_idle_for_a_second() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            for method in ["GET", "POST", "GET"] {
                assert_eq!(c.expect_head().method, method);
                c.send(ANSWER);
            }
            c.expect_end();
        });
        origin.connection(|c| {
            assert_eq!(c.expect_head().method, "POST");
            c.send(ANSWER);
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        for (seconds, method) in [(0, "GET"), (0, "POST"), (2, "GET"), (2, "POST")] {
            proxy.pass(seconds);
            client.send(format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n"));
            assert_eq!(client.expect_response(method).status, 200);
        }
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn keep_alive_timeout_is_obeyed_a_second_early() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let gate = Gate::new();
        let opened = gate.clone();
        origin.connection(move |c| {
            for _ in 0..2 {
                c.expect_head();
                c.send(
                    "HTTP/1.1 200 OK\r\nKeep-Alive: max=9, Timeout=5\r\nContent-Length: 0\r\n\r\n",
                );
            }
            c.expect_end();
            opened.open();
        });
        origin.connection(answers(1));
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        let first = client.get("/", "a", &[("Cache-Control", "no-store")]);
        assert_eq!(first.field("keep-alive"), None);
        proxy.pass(3);
        client.get("/", "a", &[("Cache-Control", "no-store")]);
        assert_eq!(idle(&proxy), 1);
        proxy.pass(5);
        gate.wait();
        assert_eq!(idle(&proxy), 0);
        assert_eq!(client.get("/", "a", &[]).text(), "ok");
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn an_idle_connection_is_closed_after_a_minute_or_at_once() {
    for (keep_alive, seconds) in [("", 61), ("Keep-Alive: timeout=1\r\n", 0)] {
        each_path(|bed| {
            let origin = ScriptedOrigin::start();
            let closed = Gate::new();
            let opened = closed.clone();
            origin.connection(move |c| {
                c.expect_head();
                c.send(format!("HTTP/1.1 200 OK\r\n{keep_alive}Content-Length: 0\r\n\r\n"));
                c.expect_end();
                opened.open();
            });
            let proxy = bed.gateway(&origin);
            let mut client = proxy.client();
            client.get("/", "a", &[]);
            if seconds > 0 {
                assert_eq!(idle(&proxy), 1);
            }
            proxy.pass(seconds);
            closed.wait();
            assert_eq!(idle(&proxy), 0);
            drop(proxy);
            origin.finish();
        });
    }
}

#[test]
fn no_more_than_sixty_four_idle_connections_are_kept() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let gate = Gate::new();
        for _ in 0..70 {
            let gate = gate.clone();
            origin.connection(move |c| {
                c.expect_head();
                gate.wait();
                c.send(ANSWER);
                c.expect_end();
            });
        }
        let proxy = bed.gateway(&origin);
        let mut clients: Vec<_> = (0..70).map(|_| proxy.client()).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            client.send(format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n"));
        }
        proxy.until("all are with the origin", |_| origin.connections() == 70);
        gate.open();
        clients.iter_mut().for_each(|client| drop(client.expect_response("GET")));
        proxy.until("the oldest are closed", |proxy| idle(proxy) == 64);
        drop(proxy);
        origin.finish();
    });
}

/// Connections that may work for one origin at once.
const SLOTS: usize = 1_024;

/// Requests that wait for an answer on every connection that the origin may get.
fn take_all_slots(
    proxy: &Running,
    listener: &TcpListener,
) -> (Vec<ScriptedClient>, Vec<TcpStream>) {
    (0..SLOTS)
        .map(|number| {
            let mut client = proxy.client();
            client.send(format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n"));
            (client, accept(listener))
        })
        .unzip()
}

/// A request that has to wait for a slot, and does.
fn one_more(proxy: &Running) -> ScriptedClient {
    let mut client = proxy.client();
    client.send("GET /last HTTP/1.1\r\nHost: a\r\n\r\n");
    proxy.until("it waits", |proxy| proxy.gauge(Gauge::HopForward) == 1 + SLOTS as u64);
    client
}

#[test]
fn requests_beyond_the_slots_of_an_origin_wait_for_one() {
    each_path(|bed| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a loopback port");
        let address = listener.local_addr().expect("an address");
        let proxy = bed.gateway_to(&[address]);
        let (mut clients, mut working) = take_all_slots(&proxy, &listener);
        let mut last = one_more(&proxy);
        assert_eq!(proxy.count(Counter::OriginConnects), SLOTS as u64);
        let mut first = working.remove(0);
        first.write_all(ANSWER.as_bytes()).expect("an answer");
        assert_eq!(clients[0].expect_response("GET").text(), "ok");
        // Its connection came free together with its slot.
        assert!(request_line(&mut first).contains("GET /last HTTP/1.1\r\n"));
        first.write_all(ANSWER.as_bytes()).expect("an answer");
        assert_eq!(last.expect_response("GET").text(), "ok");
        drop((listener, working));
    });
}

#[test]
fn a_wait_for_a_slot_ends_after_thirty_seconds() {
    each_path(|bed| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a loopback port");
        let address = listener.local_addr().expect("an address");
        let bed = bed.with(|config| config.timeouts.first_byte = Duration::from_secs(1 << 30));
        let proxy = bed.gateway_to(&[address]);
        let (_clients, working) = take_all_slots(&proxy, &listener);
        let mut last = one_more(&proxy);
        proxy.until("the wait is over", |proxy| {
            proxy.pass(1);
            proxy.reasons(Reason::SlotsExhausted) == 1
        });
        assert!(proxy.clock.millis() >= 30_000);
        let answer = last.expect_response("GET");
        assert_eq!(answer.status, 503);
        assert_eq!(answer.field("proxy-status"), Some("sepia; error=connection_limit_reached"));
        drop((listener, working));
    });
}

fn accept(listener: &TcpListener) -> TcpStream {
    let (stream, _) = listener.accept().expect("the proxy connects");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket option");
    stream
}

/// The first bytes that come, requests before them left out.
fn request_line(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut piece = [0; 4096];
    while !text.contains("/last") {
        let count = stream.read(&mut piece).expect("a request");
        assert!(count > 0, "the connection was closed after {text:?}");
        text.push_str(&String::from_utf8_lossy(&piece[..count]));
    }
    text
}
