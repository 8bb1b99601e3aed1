//! The framing of an origin's content, sound and broken: what is truncated is never taken for
//! complete nor stored, and bytes behind a response are nobody's answer. RFC 9112 sections 6 to 9.

use std::time::Duration;

use sepia::base::{Counter, Gauge, Reason};
use testkit::script::{Gate, ScriptedOrigin};

use super::bed::{Running, each_path};

/// Lets time pass by seconds until something is so.
fn pass_until(proxy: &Running, what: &str, is_so: impl Fn(&Running) -> bool) {
    proxy.until(what, |proxy| {
        proxy.pass(1);
        is_so(proxy)
    });
}

#[test]
fn rfc9112_8_content_that_ends_too_early_is_cut_off_and_not_stored() {
    const CHUNKED: &str = "Transfer-Encoding: chunked\r\n\r\n";
    let long_extension = format!("5\r\nhello\r\n5;{}\r\nhello\r\n0\r\n\r\n", "x".repeat(5_000));
    let long_trailers = format!("5\r\nhello\r\n0\r\nX: {}\r\n\r\n", "x".repeat(17_000));
    let rows = [
        ("Content-Length: 10\r\n\r\n", "hello", Reason::OriginTruncated),
        (CHUNKED, "5\r\nhello\r\n", Reason::OriginTruncated),
        (CHUNKED, "a\r\nhello", Reason::OriginTruncated),
        (CHUNKED, "5\r\nhello\r\n0\r\n", Reason::OriginTruncated),
        (CHUNKED, "5\r\nhello\r\nx\r\n", Reason::OriginBadChunk),
        (CHUNKED, "5\r\nhello!\r\n", Reason::OriginBadChunk),
        (CHUNKED, "5\r\nhello\r\n11111111111111111\r\n", Reason::OriginBadChunk),
        (CHUNKED, "5\r\nhello\r\n5\nhello\r\n", Reason::OriginBadChunk),
        (CHUNKED, "5\r\nhello\r\n5\rhello\r\n", Reason::OriginBadChunk),
        (CHUNKED, "5\r\nhello\r\n-1\r\n", Reason::OriginBadChunk),
        (CHUNKED, &long_extension, Reason::OriginBadChunk),
        (CHUNKED, "5\r\nhello\r\n0\r\nno colon\r\n\r\n", Reason::OriginBadTrailers),
        (CHUNKED, "5\r\nhello\r\n0\r\nX: y\n\r\n", Reason::OriginBadChunk),
        (CHUNKED, &long_trailers, Reason::OriginBadTrailers),
    ];
    for (framing, content, reason) in rows {
        let content = content.to_owned();
        each_path(|bed| {
            let origin = ScriptedOrigin::start();
            for content in [content.clone(), content.clone()] {
                origin.connection(move |c| {
                    c.expect_head();
                    c.send(format!(
                        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n{framing}{content}"
                    ));
                    c.half_close();
                    c.expect_closed();
                });
            }
            let proxy = bed.gateway(&origin);
            for _ in 0..2 {
                let mut client = proxy.client();
                client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
                let head = client.expect_head();
                assert_eq!(head.status, 200, "{content:?}");
                assert_eq!(head.field("cache-status"), Some("sepia; fwd=uri-miss; stored"));
                let came = String::from_utf8(client.expect_closed()).expect("text");
                match head.field("content-length") {
                    Some(length) => assert_eq!((length, &*came), ("10", "hello")),
                    None => assert!(!came.contains("0\r\n\r\n"), "{content:?} became {came:?}"),
                }
            }
            proxy.until("both are counted", |proxy| proxy.reasons(reason) == 2);
            drop(proxy);
            origin.finish();
        });
    }
}

#[test]
fn rfc9112_8_a_client_of_http10_learns_of_a_truncated_answer_by_a_reset() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
            c.close();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n");
        client.expect_reset();
        drop(proxy);
        origin.finish();
    });
}

/// An answer in chunks that stops after the first.
fn stop_after_one_chunk(origin: &ScriptedOrigin) {
    origin.connection(|c| {
        c.expect_head();
        c.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
        c.expect_closed();
    });
}

