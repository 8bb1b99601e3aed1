//! Origins that cannot be reached, or that answer with what is no response: the client gets 502
//! or 504 with the reason, and the process goes on. RFC 9110 sections 15.6.3 and 15.6.5, RFC 9209.

use std::time::Duration;

use sepia::base::{Counter, Gauge, Reason};
use sepia::config::{Config, OriginAddress, Role};
use socket2::{Domain, Socket, Type};
use testkit::script::{Gate, RefusingAddress, ScriptedOrigin};

use super::bed::{Running, each_path};

/// Lets time pass by seconds until something is so.
fn pass_until(proxy: &Running, what: &str, is_so: impl Fn(&Running) -> bool) {
    proxy.until(what, |proxy| {
        proxy.pass(1);
        is_so(proxy)
    });
}

/// Puts the gateway in front of a name.
fn lead_to(config: &mut Config, name: &OriginAddress) {
    for listener in &mut config.listeners {
        if let Role::Reverse(reverse) = &mut listener.role {
            reverse.to = vec![name.clone()];
        }
    }
}

/// Asks once and sees the reason as a client sees it; its connection goes on.
fn expect_refusal(proxy: &Running, expected: Reason) {
    let mut client = proxy.client();
    for method in ["GET", "HEAD"] {
        client.send(format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n"));
        let answer = client.expect_response(method);
        assert_eq!(answer.status, expected.status());
        let error = expected.proxy_status().expect("an error has its Proxy-Status");
        assert_eq!(answer.field("proxy-status"), Some(&*format!("sepia; error={error}")));
        let detail = format!("sepia; detail={expected}");
        assert_eq!(answer.field("cache-status"), Some(&*detail));
        assert_eq!(answer.content.is_empty(), method == "HEAD");
    }
}

/// What is no response head, and why.
fn broken_heads() -> Vec<(String, Reason)> {
    let long_line = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(20_000));
    let many_lines = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: y\r\n".repeat(129));
    let long_head =
        format!("HTTP/1.1 200 OK\r\n{}\r\n", format!("X: {}\r\n", "x".repeat(10_000)).repeat(7));
    let storm = "HTTP/1.1 102 Processing\r\n\r\n".repeat(17);
    [
        ("SSH-2.0-nobody\r\n\r\n", Reason::OriginGarbage),
        ("HTTP/2.0 200 OK\r\n\r\n", Reason::OriginGarbage),
        ("HTTP/1.1 20 OK\r\n\r\n", Reason::OriginGarbage),
        ("HTTP/1.1 099 No\r\n\r\n", Reason::OriginGarbage),
        ("HTTP/1.1 200 OK\r\nA: \0\r\n\r\n", Reason::OriginGarbage),
        ("HTTP/1.1 200 OK\r\nA: b\rC: d\r\n\r\n", Reason::OriginGarbage),
        ("HTTP/1.1 200 OK\r\n folded: at once\r\n\r\n", Reason::OriginGarbage),
        ("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", Reason::OriginGarbage),
        ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", Reason::OriginBadFraming),
        ("HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\na", Reason::OriginBadFraming),
        ("HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", Reason::OriginBadFraming),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\n",
            Reason::OriginBadFraming,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
            Reason::OriginBadFraming,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            Reason::OriginUnknownCoding,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
            Reason::OriginUnknownCoding,
        ),
        (
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
            Reason::OriginSwitchedUnasked,
        ),
        (&long_line, Reason::OriginHeadTooLarge),
        (&many_lines, Reason::OriginHeadTooLarge),
        (&long_head, Reason::OriginHeadTooLarge),
        (&storm, Reason::OriginGarbage),
    ]
    .map(|(bytes, reason)| (bytes.to_owned(), reason))
    .into()
}

#[test]
fn rfc9112_2_an_answer_that_is_no_response_is_refused_and_the_next_exchange_is_well() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        for (bytes, reason) in broken_heads() {
            let sent = bytes.clone();
            origin.connection(move |c| {
                c.expect_head();
                c.send_anyway(sent);
                c.expect_closed();
            });
            let before = proxy.reasons(reason);
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            let mut answer = client.expect_response("GET");
            while answer.status == 102 {
                answer = client.expect_response("GET");
            }
            let row = bytes.chars().take(60).collect::<String>();
            assert_eq!(answer.status, 502, "{row:?}");
            let error = reason.proxy_status().expect("an error has its Proxy-Status");
            let proxy_status = format!("sepia; error={error}");
            assert_eq!(answer.field("proxy-status"), Some(&*proxy_status), "{row:?}");
            proxy.until("the reason is counted", |proxy| proxy.reasons(reason) > before);
        }
        origin.connection(|c| {
            c.expect_head();
            c.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            c.expect_end();
        });
        assert_eq!(client.get("/", "a", &[]).text(), "ok");
        proxy.until("no connection is left behind", |proxy| {
            proxy.gauge(Gauge::OriginsConnected) == 0 && proxy.gauge(Gauge::OriginsIdle) == 1
        });
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc9209_2_3_7_an_origin_that_refuses_the_connection() {
    each_path(|bed| {
        let refusing = RefusingAddress::hold();
        let proxy = bed.gateway_to(&[refusing.address()]);
        expect_refusal(&proxy, Reason::OriginRefused);
        proxy.until("both are counted", |proxy| {
            proxy.reasons(Reason::OriginRefused) == 2
                && proxy.count(Counter::OriginConnectFailures) == 2
        });
    });
}

