//! What an origin is told: fields that stay behind, fields that are added, Host, loops. RFC 9110
//! sections 7.2 and 7.6, RFC 7239, RFC 9112 section 3.2.

use sepia::base::Reason;
use sepia::config::{Config, HostHeader, ListenAddress, Role};
use testkit::message::Request;
use testkit::script::ScriptedOrigin;

use super::bed::{Bed, Running, each_path};

const OK: &str = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\r\nok";

/// Sends `head` through a gateway made by `bed` and hands the origin's view of it to `judge`.
fn told(bed: Bed, head: &str, judge: impl FnOnce(&Request, &Running) + Send + 'static) {
    let origin = ScriptedOrigin::start();
    let (view, seen) = std::sync::mpsc::channel();
    origin.connection(move |c| {
        let _ = view.send(c.expect_request());
        c.send(OK);
        c.expect_end();
    });
    let proxy = bed.gateway(&origin);
    let mut client = proxy.client();
    client.send(head);
    assert_eq!(client.expect_response("GET").text(), "ok");
    judge(&seen.recv().expect("the request"), &proxy);
    drop(client);
    drop(proxy);
    origin.finish();
}

#[test]
fn rfc9110_7_6_1_what_concerns_the_clients_connection_stays_behind() {
    each_path(|bed| {
        let head = "GET /a HTTP/1.1\r\nHost: a\r\nAccept: */*\r\nConnection: x-hop, Keep-Alive\r\n\
                    Connection: X-OTHER\r\nX-Hop: 1\r\nX-Other: 2\r\nx-other: 3\r\nX-End: 4\r\n\
                    Keep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nTE: gzip\r\n\
                    Upgrade: h2c\r\nHTTP2-Settings: AAA\r\nProxy-Authorization: Basic YTph\r\n\r\n";
        told(bed, head, |request, _| {
            for name in [
                "connection",
                "keep-alive",
                "proxy-connection",
                "te",
                "upgrade",
                "http2-settings",
                "proxy-authorization",
                "x-hop",
                "x-other",
                "transfer-encoding",
            ] {
                assert_eq!(request.field(name), None, "{name}");
            }
            assert_eq!(request.field("accept"), Some("*/*"));
            assert_eq!(request.field("x-end"), Some("4"));
            assert_eq!(request.version, "HTTP/1.1");
        });
    });
}

#[test]
fn rfc9110_7_6_1_connection_cannot_take_away_what_everybody_needs() {
    each_path(|bed| {
        let head = "GET /a HTTP/1.1\r\nHost: a\r\nCache-Control: no-cache\r\nAge: 1\r\n\
                    Content-Length: 5\r\nVia: 1.1 before\r\nX-Forwarded-For: 9.9.9.9\r\n\
                    Connection: Host, Content-Length, Cache-Control, Age, Via, X-Request-ID, \
                    Forwarded, X-Forwarded-For, Transfer-Encoding\r\n\r\nhello";
        told(bed, head, |request, _| {
            assert_eq!(request.field_all("host"), ["a"]);
            assert_eq!(request.field_all("content-length"), ["5"]);
            assert_eq!(request.text(), "hello");
            assert_eq!(request.field("cache-control"), Some("no-cache"));
            assert_eq!(request.field("age"), Some("1"));
            assert_eq!(request.field_all("via"), ["1.1 before", "1.1 bed"]);
            assert_eq!(request.field_all("x-forwarded-for"), ["127.0.0.1"]);
            assert_eq!(request.field_all("forwarded").len(), 1);
            assert_eq!(request.field("x-request-id").map(str::len), Some(16));
        });
    });
}

#[test]
fn rfc9110_10_1_4_only_trailers_is_asked_for_in_our_own_name() {
    each_path(|bed| {
        let head = "GET / HTTP/1.1\r\nHost: a\r\nConnection: TE\r\nTE: trailers, gzip\r\n\r\n";
        told(bed, head, |request, _| {
            assert_eq!(request.field_all("te"), ["trailers"]);
            assert_eq!(request.field_all("connection"), ["TE"]);
        });
    });
}

#[test]
fn field_lines_keep_their_order_and_are_not_joined() {
    each_path(|bed| {
        let head = "GET / HTTP/1.1\r\nB: 1\r\nHost: a\r\nA: 1, 2\r\nb: 2\r\nA: 3\r\n\r\n";
        told(bed, head, |request, _| {
            assert_eq!(request.field_all("a"), ["1, 2", "3"]);
            assert_eq!(request.field_all("b"), ["1", "2"]);
            assert_eq!(request.fields.iter().next(), Some(("Host", "a")), "RFC 9110 section 7.2");
        });
    });
}

#[test]
fn rfc9110_7_6_3_via_names_the_version_that_came() {
    for version in ["1.1", "1.0"] {
        each_path(|bed| {
            let head = format!("GET / HTTP/{version}\r\nHost: a\r\nVia: 1.1 a, 1.0 b\r\n\r\n");
            let own = format!("{version} bed");
            told(bed, &head, move |request, _| {
                assert_eq!(request.field_all("via"), ["1.1 a, 1.0 b", own.as_str()]);
            });
        });
    }
}