#[test]
fn rfc9112_8_a_half_closed_client_of_http10_learns_of_a_truncated_answer_too() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        stop_after_one_chunk(&origin);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n");
        client.half_close();
        client.expect_head();
        assert_eq!(client.expect_content(5), b"hello");
        proxy.until("the client's time is over", |proxy| {
            proxy.pass(1);
            proxy.gauge(Gauge::SessionsOpen) == 0
        });
        client.expect_reset();
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc9112_8_an_answer_that_a_drain_cuts_looks_complete_to_no_client_of_http10() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        stop_after_one_chunk(&origin);
        let proxy = bed.with(|config| config.drain = Duration::ZERO).gateway(&origin);
        let mut client = proxy.client();
        client.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n");
        client.expect_head();
        assert_eq!(client.expect_content(5), b"hello");
        drop(proxy);
        client.expect_reset();
        origin.finish();
    });
}

#[test]
fn rfc9112_6_3_content_that_ends_with_a_reset_is_truncated() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let mut gates = Vec::new();
        for _ in 0..2 {
            let gate = Gate::new();
            let (held, seen) = (gate.clone(), gate);
            gates.push(seen);
            origin.connection(move |c| {
                c.expect_head();
                c.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\r\nhello");
                held.wait();
                c.reset();
            });
        }
        let proxy = bed.gateway(&origin);
        for gate in gates {
            let mut client = proxy.client();
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            client.expect_head();
            assert_eq!(client.expect_chunk(), b"hello");
            gate.open();
            assert!(client.expect_closed().is_empty());
        }
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc9112_6_3_content_until_the_close_becomes_chunks_and_then_has_a_length() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let gate = Gate::new();
        let held = gate.clone();
        origin.connection(move |c| {
            c.expect_head();
            c.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\r\nhello");
            held.wait();
            c.close();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        let first = client.expect_head();
        assert_eq!(first.field("transfer-encoding"), Some("chunked"));
        assert_eq!(first.field("content-length"), None);
        assert_eq!(client.expect_chunk(), b"hello");
        gate.open();
        client.expect_bytes("0\r\n\r\n");
        let second = client.get("/", "a", &[]);
        assert_eq!((second.field("content-length"), &*second.text()), (Some("5"), "hello"));
        assert_eq!(second.field("cache-status"), Some("sepia; hit; ttl=60"));
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc9112_7_1_chunks_become_content_until_the_close_for_a_client_of_http10() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nCache-Control: no-store\r\n\r\n\
                 5;name=\"x\"\r\nhello\r\n1 ;y\r\n!\r\n0\r\nX-Trailer: y\r\n\r\n",
            );
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n");
        let head = client.expect_head();
        assert_eq!(head.field("transfer-encoding"), None);
        assert_eq!(head.field("connection"), Some("close"));
        assert_eq!(client.expect_rest(), b"hello!");
        drop((client, proxy));
        origin.finish();
    });
}

#[test]
fn rfc9112_6_3_transfer_encoding_beside_content_length_wins_and_is_not_stored() {
    let rows = [
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 500\r\n",
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n",
    ];
    for row in rows {
        each_path(|bed| {
            let origin = ScriptedOrigin::start();
            for _ in 0..2 {
                origin.connection(move |c| {
                    c.expect_head();
                    let rest = "Cache-Control: max-age=60\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
                    c.send(format!("{row}{rest}"));
                    c.expect_end();
                });
            }
            let proxy = bed.gateway(&origin);
            let mut client = proxy.client();
            for _ in 0..2 {
                let answer = client.get("/", "a", &[]);
                assert_eq!(answer.text(), "hello", "{row:?}");
                assert_eq!(answer.field("content-length"), None);
                let cache_status = "sepia; fwd=uri-miss; detail=ambiguous-length";
                assert_eq!(answer.field("cache-status"), Some(cache_status));
            }
            drop(proxy);
            origin.finish();
        });
    }
}