#[test]
fn rfc9209_2_3_2_an_origin_whose_name_does_not_resolve() {
    each_path(|bed| {
        // A label of 64 bytes is no name (RFC 1035): the resolver says so without a network.
        let name = OriginAddress { host: format!("{}.invalid", "a".repeat(64)), port: 80 };
        let bed = bed.with(move |config| lead_to(config, &name));
        let proxy = bed.gateway_to(&[]);
        expect_refusal(&proxy, Reason::OriginNameUnresolved);
    });
}

#[test]
fn an_origin_whose_name_does_not_resolve_is_skipped() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            for _ in 0..2 {
                c.expect_head();
                c.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            }
            c.expect_end();
        });
        let name = OriginAddress { host: format!("{}.invalid", "a".repeat(64)), port: 80 };
        let bed = bed.with(move |config| {
            for listener in &mut config.listeners {
                if let Role::Reverse(reverse) = &mut listener.role {
                    reverse.to.insert(0, name.clone());
                }
            }
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        for _ in 0..2 {
            assert_eq!(client.get("/", "a", &[("Cache-Control", "no-store")]).text(), "ok");
        }
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn every_address_of_a_name_is_tried() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            c.expect_end();
        });
        // It is ::1 as well on most machines, where nobody listens.
        let name = OriginAddress { host: "localhost".to_owned(), port: origin.address().port() };
        let bed = bed.with(move |config| lead_to(config, &name));
        let proxy = bed.gateway_to(&[]);
        assert_eq!(proxy.client().get("/", "a", &[]).text(), "ok");
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc9209_2_3_9_an_origin_that_does_not_accept_within_the_connect_timeout() {
    each_path(|bed| {
        // The queue of this listener holds one connection, and has it.
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        let any: std::net::SocketAddr = ([127, 0, 0, 1], 0).into();
        listener.bind(&any.into()).expect("a loopback port");
        listener.listen(0).expect("a listener");
        let address = listener.local_addr().expect("an address").as_socket().expect("IPv4");
        let _queued = std::net::TcpStream::connect(address).expect("the queue's one place");
        let proxy = bed.gateway_to(&[address]);
        let mut client = proxy.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        proxy.until("it connects", |proxy| proxy.count(Counter::OriginConnects) == 1);
        pass_until(&proxy, "the connect timeout", |proxy| {
            proxy.reasons(Reason::OriginConnectTimeout) == 1
        });
        assert!(proxy.clock.millis() >= 5_000);
        let answer = client.expect_response("GET");
        assert_eq!(answer.status, 504);
        assert_eq!(answer.field("proxy-status"), Some("sepia; error=connection_timeout"));
    });
}

#[test]
fn rfc9110_15_6_5_an_origin_that_stalls_before_or_within_its_head() {
    for begun in ["", "HTTP/1.1 200 OK\r\nContent-Le"] {
        each_path(|bed| {
            let origin = ScriptedOrigin::start();
            let begins = Gate::new();
            let opened = begins.clone();
            origin.connection(move |c| {
                c.expect_head();
                c.send(begun);
                opened.open();
                c.expect_closed();
            });
            let proxy = bed.gateway(&origin);
            let mut client = proxy.client();
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            begins.wait();
            pass_until(&proxy, "the first byte's timeout", |proxy| {
                proxy.reasons(Reason::OriginHeadTimeout) == 1
            });
            assert!(proxy.clock.millis() >= 60_000);
            let answer = client.expect_response("GET");
            assert_eq!(answer.status, 504);
            assert_eq!(answer.field("proxy-status"), Some("sepia; error=http_response_timeout"));
            assert_eq!(proxy.count(Counter::OriginRetries), 0);
            drop(proxy);
            origin.finish();
        });
    }
}

