//! Tunnels: CONNECT (RFC 9110 section 9.3.6) and protocol switches (section 7.8).

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;

use sepia::base::{Counter, Gauge, Reason};
use testkit::script::{Gate, RefusingAddress, ScriptedClient, ScriptedOrigin};
use testkit::site::fill_content;
use testkit::websocket::{EchoOrigin, WebSocketClient};

use super::bed::{Running, each_path};

/// Opens a tunnel to `origin` and takes the answer.
fn connect(proxy: &Running, origin: &ScriptedOrigin) -> ScriptedClient {
    let mut client = proxy.client();
    let address = origin.address();
    client.send(format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n"));
    let answer = client.expect_response("CONNECT");
    assert_eq!(answer.status, 200);
    // RFC 9110 section 9.3.6: no Transfer-Encoding or Content-Length in a 2xx to CONNECT.
    assert_eq!(answer.field("content-length"), None);
    assert_eq!(answer.field("transfer-encoding"), None);
    client
}

#[test]
fn connect_carries_bytes_both_ways_and_counts_them() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_bytes("hello\0\r\n\r\n");
            c.send("world");
            c.expect_end();
        });
        let proxy = bed.forward();
        let mut client = connect(&proxy, &origin);
        client.send("hello\0\r\n\r\n");
        client.expect_bytes("world");
        assert_eq!(proxy.gauge(Gauge::TunnelsOpen), 1);
        client.close();
        origin.finish();
        proxy.until("the tunnel's end", |proxy| proxy.gauge(Gauge::TunnelsOpen) == 0);
        assert_eq!(proxy.count(Counter::Tunnels), 1);
        assert_eq!(proxy.count(Counter::TunnelBytes), 15);
        proxy.until("the session's end", |proxy| proxy.gauge(Gauge::SessionsOpen) == 0);
        assert_eq!(proxy.gauge(Gauge::OriginsConnected), 0);
        assert_eq!(proxy.gauge(Gauge::HopDeliver) + proxy.gauge(Gauge::HopDecode), 0);
    });
}

#[test]
fn an_origin_that_speaks_first_is_heard() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.send("220 mail.example ready\r\n");
            c.expect_end();
        });
        let proxy = bed.forward();
        let mut client = connect(&proxy, &origin);
        client.expect_bytes("220 mail.example ready\r\n");
        client.close();
        origin.finish();
    });
}

#[test]
fn bytes_behind_connect_in_the_same_write_go_into_the_tunnel() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_bytes("GET / HTTP/1.1\r\nHost: inside\r\n\r\n");
            c.send("inside");
        });
        let proxy = bed.forward();
        let mut client = proxy.client();
        let address = origin.address();
        client.send(format!(
            "CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n\
             GET / HTTP/1.1\r\nHost: inside\r\n\r\n"
        ));
        assert_eq!(client.expect_response("CONNECT").status, 200);
        client.expect_bytes("inside");
        client.expect_end();
        origin.finish();
        assert_eq!(proxy.count(Counter::Exchanges), 1, "what is inside is nobody's business");
    });
}

#[test]
fn a_client_that_has_ended_its_side_still_gets_its_answer() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let gate = Gate::new();
        let held = gate.clone();
        origin.connection(move |c| {
            assert_eq!(c.expect_rest(), b"question");
            held.wait();
            c.send("answer");
        });
        let proxy = bed.forward();
        let mut client = connect(&proxy, &origin);
        client.send("question");
        client.half_close();
        gate.open();
        assert_eq!(client.expect_rest(), b"answer");
        origin.finish();
        proxy.until("the tunnel's end", |proxy| proxy.gauge(Gauge::TunnelsOpen) == 0);
        assert_eq!(proxy.reasons(Reason::TunnelBroken), 0);
    });
}

#[test]
fn an_origin_that_has_ended_its_side_still_hears_the_client() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.send("all I have to say");
            c.half_close();
            assert_eq!(c.expect_rest(), b"and yet I speak");
        });
        let proxy = bed.forward();
        let mut client = connect(&proxy, &origin);
        assert_eq!(client.expect_rest(), b"all I have to say");
        client.send("and yet I speak");
        client.close();
        origin.finish();
    });
}

