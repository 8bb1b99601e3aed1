//! Heads as they come: in any pieces, slowly, never finished. RFC 9112 section 2.2.

use sepia::base::{Gauge, Reason};
use testkit::script::ScriptedOrigin;

use super::bed::{Running, each_path};

const REQUEST: &str = "GET /page HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\n\r\n";

/// An origin whose one connection answers so many requests with `hello`, not storable.
fn hello_origin(requests: usize) -> ScriptedOrigin {
    let origin = ScriptedOrigin::start();
    origin.connection(move |c| {
        for _ in 0..requests {
            assert_eq!(c.expect_head().target, "/page");
            c.send("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 5\r\n\r\nhello");
        }
        c.expect_end();
    });
    origin
}

#[test]
fn a_head_may_come_byte_by_byte() {
    each_path(|bed| {
        let origin = hello_origin(2);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        for _ in 0..2 {
            client.send_slowly(REQUEST);
            assert_eq!(client.expect_response("GET").text(), "hello");
        }
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc9112_2_2_an_empty_line_before_a_request_is_skipped() {
    each_path(|bed| {
        let origin = hello_origin(3);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send(format!("\r\n{REQUEST}\r\n{REQUEST}"));
        assert_eq!(client.expect_response("GET").text(), "hello");
        assert_eq!(client.expect_response("GET").text(), "hello");
        client.send_slowly(format!("\r\n{REQUEST}"));
        assert_eq!(client.expect_response("GET").text(), "hello");
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn bytes_and_field_names_of_a_head_need_not_be_beautiful() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            let request = c.expect_head();
            assert_eq!(request.target, "/a;b?c=[%20]&d=100%");
            assert_eq!(request.field("x-odd"), Some("caf\u{e9}\tau lait"));
            assert_eq!(request.field("x-empty"), Some(""));
            c.send("HTTP/1.1 204 No Content\r\n\r\n");
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send(b"GET /a;b?c=[%20]&d=100% HTTP/1.1\r\nhOsT:\t a \r\n");
        client.send(b"X-Odd:caf\xe9\tau lait\t\r\nX-Empty:\r\n\r\n");
        assert_eq!(client.expect_response("GET").status, 204);
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

/// Waits until the proxy has read so many bytes of clients.
fn until_read(proxy: &Running, bytes: u64) {
    proxy.until("the bytes to be read", |proxy| {
        proxy.count(sepia::base::Counter::BytesFromClients) >= bytes
    });
}

#[test]
fn a_head_that_is_not_finished_in_ten_seconds_is_408() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("GET / HTTP/1.1\r\n");
        until_read(&proxy, 16);
        proxy.pass(9);
        client.send("H");
        until_read(&proxy, 17);
        client.expect_nothing_buffered();
        proxy.pass(2);
        let answer = client.expect_response("GET");
        assert_eq!(answer.status, 408);
        assert_eq!(answer.field("connection"), Some("close"));
        assert_eq!(answer.field("cache-status"), Some("sepia; detail=head-timeout"));
        client.expect_end();
        assert_eq!(proxy.reasons(Reason::HeadTimeout), 1);
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn each_head_has_its_ten_seconds_anew() {
    each_path(|bed| {
        let origin = hello_origin(3);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        let half = REQUEST.len() / 2;
        let mut read = 0;
        for _ in 0..3 {
            client.send(&REQUEST[..half]);
            read += half as u64;
            until_read(&proxy, read);
            proxy.pass(8);
            client.send(&REQUEST[half..]);
            read += (REQUEST.len() - half) as u64;
            assert_eq!(client.expect_response("GET").text(), "hello");
            assert_eq!(proxy.count(sepia::base::Counter::BytesFromClients), read);
        }
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn a_head_begun_behind_a_pipelined_request_times_out_as_well() {
    each_path(|bed| {
        let origin = hello_origin(1);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send(format!("{REQUEST}GET /page HT"));
        assert_eq!(client.expect_response("GET").text(), "hello");
        proxy.until("the session to wait", |proxy| proxy.gauge(Gauge::HopDecode) == 1);
        client.send("T");
        until_read(&proxy, (REQUEST.len() + 13) as u64);
        proxy.pass(11);
        assert_eq!(client.expect_response("GET").status, 408);
        client.expect_end();
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn a_session_without_a_request_ends_after_sixty_seconds_without_a_word() {
    each_path(|bed| {
        let origin = hello_origin(1);
        let proxy = bed.gateway(&origin);
        let mut fresh = proxy.client();
        let mut used = proxy.client();
        used.send(REQUEST);
        assert_eq!(used.expect_response("GET").text(), "hello");
        proxy.until("both to wait", |proxy| proxy.gauge(Gauge::HopDecode) == 2);
        proxy.pass(59);
        used.expect_nothing_buffered();
        fresh.expect_nothing_buffered();
        proxy.pass(2);
        used.expect_end();
        fresh.expect_end();
        assert_eq!(proxy.reasons(Reason::IdleTimeout), 2);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn a_client_that_vanishes_inside_a_head_leaves_nothing_behind() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let proxy = bed.gateway(&origin);
        let mut closing = proxy.client();
        closing.send("GET / HTTP/1.1\r\nHo");
        closing.half_close();
        closing.expect_end();
        assert_eq!(proxy.reasons(Reason::ClientGone), 1);
        let mut resetting = proxy.client();
        resetting.send("GET / HTTP/1.1\r\nHo");
        until_read(&proxy, 36);
        resetting.reset();
        proxy.until("both to be gone", |proxy| proxy.gauge(Gauge::SessionsOpen) == 0);
        assert_eq!(proxy.reasons(Reason::ClientReset), 1);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn a_client_that_comes_and_goes_without_a_byte_is_no_fault() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.half_close();
        client.expect_end();
        proxy.until("it to be gone", |proxy| proxy.gauge(Gauge::SessionsOpen) == 0);
        assert_eq!(proxy.reasons(Reason::ClientGone), 0);
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn the_bounds_of_heads_can_be_set() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let proxy = bed.with(|config| config.heads.fields = 2).gateway(&origin);
        let mut client = proxy.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 2\r\n\r\n");
        assert_eq!(client.expect_response("GET").status, 431);
        assert_eq!(proxy.reasons(Reason::TooManyFields), 1);
        client.expect_end();
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn a_head_as_large_as_allowed_goes_through_whole() {
    each_path(|bed| {
        let line = "a".repeat((16 << 10) - "X-0: \r\n".len());
        let short: String = (3..126).map(|number| format!("X-{number}: b\r\n")).collect();
        let mut head = String::from("GET /page HTTP/1.1\r\nHost: example.org\r\n");
        (0..3).for_each(|number| head.push_str(&format!("X-{number}: {line}\r\n")));
        head.push_str(&short);
        let padding = (64 << 10) - head.len() - "X-P: \r\n\r\n".len();
        head.push_str(&format!("X-P: {}\r\n\r\n", "p".repeat(padding)));
        assert_eq!(head.len(), 64 << 10);
        let origin = ScriptedOrigin::start();
        origin.connection(move |c| {
            let request = c.expect_head();
            (0..3).for_each(|n| assert_eq!(request.field(&format!("x-{n}")), Some(line.as_str())));
            assert_eq!(request.field("x-125"), Some("b"));
            assert_eq!(request.field("x-p").map(str::len), Some(padding));
            c.send("HTTP/1.1 204 No Content\r\n\r\n");
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send(&head);
        assert_eq!(client.expect_response("GET").status, 204);
        drop(client);
        let mut client = proxy.client();
        client.send(head.replacen("X-P: p", "X-P: pp", 1));
        assert_eq!(client.expect_response("GET").status, 431);
        drop(client);
        drop(proxy);
        origin.finish();
    });
}