#[test]
fn rfc9110_7_6_1_fields_of_the_origins_connection_stay_behind() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send(
                "HTTP/1.1 200 OK\r\n\
                 Connection: X-Hop, Cache-Control, Content-Length, keep-alive\r\n\
                 X-Hop: 1\r\nKeep-Alive: timeout=9\r\nProxy-Connection: keep-alive\r\nTE: x\r\n\
                 Upgrade: h2c\r\nProxy-Authenticate: Basic\r\nX-End: 2\r\n\
                 Cache-Control: no-store\r\nContent-Length: 2\r\n\r\nok",
            );
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let answer = proxy.client().get("/", "a", &[]);
        for name in ["connection", "x-hop", "keep-alive", "proxy-connection", "te", "upgrade"] {
            assert_eq!(answer.field(name), None, "{name}");
        }
        assert_eq!(answer.field("x-end"), Some("2"));
        assert_eq!(answer.field("cache-control"), Some("no-store"));
        assert_eq!(answer.field_all("content-length"), ["2"]);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc9110_2_5_an_origin_of_http10_is_answered_for_as_http11() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            assert_eq!(c.expect_head().version, "HTTP/1.1");
            c.send("HTTP/1.0 200 Fine\r\nVia: 1.1 other\r\nContent-Length: 2\r\n\r\nok");
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let answer = proxy.client().get("/", "a", &[]);
        assert_eq!((&*answer.version, answer.status), ("HTTP/1.1", 200));
        assert_eq!(answer.field_all("via"), ["1.1 other", "1.0 bed"]);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc9110_8_6_equal_copies_of_content_length_become_one() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\nContent-Length: 5\r\n\r\nhello");
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let answer = proxy.client().get("/", "a", &[]);
        assert_eq!((answer.field_all("content-length"), &*answer.text()), (vec!["5"], "hello"));
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc9112_5_faults_of_a_head_are_repaired_and_counted() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send(
                "HTTP/1.1 200 OK\r\n\
                 Bare: line feed\nSpaced \t: colon\r\nFolded: over\r\n \t two\r\n\
                 Content-Length: 2\r\n\r\nok",
            );
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let answer = proxy.client().get("/", "a", &[]);
        assert_eq!(answer.text(), "ok");
        assert_eq!(answer.field("bare"), Some("line feed"));
        assert_eq!(answer.field("spaced"), Some("colon"));
        let folded = answer.field("folded").expect("the folded field");
        assert_eq!(folded.split_whitespace().collect::<Vec<_>>(), ["over", "two"]);
        let head = String::from_utf8(answer.raw_head).expect("text");
        assert!(!head.contains(" :") && !head.replace("\r\n", "").contains('\n'), "{head:?}");
        assert_eq!(proxy.count(Counter::Repairs), 3);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc9112_4_the_plainest_heads_are_understood() {
    let rows = [
        ("HTTP/1.1 200 OK\nContent-Length: 2\n\nok", 3),
        ("HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", 0),
        ("HTTP/1.1 200 \r\nContent-Length:2\r\n\r\nok", 0),
        ("HTTP/1.9 200 OK\r\nContent-Length: \t2 \t\r\n\r\nok", 0),
    ];
    for (sent, repairs) in rows {
        each_path(|bed| {
            let origin = ScriptedOrigin::start();
            origin.connection(move |c| {
                c.expect_head();
                c.send(sent);
                c.expect_end();
            });
            let proxy = bed.gateway(&origin);
            let answer = proxy.client().get("/", "a", &[]);
            assert_eq!((answer.status, &*answer.text()), (200, "ok"), "{sent:?}");
            assert_eq!(answer.field("content-length"), Some("2"));
            assert_eq!(proxy.count(Counter::Repairs), repairs, "{sent:?}");
            drop(proxy);
            origin.finish();
        });
    }
}

#[test]
fn rfc9112_6_3_statuses_without_content_end_with_their_head() {
    for (head, status) in [
        ("HTTP/1.1 204 No Content\r\n", 204),
        ("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n", 204),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n", 304),
        ("HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n", 205),
    ] {
        each_path(|bed| {
            let origin = ScriptedOrigin::start();
            origin.connection(move |c| {
                for _ in 0..2 {
                    c.expect_head();
                    c.send(format!("{head}Cache-Control: no-store\r\n\r\n"));
                }
                c.expect_end();
            });
            let proxy = bed.gateway(&origin);
            let mut client = proxy.client();
            for _ in 0..2 {
                let answer = client.get("/", "a", &[("If-None-Match", "\"x\"")]);
                assert_eq!(answer.status, status);
                assert_eq!(answer.field("transfer-encoding"), None);
                let keeps_length = status == 204 && answer.field("content-length").is_some();
                assert!(!keeps_length, "RFC 9110 section 8.6");
            }
            assert_eq!(proxy.count(Counter::OriginConnects), 1);
            drop(proxy);
            origin.finish();
        });
    }
}