/// RFC 9110 section 9.3.6: what came from the side that is gone is still sent to the other.
#[test]
fn rfc9110_9_3_6_a_reset_on_one_side_ends_the_other_after_all_that_was_sent() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_bytes("x");
            c.send("my last words");
            c.expect_bytes("heard");
            c.reset();
        });
        origin.connection(|c| {
            c.expect_bytes("y");
            c.expect_end();
        });
        let proxy = bed.forward();
        let mut client = connect(&proxy, &origin);
        client.send("x");
        client.expect_bytes("my last words");
        client.send("heard");
        client.expect_end();
        client.close();
        proxy.until("the broken tunnel", |proxy| proxy.reasons(Reason::TunnelBroken) == 1);
        let mut client = connect(&proxy, &origin);
        client.send("y");
        proxy.until("the byte", |proxy| proxy.count(Counter::TunnelBytes) >= 20);
        client.reset();
        origin.finish();
        proxy.until("the other one", |proxy| proxy.reasons(Reason::TunnelBroken) == 2);
    });
}

#[test]
fn a_byte_keeps_a_tunnel_alive_and_silence_ends_it() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_bytes("a");
            c.send("b");
            c.expect_closed();
        });
        let proxy = bed.forward();
        let mut client = connect(&proxy, &origin);
        proxy.pass(599);
        client.send("a");
        client.expect_bytes("b");
        proxy.until("the byte back", |proxy| proxy.count(Counter::TunnelBytes) == 2);
        proxy.pass(599);
        assert_eq!(proxy.gauge(Gauge::TunnelsOpen), 1);
        client.expect_nothing_buffered();
        proxy.pass(2);
        client.expect_closed();
        origin.finish();
        proxy.until("the reason", |proxy| proxy.reasons(Reason::TunnelIdle) == 1);
    });
}

#[test]
fn eight_megabytes_pass_each_way_unchanged() {
    const BYTES: usize = 8 << 20;
    each_path(|bed| {
        let echo = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = echo.local_addr().expect("an address");
        let echoing = thread::spawn(move || {
            let (stream, _) = echo.accept().expect("a connection");
            let mut output = stream.try_clone().expect("a handle");
            std::io::copy(&mut { stream }, &mut output).expect("an echo");
            output.shutdown(Shutdown::Write).expect("an end");
        });
        let proxy = bed.forward();
        let mut client = proxy.client();
        client.send(format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n"));
        assert_eq!(client.expect_response("CONNECT").status, 200);
        let mut stream: TcpStream = client.into_stream();
        stream.set_read_timeout(None).expect("patience");
        let mut sent = vec![0; BYTES];
        fill_content(0, &mut sent);
        let mut output = stream.try_clone().expect("a handle");
        let bytes = sent.clone();
        let sending = thread::spawn(move || {
            output.write_all(&bytes).expect("taken");
            output.shutdown(Shutdown::Write).expect("an end");
        });
        let mut received = Vec::new();
        stream.read_to_end(&mut received).expect("the echo");
        assert!(received == sent, "{} bytes came back, of {BYTES}", received.len());
        sending.join().expect("sent");
        echoing.join().expect("echoed");
        assert_eq!(proxy.count(Counter::TunnelBytes), 2 * BYTES as u64);
    });
}

#[test]
fn connect_to_a_port_that_is_not_named_is_refused() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let proxy = bed
            .with(|config| {
                let sepia::config::Role::Forward(forward) = &mut config.listeners[0].role else {
                    panic!("a forward listener")
                };
                forward.connect_ports = vec!["443".parse().expect("a range")];
            })
            .forward();
        let mut client = proxy.client();
        let address = origin.address();
        client.send(format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n"));
        let answer = client.expect_response("CONNECT");
        assert_eq!(answer.status, 403);
        assert!(answer.text().contains("connect-port-refused"), "{}", answer.text());
        client.expect_end();
        assert_eq!(proxy.reasons(Reason::ConnectPortRefused), 1);
        assert_eq!(proxy.count(Counter::OriginConnects), 0);
        origin.finish();
    });
}

