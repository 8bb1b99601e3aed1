//! Content on its way, up and down at once: who waits for whom, and who ends what when the other
//! side is early, slow or gone. RFC 9112 sections 9.5 and 9.6.

use sepia::base::{Gauge, Reason};
use testkit::script::{Gate, ScriptedOrigin};
use testkit::site::content_at;

use super::bed::each_path;

const ANSWER: &str = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn an_early_answer_to_an_upload_reaches_the_client() {
    for closes in [false, true] {
        each_path(|bed| {
            let origin = ScriptedOrigin::start();
            origin.connection(move |c| {
                c.expect_head();
                c.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nno!");
                if closes {
                    c.close();
                } else {
                    c.expect_closed();
                }
            });
            let proxy = bed.gateway(&origin);
            let mut client = proxy.client();
            client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5000000\r\n\r\nbegun");
            let answer = client.expect_response("POST");
            assert_eq!((answer.status, &*answer.text()), (413, "no!"));
            assert_eq!(answer.field("connection"), Some("close"));
            client.send_anyway(vec![b'x'; 1_000_000]);
            client.half_close();
            client.expect_closed();
            assert_eq!(
                proxy.gauge(Gauge::OriginsIdle),
                0,
                "nothing of the rest is taken for a request"
            );
            drop(proxy);
            origin.finish();
        });
    }
}

#[test]
fn an_origin_that_answers_before_it_has_read_the_upload_gets_all_of_it_if_it_reads_on() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            assert_eq!(c.expect_content(5), b"first");
            c.send("5\r\nfirst\r\n");
            assert_eq!(c.expect_content(6), b"second");
            c.send("6\r\nsecond\r\n0\r\n\r\n");
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\nfirst");
        assert_eq!(client.expect_head().status, 200);
        assert_eq!(client.expect_chunk(), b"first");
        client.send("second");
        assert_eq!(client.expect_chunk(), b"second");
        assert_eq!(client.expect_chunk(), b"");
        drop((client, proxy));
        origin.finish();
    });
}