#[test]
fn rfc9110_7_6_3_via_of_an_answer_names_the_version_that_came() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send("HTTP/1.0 200 OK\r\nVia: 1.1 a\r\nContent-Length: 2\r\n\r\nok");
        });
        origin.connection(|c| {
            c.expect_head();
            c.send(OK);
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        assert_eq!(client.get("/", "a", &[]).field_all("via"), ["1.1 a", "1.0 bed"]);
        assert_eq!(client.get("/b", "a", &[]).field_all("via"), ["1.1 bed"]);
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn a_request_that_has_been_here_is_508() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        for via in ["1.1 bed", "1.1 a, HTTP/1.1  BED (comment)", "1.0\tbed"] {
            let answer = client.get("/", "a", &[("Via", via)]);
            assert_eq!((answer.status, answer.field("connection")), (508, None), "{via}");
            assert_eq!(answer.field("proxy-status"), Some("sepia; error=proxy_loop_detected"));
        }
        client.send("HEAD / HTTP/1.1\r\nHost: a\r\nVia: 1.1 bed\r\n\r\n");
        assert_eq!(client.expect_response("HEAD").status, 508);
        client.expect_nothing_buffered();
        proxy.until("the count", |proxy| proxy.reasons(Reason::LoopDetected) == 4);
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn another_proxy_with_a_similar_name_is_no_loop() {
    each_path(|bed| {
        let head = "GET / HTTP/1.1\r\nHost: a\r\nVia: 1.1 bed2, 1.1 a (bed), 1.1 bed:80\r\n\r\n";
        told(bed, head, |request, _| assert_eq!(request.field_all("via").len(), 2));
    });
}

#[test]
fn rfc9112_3_2_2_the_host_of_an_absolute_form_wins() {
    each_path(|bed| {
        let head = "GET http://Example.org:8080?q HTTP/1.1\r\nHost: other\r\n\r\n";
        told(bed, head, |request, _| {
            assert_eq!(request.target, "/?q");
            assert_eq!(request.field_all("host"), ["Example.org:8080"]);
            assert!(request.field("forwarded").is_some_and(|f| f.contains("Example.org:8080")));
        });
    });
}

#[test]
fn rfc9112_3_2_2_a_forward_proxy_rewrites_host_and_target_and_adds_no_forwarding_fields() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let address = origin.address();
        origin.connection(move |c| {
            let request = c.expect_head();
            assert_eq!(request.target, "/");
            assert_eq!(request.field_all("host"), [address.to_string()]);
            assert_eq!(request.field("forwarded"), Some("for=unknown"), "the client's own passes");
            assert_eq!(request.field("x-forwarded-for"), None);
            assert_eq!(request.field_all("via"), ["1.1 bed"]);
            c.send(OK);
            c.expect_end();
        });
        let proxy = bed.forward();
        let mut client = proxy.client();
        client.send(format!(
            "GET http://{address} HTTP/1.1\r\nHost: other\r\nForwarded: for=unknown\r\n\r\n"
        ));
        assert_eq!(client.expect_response("GET").text(), "ok");
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn an_old_request_without_host_gets_the_origins_own() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let address = origin.address();
        origin.connection(move |c| {
            assert_eq!(c.expect_head().field_all("host"), [address.to_string()]);
            c.send(OK);
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("GET / HTTP/1.0\r\n\r\n");
        assert_eq!(client.expect_response("GET").text(), "ok");
        client.expect_end();
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

const SPOOFED: &str = "GET / HTTP/1.1\r\nHost: a\r\nForwarded: for=9.9.9.9\r\n\
    X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Host: evil\r\nX-Forwarded-Proto: https\r\n\
    X-Forwarded-Port: 443\r\nX-Real-IP: 9.9.9.9\r\nX-Request-ID: chosen\r\n\r\n";

#[test]
fn rfc7239_what_an_untrusted_client_says_of_its_way_is_discarded() {
    each_path(|bed| {
        told(bed, SPOOFED, |request, _| {
            assert_eq!(request.field_all("forwarded"), ["for=127.0.0.1;host=\"a\";proto=http"]);
            assert_eq!(request.field_all("x-forwarded-for"), ["127.0.0.1"]);
            assert_eq!(request.field_all("x-forwarded-host"), ["a"]);
            assert_eq!(request.field_all("x-forwarded-proto"), ["http"]);
            assert_eq!(request.field("x-forwarded-port"), None);
            assert_eq!(request.field("x-real-ip"), None);
            let id = request.field("x-request-id").unwrap_or_default();
            assert!(id.len() == 16 && id.bytes().all(|b| b.is_ascii_hexdigit()), "{id}");
        });
    });
}

fn trust_loopback(config: &mut Config) {
    config.trust = vec!["127.0.0.0/8".parse().expect("a network")];
}

#[test]
fn rfc7239_what_a_trusted_peer_says_is_kept_and_the_peer_added() {
    each_path(|bed| {
        told(bed.with(trust_loopback), SPOOFED, |request, _| {
            assert_eq!(request.field_all("forwarded"), ["for=9.9.9.9", "for=127.0.0.1"]);
            assert_eq!(request.field_all("x-forwarded-for"), ["9.9.9.9", "127.0.0.1"]);
            assert_eq!(request.field_all("x-forwarded-host"), ["evil"]);
            assert_eq!(request.field_all("x-forwarded-proto"), ["https"]);
            assert_eq!(request.field_all("x-forwarded-port"), ["443"]);
            assert_eq!(request.field_all("x-real-ip"), ["9.9.9.9"]);
            assert_eq!(request.field_all("x-request-id"), ["chosen"]);
        });
    });
}

#[test]
fn a_trusted_peer_without_a_request_id_gets_one() {
    each_path(|bed| {
        let head = "GET / HTTP/1.1\r\nHost: a\r\nX-Request-ID:\r\n\r\n";
        told(bed.with(trust_loopback), head, |request, _| {
            assert_eq!(request.field_all("x-request-id").len(), 1);
            assert_eq!(request.field("x-request-id").map(str::len), Some(16));
        });
    });
}

#[test]
fn each_request_has_an_id_of_its_own() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            let ids: Vec<_> = (0..3)
                .map(|_| {
                    let request = c.expect_head();
                    c.send(OK);
                    request.field("x-request-id").map(str::to_owned)
                })
                .collect();
            assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2], "{ids:?}");
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        for _ in 0..3 {
            assert_eq!(client.get("/", "a", &[]).text(), "ok");
        }
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

fn host_header(choice: HostHeader) -> impl Fn(&mut Config) {
    move |config| {
        for listener in &mut config.listeners {
            if let Role::Reverse(reverse) = &mut listener.role {
                reverse.host_header = choice.clone();
            }
        }
    }
}

#[test]
fn the_host_that_the_origin_is_told_can_be_chosen_and_is_in_the_key() {
    for (choice, value) in [
        (HostHeader::Origin, None),
        (HostHeader::Value("chosen.example".into()), Some("chosen.example")),
    ] {
        each_path(|bed| {
            let origin = ScriptedOrigin::start();
            let address = origin.address().to_string();
            origin.connection(move |c| {
                assert_eq!(c.expect_head().field_all("host"), [value.unwrap_or(&address)]);
                c.send(
                    "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok",
                );
                c.expect_end();
            });
            let proxy = bed.with(host_header(choice.clone())).gateway(&origin);
            let mut client = proxy.client();
            assert_eq!(client.get("/", "one.example", &[]).text(), "ok");
            let second = client.get("/", "two.example", &[]);
            assert_eq!(second.field("cache-status"), Some("sepia; hit; ttl=60"));
            drop(client);
            drop(proxy);
            origin.finish();
        });
    }
}

#[test]
fn hosts_that_are_kept_are_told_apart_but_not_by_case_or_default_port() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            for host in ["one.example", "two.example", "one.example:8080"] {
                assert_eq!(c.expect_head().field("host"), Some(host));
                c.send(
                    "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok",
                );
            }
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        for host in ["one.example", "two.example", "one.example:8080"] {
            let answer = client.get("/", host, &[]);
            assert_eq!(answer.field("cache-status"), Some("sepia; fwd=uri-miss; stored"), "{host}");
        }
        for host in ["ONE.example", "two.example:80", "one.Example:8080", "one.example:"] {
            let answer = client.get("/", host, &[]);
            assert_eq!(answer.field("cache-status"), Some("sepia; hit; ttl=60"), "{host}");
        }
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc9110_7_8_an_old_client_cannot_ask_for_another_protocol() {
    each_path(|bed| {
        let head = "GET / HTTP/1.0\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        told(bed, head, |request, _| {
            assert_eq!(request.field("upgrade"), None);
            assert_eq!(request.field("connection"), None);
        });
    });
}