#[test]
fn an_origin_that_trickles_its_head_is_waited_for() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send_slowly("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX: y\r\n\r\nslow");
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let answer = proxy.client().get("/", "a", &[]);
        assert_eq!((answer.field("x"), &*answer.text()), (Some("y"), "slow"));
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc9110_9_2_2_an_idempotent_request_is_sent_once_more_and_no_oftener() {
    for (is_reset, reason) in [(false, Reason::OriginClosedEarly), (true, Reason::OriginReset)] {
        for (method, tries) in [("GET", 2), ("DELETE", 2), ("POST", 1), ("PATCH", 1)] {
            each_path(|bed| {
                let origin = ScriptedOrigin::start();
                for _ in 0..tries {
                    origin.connection(move |c| {
                        assert_eq!(c.expect_head().method, method);
                        if is_reset { c.reset() } else { c.close() }
                    });
                }
                let proxy = bed.gateway(&origin);
                let mut client = proxy.client();
                client.send(format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n"));
                let answer = client.expect_response(method);
                assert_eq!(answer.status, 502, "{method} {reason}");
                assert_eq!(
                    answer.field("proxy-status"),
                    Some("sepia; error=connection_terminated")
                );
                assert_eq!(answer.field("cache-status"), Some(&*format!("sepia; detail={reason}")));
                assert_eq!(proxy.count(Counter::OriginRetries), tries - 1);
                drop(proxy);
                origin.finish();
            });
        }
    }
}

#[test]
fn rfc9110_9_2_2_nothing_is_sent_again_once_an_answer_has_begun() {
    for begun in ["H", "HTTP/1.1 200 OK\r\nA: b\r\n", "HTTP/1.1 102 Processing\r\n\r\n"] {
        each_path(|bed| {
            let origin = ScriptedOrigin::start();
            origin.connection(move |c| {
                c.expect_head();
                c.send(begun);
                c.close();
            });
            let proxy = bed.gateway(&origin);
            let mut client = proxy.client();
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            let mut answer = client.expect_response("GET");
            if answer.status == 102 {
                answer = client.expect_response("GET");
            }
            assert_eq!(answer.status, 502, "{begun:?}");
            assert_eq!(answer.field("cache-status"), Some("sepia; detail=origin-closed-early"));
            drop(proxy);
            origin.finish();
        });
    }
}

#[test]
fn requests_go_to_several_origins_in_turn() {
    each_path(|bed| {
        let origins = [ScriptedOrigin::start(), ScriptedOrigin::start(), ScriptedOrigin::start()];
        for (origin, name) in origins.iter().zip(["a", "b", "c"]) {
            origin.connection(move |c| {
                while c.next_request().is_some() {
                    c.send(format!(
                        "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 1\r\n\r\n\
                         {name}"
                    ));
                }
            });
        }
        let proxy = bed.gateway_to(&origins.each_ref().map(ScriptedOrigin::address));
        let mut client = proxy.client();
        let answers: String = (0..6).map(|_| client.get("/", "x", &[]).text()).collect();
        assert_eq!(answers, "abcabc");
        drop(proxy);
        origins.into_iter().for_each(ScriptedOrigin::finish);
    });
}

#[test]
fn an_origin_that_refuses_is_skipped_even_for_an_unsafe_request_with_content() {
    each_path(|bed| {
        let refusing = RefusingAddress::hold();
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            for _ in 0..4 {
                assert_eq!(c.expect_request().text(), "content");
                c.send("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
            }
            c.expect_end();
        });
        let proxy = bed.gateway_to(&[refusing.address(), origin.address()]);
        let mut client = proxy.client();
        for _ in 0..4 {
            client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\ncontent");
            assert_eq!(client.expect_response("POST").status, 201);
        }
        assert_eq!(proxy.reasons(Reason::OriginRefused), 0, "nobody was refused anything");
        assert!(proxy.count(Counter::OriginConnectFailures) >= 1);
        assert_eq!(proxy.count(Counter::OriginRetries), 0);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn all_origins_down_is_a_502_that_names_the_last_fault() {
    each_path(|bed| {
        let down = [RefusingAddress::hold(), RefusingAddress::hold()];
        let proxy = bed.gateway_to(&down.each_ref().map(RefusingAddress::address));
        expect_refusal(&proxy, Reason::OriginRefused);
        assert_eq!(proxy.count(Counter::OriginConnects), 4);
    });
}

#[test]
fn an_origin_that_does_not_read_an_upload_is_given_up() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let (begins, done) = (Gate::new(), Gate::new());
        let (opened, held) = (begins.clone(), done.clone());
        origin.connection(move |c| {
            c.expect_head();
            opened.open();
            held.wait();
        });
        let bed = bed.with(|config| config.timeouts.client = Duration::from_secs(1 << 30));
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 60000000\r\n\r\n");
        std::thread::scope(|scope| {
            let sending = scope.spawn(move || {
                client.send_anyway(vec![b'x'; 60_000_000]);
                client
            });
            begins.wait();
            // More than the sockets between can hold, so that the proxy must be waiting.
            pass_until(&proxy, "the silence's timeout", |proxy| {
                proxy.reasons(Reason::OriginWriteStalled) == 1
            });
            let mut client = sending.join().expect("the client has sent what it could");
            let answer = client.expect_response("PUT");
            assert_eq!(answer.status, 504);
            assert_eq!(answer.field("proxy-status"), Some("sepia; error=connection_write_timeout"));
        });
        done.open();
        drop(proxy);
        origin.finish();
    });
}