#[test]
fn an_origin_has_its_time_for_an_answer_from_the_end_of_the_request() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let gates: Vec<Gate> = (0..4).map(|_| Gate::new()).collect();
        let reads = gates.clone();
        let answer_now = Gate::new();
        let held = answer_now.clone();
        origin.connection(move |c| {
            c.expect_head();
            for gate in reads {
                c.expect_bytes("piece");
                gate.open();
            }
            held.wait();
            c.send(ANSWER);
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n");
        for gate in &gates {
            client.send("piece");
            gate.wait();
            proxy.pass(25);
        }
        proxy.pass(25);
        answer_now.open();
        assert_eq!(client.expect_response("PUT").text(), "ok");
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn a_client_that_leaves_ends_an_answer_that_nobody_else_can_use() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let left = Gate::new();
        let held = left.clone();
        origin.connection(move |c| {
            c.expect_head();
            c.send(
                "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 500000000\r\n\r\n",
            );
            c.send_generated(0, 100_000);
            held.wait();
            let sent = c.send_anyway(vec![b'x'; 499_900_000]);
            assert!(sent < 499_900_000, "the connection is ended");
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(client.expect_head().status, 200);
        client.expect_content(1_000);
        client.close();
        left.open();
        proxy.until("the origin's connection is closed", |proxy| {
            proxy.gauge(Gauge::OriginsConnected) == 0
        });
        assert_eq!(proxy.reasons(Reason::OriginTruncated), 0, "it is not the origin's fault");
        assert!(proxy.reasons(Reason::ClientGone) >= 1);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn a_client_that_leaves_does_not_end_an_answer_that_is_stored() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let left = Gate::new();
        let held = left.clone();
        origin.connection(move |c| {
            c.expect_head();
            c.send(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 1000000\r\n\r\n",
            );
            c.send_generated(0, 100_000);
            held.wait();
            c.send_generated(100_000, 900_000);
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(client.expect_head().status, 200);
        client.expect_content(1_000);
        client.close();
        left.open();
        proxy.until("the fetch has ended well", |proxy| proxy.gauge(Gauge::OriginsIdle) == 1);
        let answer = proxy.client().get("/", "a", &[]);
        assert_eq!(answer.field("cache-status"), Some("sepia; hit; ttl=60"));
        assert!(answer.content == content_at(0, 1_000_000));
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn a_slow_client_of_a_large_answer_costs_no_more_than_a_window() {
    const LENGTH: u64 = 50_000_000;
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send(format!(
                "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: {LENGTH}\r\n\r\n"
            ));
            c.send_generated(0, LENGTH);
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(client.expect_head().status, 200);
        for part in 0..50 {
            let bytes = client.expect_content(1_000_000);
            assert!(bytes == content_at(part * 1_000_000, 1_000_000), "part {part}");
            let held: u64 = proxy.proxy.store_use().iter().map(|(_, bytes)| bytes).sum();
            assert!(held < 1_000_000, "{held} bytes are held");
        }
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn an_endless_stream_does_not_outlive_a_client_that_closed() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(move |c| {
            c.expect_head();
            c.send(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                 Cache-Control: no-store\r\n\r\ndata: 1\n\n",
            );
            c.expect_closed();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        client.expect_head();
        assert_eq!(client.expect_chunk(), b"data: 1\n\n");
        client.close();
        // It might have closed its half only, so it is given its time.
        proxy.until("the client's time is over", |proxy| {
            proxy.pass(1);
            proxy.reasons(Reason::ClientGone) == 1
        });
        origin.finish();
    });
}

#[test]
fn a_client_that_neither_reads_the_answer_nor_sends_the_rest_is_ended() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send("HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n");
            let sent = c.send_anyway(vec![b'x'; 50_000_000]);
            assert!(sent < 50_000_000, "the connection is ended");
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\nbegun");
        assert_eq!(client.expect_head().status, 200);
        proxy.until("the client's time is over", |proxy| {
            proxy.pass(1);
            proxy.gauge(Gauge::SessionsOpen) == 0
        });
        drop((client, proxy));
        origin.finish();
    });
}

#[test]
fn an_exchange_whose_upload_and_answer_both_stop_ends() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst");
            assert_eq!(c.expect_content(5), b"begun");
            c.expect_closed();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nbegun");
        assert_eq!(client.expect_head().status, 200);
        assert_eq!(client.expect_content(5), b"first");
        proxy.until("the exchange ends", |proxy| {
            proxy.pass(1);
            proxy.gauge(Gauge::SessionsOpen) == 0 && proxy.gauge(Gauge::OriginsConnected) == 0
        });
        client.expect_closed();
        drop((client, proxy));
        origin.finish();
    });
}

#[test]
fn events_may_be_silent_after_the_end_of_the_request_that_they_began_within() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let (told, go_on) = (Gate::new(), Gate::new());
        let (tells, goes_on) = (told.clone(), go_on.clone());
        origin.connection(move |c| {
            c.expect_head();
            c.send(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                 Cache-Control: no-store\r\n\r\ndata: 1\n\n",
            );
            assert_eq!(c.expect_content(10), b"beginended");
            tells.open();
            goes_on.wait();
            c.send("data: 2\n\n");
            c.expect_closed();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nbegin");
        assert_eq!(client.expect_head().status, 200);
        assert_eq!(client.expect_chunk(), b"data: 1\n\n");
        client.send("ended");
        told.wait();
        for _ in 0..200 {
            proxy.pass(1);
        }
        go_on.open();
        assert_eq!(client.expect_chunk(), b"data: 2\n\n");
        client.close();
        proxy.until("the client's time is over", |proxy| {
            proxy.pass(1);
            proxy.gauge(Gauge::SessionsOpen) == 0
        });
        origin.finish();
    });
}
