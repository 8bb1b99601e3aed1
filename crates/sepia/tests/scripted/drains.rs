//! Draining: what is in hand is finished, what is idle is closed, and neither takes for ever.

use std::net::TcpStream;
use std::thread::{self, JoinHandle};

use sepia::Clock;
use sepia::base::{Counter, Gauge};
use testkit::script::{Gate, ScriptedClient, ScriptedOrigin};

use super::bed::{Running, START_DATE, each_path};

/// Stops the proxy beside the story; what it returns is the number of exchanges that were cut.
fn stop(proxy: Running) -> (JoinHandle<u64>, Clock) {
    let Running { proxy, clock, .. } = proxy;
    proxy.drain();
    (thread::spawn(move || proxy.stop()), clock)
}

/// Tells the proxy to drain and waits until it has stopped to listen.
fn drain(proxy: &Running) {
    let address = proxy.address();
    proxy.proxy.drain();
    proxy.until("closed listeners", |_| TcpStream::connect(address).is_err());
}

#[test]
fn an_answer_in_hand_is_finished_and_the_connection_closed() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let (asked, answer) = (Gate::new(), Gate::new());
        let (was_asked, may_answer) = (asked.clone(), answer.clone());
        origin.connection(move |c| {
            c.expect_head();
            was_asked.open();
            may_answer.wait();
            c.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
            c.expect_closed();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        asked.wait();
        drain(&proxy);
        let (stopped, _clock) = stop(proxy);
        assert!(!stopped.is_finished());
        answer.open();
        let answer = client.expect_response("GET");
        assert_eq!((answer.status, answer.text().as_str()), (200, "hello"));
        assert_eq!(answer.field("connection"), Some("close"));
        client.expect_end();
        client.close();
        assert_eq!(stopped.join().expect("stopped"), 0);
        origin.finish();
    });
}

#[test]
fn idle_sessions_are_closed_at_once() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let proxy = bed.gateway(&origin);
        let mut never_used = proxy.client();
        let mut used = proxy.client();
        used.send("OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n");
        assert_eq!(used.expect_response("OPTIONS").status, 200);
        proxy.until("both sessions", |proxy| proxy.gauge(Gauge::SessionsOpen) == 2);
        assert_eq!(stop(proxy).0.join().expect("stopped"), 0);
        used.expect_end();
        never_used.expect_end();
        origin.finish();
    });
}

#[test]
fn rfc9112_2_2_an_empty_line_behind_an_exchange_is_nothing_in_hand() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n");
        assert_eq!(client.expect_response("OPTIONS").status, 200);
        let before = proxy.count(Counter::BytesFromClients);
        client.send("\r\n");
        proxy.until("the line", |proxy| proxy.count(Counter::BytesFromClients) == before + 2);
        assert_eq!(stop(proxy).0.join().expect("stopped"), 0);
        client.expect_end();
        origin.finish();
    });
}

#[test]
fn nobody_is_accepted_any_more_and_a_half_sent_head_may_be_finished() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
            c.expect_closed();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("GET / HTTP/1.1\r\nHo");
        proxy.until("the half head", |proxy| proxy.count(Counter::BytesFromClients) == 18);
        drain(&proxy);
        client.send("st: a\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n");
        let answer = client.expect_response("GET");
        assert_eq!((answer.status, answer.field("connection")), (200, Some("close")));
        client.expect_end();
        client.close();
        assert_eq!(stop(proxy).0.join().expect("stopped"), 0);
        origin.finish();
    });
}

#[test]
fn a_tunnel_goes_on_until_its_end() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_bytes("late");
            c.send("later");
            c.expect_end();
        });
        let proxy = bed.forward();
        let address = origin.address();
        let mut client = proxy.client();
        client.send(format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n"));
        assert_eq!(client.expect_response("CONNECT").status, 200);
        drain(&proxy);
        let (stopped, _clock) = stop(proxy);
        client.send("late");
        client.expect_bytes("later");
        assert!(!stopped.is_finished());
        client.close();
        assert_eq!(stopped.join().expect("stopped"), 0);
        origin.finish();
    });
}

#[test]
fn the_drains_time_cuts_what_is_left_and_says_how_much() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send(format!("HTTP/1.1 200 OK\r\nDate: {START_DATE}\r\n\r\nbeginning"));
            c.expect_closed();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        // To an HTTP/1.0 client only the end of the connection can end this content.
        client.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n");
        assert_eq!(client.expect_head().status, 200);
        client.expect_bytes("beginning");
        drain(&proxy);
        let (stopped, clock) = stop(proxy);
        clock.advance(std::time::Duration::from_secs(29));
        client.expect_nothing_buffered();
        assert!(!stopped.is_finished());
        clock.advance(std::time::Duration::from_secs(1));
        client.expect_reset();
        assert_eq!(stopped.join().expect("stopped"), 1, "one exchange, however many tasks");
        origin.finish();
    });
}

#[test]
fn requests_that_came_before_the_drain_are_answered() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let proxy = bed.gateway(&origin);
        let mut clients: Vec<ScriptedClient> = (0..20).map(|_| proxy.client()).collect();
        for client in &mut clients {
            client.send("OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n");
        }
        let (stopped, _clock) = stop(proxy);
        for client in &mut clients {
            assert_eq!(client.expect_response("OPTIONS").status, 200);
            client.close();
        }
        assert_eq!(stopped.join().expect("stopped"), 0);
        origin.finish();
    });
}

#[test]
fn readiness_ends_with_the_drain_while_operators_can_still_ask() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let (asked, answer) = (Gate::new(), Gate::new());
        let (was_asked, may_answer) = (asked.clone(), answer.clone());
        origin.connection(move |c| {
            c.expect_head();
            was_asked.open();
            may_answer.wait();
            c.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
            c.expect_closed();
        });
        let proxy = bed
            .with(|config| config.admin_listen = Some(([127, 0, 0, 1], 0).into()))
            .gateway(&origin);
        let admin = proxy.proxy.facts().admin_listen.expect("an admin listener");
        let ready = || ScriptedClient::connect(admin).get("/ready", "sepia", &[]).status;
        assert_eq!(ready(), 200);
        let mut client = proxy.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        asked.wait();
        proxy.proxy.drain();
        assert_eq!(ready(), 503);
        let metrics = ScriptedClient::connect(admin).get("/metrics", "sepia", &[]);
        assert!(metrics.text().contains("sepia_sessions_open 1\n"), "{}", metrics.text());
        answer.open();
        assert_eq!(client.expect_response("GET").text(), "hello");
        client.close();
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn the_drains_time_cuts_tunnels_too() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_closed();
        });
        let proxy = bed.forward();
        let address = origin.address();
        let mut client = proxy.client();
        client.send(format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n"));
        assert_eq!(client.expect_response("CONNECT").status, 200);
        drain(&proxy);
        let (stopped, clock) = stop(proxy);
        clock.advance(std::time::Duration::from_secs(30));
        client.expect_reset();
        assert_eq!(stopped.join().expect("stopped"), 1);
        origin.finish();
    });
}
