//! Requests that are refused: the answer, the close, and that nothing behind them is ever read as
//! a request. RFC 9112 sections 2, 3, 5 and 6; RFC 6585 section 5.

use sepia::base::{Counter, Gauge, Reason};
use testkit::script::{ScriptedClient, ScriptedOrigin};

use super::bed::{Running, each_path};

/// A request that would be answered if it were ever read as one.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: example.org\r\n\r\n";

/// Bytes that a client goes on sending after it was refused.
const FLOOD_BYTES: usize = 1 << 20;

/// Sends `bytes` with a request behind them: the one answer is the refusal, then the end comes.
fn expect_refused(proxy: &Running, bytes: &[u8], reason: Reason) {
    let before = proxy.reasons(reason);
    let mut client = proxy.client();
    client.send([bytes, SMUGGLED.as_bytes()].concat());
    expect_refusal(&mut client, reason);
    assert_eq!(proxy.reasons(reason), before + 1, "{reason}");
}

fn expect_refusal(client: &mut ScriptedClient, reason: Reason) {
    let answer = client.expect_response("GET");
    assert_eq!(answer.status, reason.status(), "{reason}: {}", answer.text());
    assert_eq!(answer.field("connection"), Some("close"), "{reason}");
    let cache_status = format!("sepia; detail={}", reason.token());
    assert_eq!(answer.field("cache-status"), Some(cache_status.as_str()));
    assert_eq!(answer.field("proxy-status"), Some("sepia; error=http_request_error"));
    assert!(answer.text().contains(reason.sentence()), "{reason}: {}", answer.text());
    client.expect_end();
}

/// A gateway whose origin must never hear anything.
fn each_unheard(case: impl Fn(&Running)) {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let proxy = bed.gateway(&origin);
        case(&proxy);
        drop(proxy);
        origin.finish();
    });
}

/// A table of refused bytes.
fn expect_all_refused(rows: &[(&[u8], Reason)]) {
    each_unheard(|proxy| {
        for (bytes, reason) in rows {
            expect_refused(proxy, bytes, *reason);
        }
    });
}

#[test]
fn rfc9112_2_2_lines_that_end_or_begin_wrongly() {
    expect_all_refused(&[
        (b"GET / HTTP/1.1\nHost: a\r\n\r\n", Reason::BareLf),
        (b"GET / HTTP/1.1\r\nHost: a\n\r\n", Reason::BareLf),
        (b"GET / HTTP/1.1\r\nHost: a\r\nA: b\rc\r\n\r\n", Reason::BareCr),
        (b"GET / HTTP/1.1\r\nHost: a\r\nA: b\0c\r\n\r\n", Reason::NulByte),
        (b"GET / HTTP/1.1\r\nHost: a\r\nA: b\x07c\r\n\r\n", Reason::ControlByte),
        (b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", Reason::SpaceBeforeColon),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\tfolded: b\r\n\r\n", Reason::ObsFold),
        (b"GET / HTTP/1.1\r\n Host: a\r\n\r\n", Reason::LeadingSpace),
        (b"GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", Reason::BadFieldName),
        (b"GET / HTTP/1.1\r\nHost: a\r\n: nameless\r\n\r\n", Reason::BadFieldName),
        (b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", Reason::BadMethod),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", Reason::BadMethod),
    ]);
}