#[test]
fn rfc9110_9_3_2_the_length_of_an_answer_to_head_is_passed_on() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            for framing in ["Content-Length: 500", "Transfer-Encoding: chunked"] {
                assert_eq!(c.expect_head().method, "HEAD");
                c.send(format!("HTTP/1.1 200 OK\r\n{framing}\r\n\r\n"));
            }
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        for length in [Some("500"), None] {
            client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
            let answer = client.expect_response("HEAD");
            assert_eq!((answer.status, answer.field("content-length")), (200, length));
        }
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc9112_6_3_bytes_behind_a_response_are_nobodys_answer() {
    const FORGED: &str = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged";
    let rows = [
        ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
        ("GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n"),
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"),
    ];
    for (method, answer) in rows {
        each_path(|bed| {
            let origin = ScriptedOrigin::start();
            origin.connection(move |c| {
                c.expect_head();
                c.send(format!("{answer}{FORGED}"));
                c.expect_closed();
            });
            origin.connection(|c| {
                c.expect_head();
                c.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntrue");
                c.expect_end();
            });
            let proxy = bed.gateway(&origin);
            let mut client = proxy.client();
            client.send(format!("{method} /1 HTTP/1.1\r\nHost: a\r\n\r\n"));
            client.expect_response(method);
            assert_eq!(client.get("/2", "a", &[]).text(), "true", "{answer:?}");
            assert_eq!(proxy.reasons(Reason::OriginTooMuch), 1);
            drop(proxy);
            origin.finish();
        });
    }
}

#[test]
fn rfc9112_9_bytes_on_an_idle_connection_end_it() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            // Many servers say this of an idle connection before they close it.
            c.send("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n");
            c.expect_closed();
        });
        origin.connection(|c| {
            c.expect_head();
            c.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntrue");
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        assert_eq!(client.get("/1", "a", &[]).text(), "ok");
        proxy.until("it is closed", |proxy| proxy.gauge(Gauge::OriginsIdle) == 0);
        assert_eq!(client.get("/2", "a", &[]).text(), "true");
        assert_eq!(proxy.count(Counter::OriginRetries), 0);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc9209_2_3_10_silence_in_the_middle_of_content_ends_it() {
    for store in ["max-age=60", "no-store"] {
        each_path(|bed| {
            let origin = ScriptedOrigin::start();
            origin.connection(move |c| {
                c.expect_head();
                c.send(format!(
                    "HTTP/1.1 200 OK\r\nCache-Control: {store}\r\nContent-Length: 10\r\n\r\nhello"
                ));
                c.expect_closed();
            });
            let proxy = bed.gateway(&origin);
            let mut client = proxy.client();
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            assert_eq!(client.expect_head().status, 200);
            client.expect_bytes("hello");
            pass_until(&proxy, "the silence's timeout", |proxy| {
                proxy.reasons(Reason::OriginSilent) == 1
            });
            assert!(proxy.clock.millis() >= 60_000);
            assert!(client.expect_closed().is_empty());
            drop(proxy);
            origin.finish();
        });
    }
}

#[test]
fn rfc9110_15_2_interim_responses_come_before_the_answer_and_are_no_part_of_it() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            for _ in 0..2 {
                c.expect_head();
                c.send(
                    "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nConnection: X-Hop\r\n\
                     X-Hop: 1\r\nContent-Length: 0\r\n\r\n",
                );
                c.send("HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\n");
                c.send("Cache-Control: no-store\r\nContent-Length: 2\r\n\r\nok");
            }
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        let hints = client.get("/", "a", &[]);
        assert_eq!((hints.status, hints.field("link")), (103, Some("</a.css>")));
        assert_eq!((hints.field("x-hop"), hints.field("content-length")), (None, None));
        assert_eq!(client.expect_response("GET").status, 102);
        assert_eq!(client.expect_response("GET").text(), "ok");
        client.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n");
        assert_eq!(client.expect_response("GET").text(), "ok", "none for a client of HTTP/1.0");
        drop((client, proxy));
        origin.finish();
    });
}

#[test]
fn an_event_stream_may_be_silent_for_hours() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let gate = Gate::new();
        let held = gate.clone();
        origin.connection(move |c| {
            c.expect_head();
            c.send(
                "HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\n\
                 Cache-Control: no-store\r\n\r\ndata: 1\n\n",
            );
            held.wait();
            c.send("data: 2\n\n");
            c.close();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        client.expect_head();
        assert_eq!(client.expect_chunk(), b"data: 1\n\n");
        for _ in 0..100 {
            proxy.pass(100);
        }
        gate.open();
        assert_eq!(client.expect_chunk(), b"data: 2\n\n");
        assert_eq!(client.expect_chunk(), b"");
        drop(proxy);
        origin.finish();
    });
}
