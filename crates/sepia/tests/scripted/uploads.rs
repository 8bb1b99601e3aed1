//! Request content on its way to the origin: in pieces, large, slow, broken off. RFC 9112
//! sections 6 to 8.

use sepia::base::{Counter, Gauge, Reason};
use testkit::script::{Gate, RefusingAddress, ScriptedOrigin};
use testkit::site::content_at;

use super::bed::each_path;

const OK: &str = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\r\nok";

/// Bytes of a content that fits into no buffer on its way.
const LARGE: u64 = 12_000_000;

#[test]
fn content_by_length_arrives_as_it_was_sent() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            for content in ["hello", ""] {
                let request = c.expect_request();
                assert_eq!(request.text(), content);
                let length = content.len().to_string();
                assert_eq!(request.field_all("content-length"), [length.as_str()]);
                assert_eq!(request.field("transfer-encoding"), None);
                assert_eq!(request.field("content-type"), Some("text/plain"));
                c.send(OK);
            }
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send(
            "POST /a HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\n\
             Content-Length: 5, 5\r\nContent-Length: 5\r\n\r\nhello",
        );
        let answer = client.expect_response("POST");
        assert_eq!((answer.status, answer.text().as_str()), (200, "ok"));
        assert!(answer.field("cache-status").is_some_and(|f| f.starts_with("sepia; fwd=method")));
        client.send(
            "PUT /a HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n",
        );
        assert_eq!(client.expect_response("PUT").text(), "ok");
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn content_in_chunks_arrives_in_chunks_without_their_extensions() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            let request = c.expect_head();
            assert_eq!(request.field_all("transfer-encoding"), ["chunked"]);
            assert_eq!(request.field("content-length"), None);
            let mut content = Vec::new();
            loop {
                let chunk = c.expect_chunk();
                if chunk.is_empty() {
                    break;
                }
                content.extend(chunk);
            }
            c.expect_bytes("\r\n");
            assert_eq!(content, b"hello, world");
            c.send(OK);
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send_slowly(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n\
             5;ext=\"a;b\"\r\nhello\r\n0000007 ;x\r\n, world\r\n0\r\n\r\n",
        );
        assert_eq!(client.expect_response("POST").text(), "ok");
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc9110_6_5_trailers_never_become_fields_and_follow_those_who_ask() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            for expected in [Some("1"), None] {
                let request = c.expect_request();
                assert_eq!(request.text(), "hello");
                assert_eq!(request.field("x-sum"), None);
                assert_eq!(request.trailers.first("x-sum"), expected);
                assert_eq!(request.trailers.len(), usize::from(expected.is_some()));
                c.send(OK);
            }
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        for te in ["TE: trailers\r\nConnection: TE\r\n", ""] {
            client.send(format!(
                "POST / HTTP/1.1\r\nHost: a\r\n{te}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n\
                 0\r\nX-Sum: 1\r\nContent-Length: 9\r\nHost: evil\r\nTransfer-Encoding: chunked\r\n\
                 Authorization: evil\r\n\r\n"
            ));
            assert_eq!(client.expect_response("POST").text(), "ok");
        }
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn large_content_streams_through_unchanged_and_the_session_goes_on() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let gate = Gate::new();
        let held = gate.clone();
        origin.connection(move |c| {
            assert_eq!(c.expect_head().field("content-length"), Some("12000000"));
            held.wait();
            assert!(c.expect_content(12_000_000) == content_at(0, 12_000_000));
            c.send(OK);
            assert_eq!(c.expect_request().content.len(), 12_000_000);
            c.send(OK);
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send(format!("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: {LARGE}\r\n\r\n"));
        proxy.until("the request at the origin", |proxy| proxy.gauge(Gauge::HopForward) == 1);
        gate.open();
        client.send_generated(0, LARGE);
        assert_eq!(client.expect_response("PUT").text(), "ok");
        client.send("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nB71B00\r\n");
        client.send_generated(0, LARGE);
        client.send("\r\n0\r\n\r\n");
        assert_eq!(client.expect_response("PUT").text(), "ok");
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn a_request_may_follow_content_at_once() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            for content in ["hello", "hello", ""] {
                assert_eq!(c.expect_request().text(), content);
                c.send(OK);
            }
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello\
             POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
             5\r\nhello\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        );
        for method in ["POST", "POST", "GET"] {
            assert_eq!(client.expect_response(method).text(), "ok");
        }
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc9112_8_content_broken_off_never_looks_complete_to_the_origin() {
    let rows = [
        ("Content-Length: 10", "hello", "hello"),
        ("Transfer-Encoding: chunked", "5\r\nhello\r\n", "5\r\nhello\r\n"),
        ("Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\n", "5\r\nhello\r\n"),
    ];
    for (framing, sent, expected) in rows {
        each_path(|bed| {
            let origin = ScriptedOrigin::start();
            let gate = Gate::new();
            let seen = gate.clone();
            origin.connection(move |c| {
                c.expect_head();
                c.expect_bytes(expected);
                seen.open();
                assert_eq!(c.expect_closed(), b"", "{framing}: nothing that ends the content");
            });
            let proxy = bed.gateway(&origin);
            let mut client = proxy.client();
            client.send(format!("POST / HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n{sent}"));
            gate.wait();
            client.half_close();
            assert_eq!(client.expect_response("POST").status, 400);
            client.expect_end();
            proxy.until("the count", |proxy| proxy.reasons(Reason::ClientTruncated) == 1);
            drop(client);
            drop(proxy);
            origin.finish();
        });
    }
}

#[test]
fn content_whose_client_resets_never_looks_complete_to_the_origin() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let gate = Gate::new();
        let seen = gate.clone();
        origin.connection(move |c| {
            c.expect_head();
            c.expect_bytes("hello");
            seen.open();
            assert_eq!(c.expect_closed(), b"");
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello");
        gate.wait();
        client.reset();
        proxy.until("the session to be gone", |proxy| proxy.gauge(Gauge::SessionsOpen) == 0);
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn broken_chunks_are_refused_and_end_the_request() {
    let trailers = format!("0\r\n{}\r\n", "A: b\r\n".repeat(65));
    let line = format!("1;{}\r\na\r\n", "x".repeat(4 << 10));
    let rows = [
        ("5\nhello\r\n", Reason::BareLf),
        ("x\r\nhello\r\n", Reason::BadChunkSize),
        ("\r\n", Reason::BadChunkSize),
        ("-5\r\nhello\r\n", Reason::BadChunkSize),
        ("0x5\r\nhello\r\n", Reason::BadChunkSize),
        ("00000000000000005\r\nhello\r\n", Reason::BadChunkSize),
        ("ffffffffffffffff\r\nhello\r\n", Reason::BadChunkSize),
        ("5;a=\x01\r\nhello\r\n", Reason::BadChunkExtension),
        (line.as_str(), Reason::ChunkLineTooLong),
        ("5\r\nhelloo\r\n", Reason::BadChunkEnd),
        ("5\r\nhello\n", Reason::BadChunkEnd),
        ("5\rhello", Reason::BareCr),
        ("0\r\nno colon\r\n\r\n", Reason::BadTrailer),
        ("0\r\n folded: a\r\n\r\n", Reason::BadTrailer),
        (trailers.as_str(), Reason::TrailersTooLarge),
    ];
    for (chunks, reason) in rows {
        each_path(|bed| {
            let origin = ScriptedOrigin::start();
            let proxy = bed.gateway(&origin);
            let mut client = proxy.client();
            origin.connection(|c| {
                c.expect_head();
                let seen = c.expect_closed();
                assert!(!seen.ends_with(b"0\r\n\r\n"), "{}", seen.escape_ascii());
            });
            client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
            proxy.until("the origin", |_| origin.connections() == 1);
            client.send(format!("{chunks}GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"));
            let answer = client.expect_response("POST");
            assert_eq!(answer.status, reason.status(), "{reason}");
            assert_eq!(answer.field("connection"), Some("close"));
            let expected = format!("sepia; detail={}", reason.token());
            assert_eq!(answer.field("cache-status"), Some(expected.as_str()));
            client.expect_end();
            proxy.until("the count", |proxy| proxy.reasons(reason) == 1);
            assert_eq!(proxy.count(Counter::Exchanges), 1);
            drop(client);
            drop(proxy);
            origin.finish();
        });
    }
}

#[test]
fn a_client_that_stops_sending_its_content_for_thirty_seconds_is_408() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let (asked, gate) = (Gate::new(), Gate::new());
        let (begun, seen) = (asked.clone(), gate.clone());
        origin.connection(move |c| {
            c.expect_head();
            begun.open();
            c.expect_bytes("hello");
            seen.open();
            assert_eq!(c.expect_closed(), b"");
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n";
        client.send(head);
        asked.wait();
        proxy.pass(29);
        client.send("hello");
        gate.wait();
        proxy.pass(29);
        client.expect_nothing_buffered();
        proxy.pass(2);
        let answer = client.expect_response("POST");
        assert_eq!((answer.status, answer.field("connection")), (408, Some("close")));
        assert_eq!(answer.field("cache-status"), Some("sepia; detail=client-silent"));
        client.expect_end();
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn an_answer_that_comes_before_the_content_ends_the_session() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nno!");
            c.expect_closed();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\nhello");
        let answer = client.expect_response("POST");
        assert_eq!((answer.status, answer.text().as_str()), (413, "no!"));
        assert_eq!(answer.field("connection"), Some("close"));
        client.send_anyway([b'x'; 100_000]);
        client.expect_closed();
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn content_of_get_goes_to_the_origin_and_nothing_of_it_is_stored() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            for content in ["hello", "hello", ""] {
                assert_eq!(c.expect_request().text(), content);
                c.send(
                    "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 1\r\n\r\na",
                );
            }
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        for _ in 0..2 {
            client.send("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
            assert_eq!(client.expect_response("GET").text(), "a");
        }
        assert_eq!(
            client.get("/", "a", &[]).field("cache-status"),
            Some("sepia; fwd=uri-miss; stored")
        );
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn rfc9112_6_1_chunks_are_not_sent_to_an_origin_that_is_known_not_to_read_them() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        for _ in 0..2 {
            origin.connection(|c| {
                c.expect_request();
                c.send("HTTP/1.0 200 OK\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\r\nok");
            });
        }
        let proxy = bed.gateway(&origin);
        assert_eq!(proxy.client().get("/", "a", &[]).text(), "ok");
        let mut client = proxy.client();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
        assert_eq!(client.expect_response("POST").text(), "ok");
        client.send(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
             5\r\nhello\r\n0\r\n\r\n",
        );
        assert_eq!(client.expect_response("POST").status, 411);
        client.expect_end();
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn a_refusal_survives_although_a_megabyte_of_content_comes() {
    each_path(|bed| {
        let origin = RefusingAddress::hold();
        let proxy = bed.gateway_to(&[origin.address()]);
        let content = "x".repeat(1 << 20);
        for (field, status) in [("Via: 1.1 bed", 508), ("Expect: tea", 417), ("A: b", 502)] {
            for framing in ["Content-Length: 1048576", "Transfer-Encoding: chunked"] {
                let mut client = proxy.client();
                client.send(format!("POST / HTTP/1.1\r\nHost: a\r\n{field}\r\n{framing}\r\n\r\n"));
                if framing.ends_with("chunked") {
                    client.send_anyway("100000\r\n");
                }
                client.send_anyway(&content);
                let answer = client.expect_response("POST");
                assert_eq!((answer.status, answer.field("connection")), (status, Some("close")));
                client.expect_end();
            }
        }
        drop(proxy);
    });
}

#[test]
fn content_goes_on_as_it_comes() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let gate = Gate::new();
        let seen = gate.clone();
        origin.connection(move |c| {
            c.expect_head();
            c.expect_bytes("first");
            seen.open();
            c.expect_bytes("second");
            c.send(OK);
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\nfirst");
        gate.wait();
        client.send_slowly("second");
        assert_eq!(client.expect_response("POST").text(), "ok");
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn an_old_client_may_send_content_by_length() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            let request = c.expect_request();
            assert_eq!((request.version.as_str(), request.text().as_str()), ("HTTP/1.1", "hello"));
            c.send(OK);
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("POST / HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello");
        assert_eq!(client.expect_response("POST").text(), "ok");
        client.expect_end();
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn content_of_head_is_read_and_the_session_goes_on() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            for method in ["HEAD", "DELETE", "GET"] {
                let request = c.expect_request();
                assert_eq!((request.method.as_str(), request.text().as_str()), (method, "hello"));
                c.send("HTTP/1.1 204 No Content\r\n\r\n");
            }
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        for method in ["HEAD", "DELETE", "GET"] {
            client
                .send(format!("{method} / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"));
            assert_eq!(client.expect_response(method).status, 204);
        }
        drop(client);
        drop(proxy);
        origin.finish();
    });
}

#[test]
fn an_interim_response_in_the_middle_of_content_gives_no_side_more_time_than_it_has() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.expect_bytes("hello");
            c.send("HTTP/1.1 102 Processing\r\n\r\n");
            assert_eq!(c.expect_closed(), b"");
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello");
        assert_eq!(client.expect_response("POST").status, 102);
        proxy.pass(31);
        assert_eq!(client.expect_response("POST").status, 408);
        client.expect_end();
        drop(client);
        drop(proxy);
        origin.finish();
    });
}