#[test]
fn rfc9112_3_request_lines_that_are_none() {
    expect_all_refused(&[
        (b"GET\r\n\r\n", Reason::BadMethod),
        (b"G@T / HTTP/1.1\r\nHost: a\r\n\r\n", Reason::BadMethod),
        (b"GET /\r\n\r\n", Reason::BadVersion),
        (b"GET / http/1.1\r\nHost: a\r\n\r\n", Reason::BadVersion),
        (b"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", Reason::BadVersion),
        (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", Reason::UnsupportedVersion),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Reason::UnsupportedVersion),
        (b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", Reason::BadTarget),
        (b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", Reason::BadTarget),
        (b"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", Reason::BadTarget),
        (b"GET a HTTP/1.1\r\nHost: a\r\n\r\n", Reason::BadTarget),
        (b"GET * HTTP/1.1\r\nHost: a\r\n\r\n", Reason::BadTarget),
        (b"GET http:///a HTTP/1.1\r\nHost: a\r\n\r\n", Reason::BadTarget),
        (b"GET http://me@a/ HTTP/1.1\r\nHost: a\r\n\r\n", Reason::BadTarget),
        (b"CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n", Reason::BadTarget),
        (b"CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n", Reason::BadTarget),
    ]);
}

#[test]
fn rfc9112_3_2_a_host_that_is_missing_or_double_or_none() {
    expect_all_refused(&[
        (b"GET / HTTP/1.1\r\n\r\n", Reason::MissingHost),
        (b"GET http://a/ HTTP/1.1\r\n\r\n", Reason::MissingHost),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", Reason::SeveralHosts),
        (b"GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", Reason::SeveralHosts),
        (b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", Reason::BadHost),
        (b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", Reason::BadHost),
        (b"GET / HTTP/1.1\r\nHost: a, b c\r\n\r\n", Reason::BadHost),
        (b"GET / HTTP/1.1\r\nHost: me@a\r\n\r\n", Reason::BadHost),
        (b"GET / HTTP/1.1\r\nHost: a:99999\r\n\r\n", Reason::BadHost),
        (b"GET / HTTP/1.1\r\nHost:\r\n\r\n", Reason::BadHost),
    ]);
}

#[test]
fn rfc9112_6_framing_that_two_readers_could_read_in_two_ways() {
    let head = |fields: &str| format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n").into_bytes();
    let both = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n";
    let split = "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n";
    let rows = [
        ("Content-Length: 5x\r\n", Reason::BadContentLength),
        ("Content-Length: +5\r\n", Reason::BadContentLength),
        ("Content-Length: -1\r\n", Reason::BadContentLength),
        ("Content-Length: 0x5\r\n", Reason::BadContentLength),
        ("Content-Length:\r\n", Reason::BadContentLength),
        ("Content-Length: 5,\r\n", Reason::BadContentLength),
        ("Content-Length: 9223372036854775808\r\n", Reason::BadContentLength),
        ("Content-Length: 5, 6\r\n", Reason::ConflictingContentLengths),
        ("Content-Length: 5\r\nContent-Length: 6\r\n", Reason::ConflictingContentLengths),
        (both, Reason::LengthWithTransferEncoding),
        ("Transfer-Encoding:\r\n", Reason::BadTransferEncoding),
        ("Transfer-Encoding: chunked;q=1\r\n", Reason::BadTransferEncoding),
        ("Transfer-Encoding: chunked, chunked\r\n", Reason::ChunkedNotLast),
        ("Transfer-Encoding: chunked, gzip\r\n", Reason::ChunkedNotLast),
        (split, Reason::ChunkedNotLast),
        ("Transfer-Encoding: gzip, chunked\r\n", Reason::UnknownTransferEncoding),
        ("Transfer-Encoding: xchunked\r\n", Reason::UnknownTransferEncoding),
        ("Transfer-Encoding: identity\r\n", Reason::UnknownTransferEncoding),
    ];
    each_unheard(|proxy| {
        for (fields, reason) in rows {
            expect_refused(proxy, &head(fields), reason);
        }
        let old = b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        expect_refused(proxy, old, Reason::TransferEncodingOn10);
        let connect = b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
        expect_refused(proxy, connect, Reason::ConnectWithContent);
    });
}

#[test]
fn statuses_are_those_of_rfc9110_15_5() {
    let expected = [
        (Reason::BareLf, 400),
        (Reason::LengthWithTransferEncoding, 400),
        (Reason::TransferEncodingOn10, 400),
        (Reason::UnknownTransferEncoding, 501),
        (Reason::UnsupportedVersion, 505),
        (Reason::RequestLineTooLong, 414),
        (Reason::LineTooLong, 431),
        (Reason::HeadTooLarge, 431),
        (Reason::TooManyFields, 431),
        (Reason::HeadTimeout, 408),
        (Reason::ExpectationFailed, 417),
        (Reason::LoopDetected, 508),
    ];
    for (reason, status) in expected {
        assert_eq!(reason.status(), status, "{reason}");
    }
}

#[test]
fn a_request_line_of_more_than_16_kib_is_414() {
    each_unheard(|proxy| {
        let line = format!("GET /{} HTTP/1.1\r\n", "a".repeat(16 << 10));
        expect_refused(proxy, line.as_bytes(), Reason::RequestLineTooLong);
    });
}

#[test]
fn a_field_line_of_more_than_16_kib_is_431() {
    each_unheard(|proxy| {
        let line = format!("GET / HTTP/1.1\r\nHost: a\r\nA: {}\r\n", "a".repeat(16 << 10));
        expect_refused(proxy, line.as_bytes(), Reason::LineTooLong);
    });
}

#[test]
fn ten_thousand_fields_are_431() {
    each_unheard(|proxy| {
        let fields = "A: b\r\n".repeat(10_000);
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        expect_refused(proxy, head.as_bytes(), Reason::TooManyFields);
    });
}

#[test]
fn a_head_of_one_megabyte_is_431_and_the_answer_survives() {
    each_unheard(|proxy| {
        let line = format!("A: {}\r\n", "a".repeat(9_000));
        let mut client = proxy.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n");
        for _ in 0..FLOOD_BYTES / line.len() {
            client.send(&line);
        }
        expect_refusal(&mut client, Reason::HeadTooLarge);
        assert_eq!(proxy.count(Counter::Exchanges), 1);
    });
}

#[test]
fn the_answer_survives_although_the_client_sends_a_megabyte_more() {
    each_unheard(|proxy| {
        let mut client = proxy.client();
        client.send("GET / HTTP/1.1\r\nHost : a\r\n\r\n");
        proxy.until("the refusal", |proxy| proxy.reasons(Reason::SpaceBeforeColon) == 1);
        let more = SMUGGLED.repeat(FLOOD_BYTES / SMUGGLED.len());
        assert_eq!(client.send_anyway(&more), more.len(), "all of it is taken");
        expect_refusal(&mut client, Reason::SpaceBeforeColon);
        assert_eq!(proxy.count(Counter::Exchanges), 1);
    });
}

#[test]
fn what_follows_a_refusal_later_is_no_request_either() {
    each_unheard(|proxy| {
        let mut client = proxy.client();
        client.send("GET / HTTP/1.1\nHost: a\n\n");
        expect_refusal(&mut client, Reason::BareLf);
        client.send(SMUGGLED);
        client.half_close();
        proxy.until("the close", |proxy| proxy.gauge(Gauge::SessionsOpen) == 0);
        assert_eq!(proxy.count(Counter::Exchanges), 1);
    });
}

#[test]
fn a_refused_client_that_never_closes_is_dropped_in_the_end() {
    each_unheard(|proxy| {
        let mut client = proxy.client();
        client.send("GET / HTTP/1.1\nHost: a\n\n");
        expect_refusal(&mut client, Reason::BareLf);
        assert_eq!(proxy.gauge(Gauge::SessionsOpen), 1, "it lingers");
        // Its two seconds begin after the end that the client has seen.
        proxy.until("the close", |proxy| {
            proxy.pass(1);
            proxy.gauge(Gauge::SessionsOpen) == 0
        });
    });
}

#[test]
fn a_refused_client_that_never_stops_is_dropped_after_two_megabytes() {
    each_unheard(|proxy| {
        let mut client = proxy.client();
        client.send("GET / HTTP/1.1\nHost: a\n\n");
        let flood = vec![b'x'; 64 << 20];
        assert!(client.send_anyway(&flood) < flood.len());
        proxy.until("the close", |proxy| proxy.gauge(Gauge::SessionsOpen) == 0);
        assert_eq!(proxy.count(Counter::Exchanges), 1);
    });
}

#[test]
fn a_refusal_closes_a_forward_session_too() {
    each_path(|bed| {
        let proxy = bed.forward();
        let spaced = b"GET http://a/ HTTP/1.1\r\nHost : a\r\n\r\n";
        expect_refused(&proxy, spaced, Reason::SpaceBeforeColon);
        expect_refused(&proxy, b"GET http://a/ HTTP/1.1\r\n\r\n", Reason::MissingHost);
        expect_refused(&proxy, b"CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n", Reason::BadTarget);
    });
}

#[test]
fn rfc9110_9_3_2_the_refusal_of_a_head_has_no_content() {
    let rows = [
        "HEAD / HTTP/1.1\r\n\r\n",
        "\r\nHEAD / HTTP/1.1\r\nHost: a b\r\n\r\n",
        "HEAD /\r\n\r\n",
        "HEAD / HTTP/1.1\r\nHost: a\nA: b\r\n\r\n",
    ];
    each_unheard(|proxy| {
        for bytes in rows {
            let mut client = proxy.client();
            client.send([bytes, SMUGGLED].concat());
            assert_eq!(client.expect_response("HEAD").status, 400, "{bytes}");
            client.expect_end();
        }
    });
}

#[test]
fn rfc9110_9_3_2_a_head_that_comes_too_late_gets_no_content() {
    each_unheard(|proxy| {
        let mut client = proxy.client();
        client.send("HEAD / HTTP/1.1\r\nHost");
        proxy.until("its first bytes", |proxy| proxy.count(Counter::BytesFromClients) > 0);
        proxy.pass(11);
        assert_eq!(client.expect_response("HEAD").status, 408);
        client.expect_end();
    });
}