#[test]
fn connect_to_nobody_is_a_bad_gateway_and_the_connection_goes_on() {
    each_path(|bed| {
        let nobody = RefusingAddress::hold();
        let address = nobody.address();
        let proxy = bed.forward();
        let mut client = proxy.client();
        client.send(format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n"));
        let answer = client.expect_response("CONNECT");
        assert_eq!(answer.status, 502);
        let status = answer.field("proxy-status").unwrap_or_default();
        assert!(status.contains("connection_refused"), "{status}");
        assert_eq!(proxy.reasons(Reason::OriginRefused), 1);
        assert_eq!(proxy.count(Counter::Tunnels), 0);
        // RFC 9110 section 9.3.6: only a 2xx switches to tunnel mode.
        assert_eq!(client.get("/", "a", &[]).status, 200);
    });
}

#[test]
fn a_gateway_opens_no_tunnel_for_connect() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n");
        let answer = client.expect_response("CONNECT");
        assert_eq!(answer.status, 405);
        let allow = answer.field("allow").unwrap_or_default();
        assert!(!allow.contains("CONNECT"), "{allow}");
        assert_eq!(proxy.count(Counter::OriginConnects), 0);
        origin.finish();
    });
}

#[test]
fn a_websocket_echoes_through_the_gateway() {
    each_path(|bed| {
        let echo = EchoOrigin::start().expect("an origin");
        let proxy = bed.gateway_to(&[echo.address()]);
        let mut client =
            WebSocketClient::connect(proxy.address(), "example.org", "/echo").expect("a handshake");
        assert!(client.response().field("via").is_some());
        echo_and_close(&mut client);
        client.close().expect("a closing handshake");
        proxy.until("the tunnel's end", |proxy| proxy.gauge(Gauge::TunnelsOpen) == 0);
        assert_eq!(proxy.count(Counter::Tunnels), 1);
    });
}

#[test]
fn a_websocket_echoes_through_the_forward_proxy_by_absolute_form_and_by_connect() {
    each_path(|bed| {
        let echo = EchoOrigin::start().expect("an origin");
        let address = echo.address();
        let host = address.to_string();
        let proxy = bed.forward();
        let target = format!("http://{address}/echo");
        let mut client = WebSocketClient::connect(proxy.address(), &host, &target).expect("101");
        echo_and_close(&mut client);
        client.close().expect("a closing handshake");

        let mut opener = proxy.client();
        opener.send(format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n"));
        assert_eq!(opener.expect_response("CONNECT").status, 200);
        let mut client =
            WebSocketClient::over(opener.into_stream(), &host, "/echo").expect("a handshake");
        echo_and_close(&mut client);
        client.close().expect("a closing handshake");
        proxy.until("the tunnels' end", |proxy| proxy.gauge(Gauge::TunnelsOpen) == 0);
        assert_eq!(proxy.count(Counter::Tunnels), 2);
    });
}

fn echo_and_close(client: &mut WebSocketClient) {
    for text in ["hello", "", "ü€𐍈"] {
        client.send_text(text).expect("sent");
        assert_eq!(client.receive_text().expect("an echo"), text);
    }
    let long = "s".repeat(65_535);
    client.send_text(&long).expect("sent");
    assert!(client.receive_text().expect("an echo") == long);
    client.ping(b"still there?").expect("a pong");
}

#[test]
fn bytes_on_either_side_of_a_switch_belong_to_the_new_protocol() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            let request = c.expect_head();
            assert_eq!(request.field("upgrade"), Some("lines"));
            assert!(request.fields.lists("connection", "upgrade"), "{}", request.fields);
            c.send(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: lines\r\nConnection: Upgrade\r\n\
                 \r\nfirst from the origin",
            );
            c.expect_bytes("first from the client");
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send(
            "GET /lines HTTP/1.1\r\nHost: a\r\nUpgrade: lines\r\nConnection: Upgrade\r\n\r\n\
             first from the client",
        );
        let answer = client.expect_head();
        assert_eq!((answer.status, answer.field("upgrade")), (101, Some("lines")));
        assert!(answer.fields.lists("connection", "upgrade"));
        client.expect_bytes("first from the origin");
        client.expect_end();
        origin.finish();
    });
}

#[test]
fn an_origin_that_does_not_switch_answers_as_ever() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            assert_eq!(c.expect_head().field("upgrade"), Some("h2c"));
            c.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain");
            assert_eq!(c.expect_head().target, "/next");
            c.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext");
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send(
            "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n\
             GET /next HTTP/1.1\r\nHost: a\r\n\r\n",
        );
        assert_eq!(client.expect_response("GET").text(), "plain");
        assert_eq!(client.expect_response("GET").text(), "next");
        assert_eq!(proxy.count(Counter::Tunnels), 0);
        drop(proxy);
        origin.finish();
    });
}