#[test]
fn a_field_that_stays_behind_selects_no_variant() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            for language in [None, Some("de")] {
                assert_eq!(c.expect_head().field("accept-language"), language);
                let content = language.unwrap_or("en");
                c.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n");
                c.send(format!("Vary: Accept-Language\r\n\r\n{content}"));
            }
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        let (german, hop) = (("Accept-Language", "de"), ("Connection", "accept-language"));
        assert_eq!(client.get("/", "a", &[german, hop]).text(), "en");
        assert_eq!(client.get("/", "a", &[german]).text(), "de");
        assert_eq!(client.get("/", "a", &[]).text(), "en");
        assert_eq!(client.get("/", "a", &[german, hop]).text(), "en");
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc7239_an_ipv6_peer_is_quoted() {
    each_path(|bed| {
        let to_loopback = |config: &mut Config| {
            let address = (std::net::Ipv6Addr::LOCALHOST, 0).into();
            config.listeners[0].address = ListenAddress::Tcp(address);
        };
        told(bed.with(to_loopback), "GET / HTTP/1.1\r\nHost: a\r\n\r\n", |request, _| {
            let expected = "for=\"[::1]\";host=\"a\";proto=http";
            assert_eq!(request.field_all("forwarded"), [expected]);
            assert_eq!(request.field_all("x-forwarded-for"), ["::1"]);
        });
    });
}
