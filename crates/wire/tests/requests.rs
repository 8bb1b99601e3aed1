//! Request heads: what is read from them and what is refused, by section of the RFCs.

use wire::Refusal::{
    BadContentLength, BadFieldName, BadHost, BadMethod, BadTarget, BadTransferEncoding, BadVersion,
    BareCr, BareLf, ChunkedNotLast, ConflictingContentLengths, ConnectWithContent, ControlByte,
    HeadTooLarge, LeadingSpace, LengthWithTransferEncoding, LineTooLong, MissingHost, NulByte,
    ObsFold, RequestLineTooLong, SeveralHosts, SpaceBeforeColon, TooManyFields,
    TransferEncodingOn10, UnknownTransferEncoding, UnsupportedVersion,
};
use wire::{
    Authority, Decoded, Framing, HeadLimits, Known, Method, Refusal, RequestHead, RequestSpans,
    Target, Version, decode_request,
};

/// Calls `check` with the head that `bytes` must be.
fn with_head<T>(bytes: &[u8], check: impl FnOnce(RequestHead<'_>) -> T) -> T {
    let mut spans = RequestSpans::default();
    match decode_request(bytes, &mut spans, &HeadLimits::default()) {
        Ok(Decoded::Complete { .. }) => check(spans.head(bytes)),
        other => panic!("{} gave {other:?}", bytes.escape_ascii()),
    }
}

fn refusal(bytes: &[u8]) -> Option<Refusal> {
    decode_request(bytes, &mut RequestSpans::default(), &HeadLimits::default()).err()
}

/// A request with these lines between Host and the empty line.
fn with_lines(start: &str, lines: &str) -> Vec<u8> {
    format!("{start} HTTP/1.1\r\nHost: a.example\r\n{lines}\r\n").into_bytes()
}

fn assert_refused(cases: &[(&[u8], Refusal)]) {
    for (bytes, expected) in cases {
        assert_eq!(refusal(bytes), Some(*expected), "{}", bytes.escape_ascii());
    }
}

#[test]
fn rfc_9112_2_2_line_ends() {
    assert_refused(&[
        (b"GET / HTTP/1.1\n", BareLf),
        (b"GET / HTTP/1.1\r\nHost: a\n\r\n", BareLf),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\n", BareLf),
        (b"\nGET / HTTP/1.1\r\n", BareLf),
        (b"GET / HTTP/1.1\r\nHost: a\r\nA: b\rc\r\n\r\n", BareCr),
        (b"GET / HTTP/1.1\r\r\nHost: a\r\n\r\n", BareCr),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\r\n\r\n", BareCr),
        (b"GET / HTTP/1.1\r\n Host: a\r\n\r\n", LeadingSpace),
        (b"GET / HTTP/1.1\r\n\tHost: a\r\n\r\n", LeadingSpace),
    ]);
}

#[test]
fn rfc_9112_2_2_one_empty_line_before_the_request_is_skipped() {
    let bytes = b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\nrest";
    let mut spans = RequestSpans::default();
    let decoded = decode_request(bytes, &mut spans, &HeadLimits::default());
    assert_eq!(decoded, Ok(Decoded::Complete { head_len: bytes.len() - 4 }));
    let head = spans.head(bytes);
    assert_eq!(head.bytes(), &bytes[2..bytes.len() - 4]);
    assert_eq!(head.fields().first(Known::Host), Some(b"a".as_slice()));
    assert_eq!(refusal(b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), Some(BadMethod));
}

#[test]
fn rfc_9112_3_request_line() {
    assert_refused(&[
        (b"GET\r\n\r\n", BadMethod),
        (b"G@T / HTTP/1.1\r\n\r\n", BadMethod),
        (b"\x16\x03\x01", BadMethod),
        (b" GET / HTTP/1.1\r\n\r\n", BadMethod),
        (b"GET /\r\n\r\n", BadVersion),
        (b"GET / \r\n\r\n", BadVersion),
        (b"GET / HTTP/1.1 \r\n\r\n", BadVersion),
        (b"GET / http/1.1\r\n\r\n", BadVersion),
        (b"GET / HTTP/11\r\n\r\n", BadVersion),
        (b"GET / HTTP/0.9\r\n\r\n", BadVersion),
        (b"GET / HTTP/1.10\r\n\r\n", BadVersion),
        (b"GET / HTTP/2.0\r\n\r\n", UnsupportedVersion),
        (b"PRI * HTTP/2.0\r\n\r\n", UnsupportedVersion),
        (b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", BadTarget),
        (b"GET /  HTTP/1.1\r\nHost: a\r\n\r\n", BadTarget),
        (b"GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", BadMethod),
        (b"GET /\tHTTP/1.1\r\nHost: a\r\n\r\n", BadVersion),
        (b"GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n", NulByte),
        (b"GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n", ControlByte),
    ]);
}

#[test]
fn rfc_9110_2_5_later_minor_versions_are_1_1() {
    for (line, version) in [
        ("GET / HTTP/1.0", Version::Http10),
        ("GET / HTTP/1.1", Version::Http11),
        ("GET / HTTP/1.9", Version::Http11),
    ] {
        let bytes = format!("{line}\r\nHost: a\r\n\r\n");
        assert_eq!(with_head(bytes.as_bytes(), |head| head.version()), version, "{line}");
    }
}

#[test]
fn rfc_9110_9_methods_are_case_sensitive() {
    for (name, method, safe, idempotent) in [
        ("GET", Method::Get, true, true),
        ("HEAD", Method::Head, true, true),
        ("OPTIONS", Method::Options, true, true),
        ("TRACE", Method::Trace, true, true),
        ("PUT", Method::Put, false, true),
        ("DELETE", Method::Delete, false, true),
        ("POST", Method::Post, false, false),
        ("PATCH", Method::Patch, false, false),
        ("get", Method::Other, false, false),
        ("M-SEARCH", Method::Other, false, false),
    ] {
        with_head(&with_lines(&format!("{name} /"), ""), |head| {
            assert_eq!(head.method(), method, "{name}");
            assert_eq!(head.method_bytes(), name.as_bytes());
            assert_eq!((method.is_safe(), method.is_idempotent()), (safe, idempotent), "{name}");
        });
    }
}

#[test]
fn rfc_9112_3_2_target_forms() {
    let here = Some(Authority { host: b"a.example".as_slice(), port: None });
    let other = Authority { host: b"b.example".as_slice(), port: Some(8080) };
    let cases: &[(&str, &str, Option<Authority<'_>>)] = &[
        ("GET /", "/", here),
        ("GET //x/../y?a=b?c", "//x/../y?a=b?c", here),
        ("GET http://b.example:8080/p?q", "/p?q", Some(other)),
        ("GET http://b.example:8080", "/", Some(other)),
        ("GET http://b.example:8080?q", "?q", Some(other)),
        ("GET ftp://b.example:8080/", "/", Some(other)),
        ("OPTIONS *", "*", here),
        ("OPTIONS http://b.example:8080", "*", Some(other)),
        ("OPTIONS http://b.example:8080/", "/", Some(other)),
        ("CONNECT b.example:8080", "", Some(other)),
    ];
    for (line, path_query, authority) in cases {
        with_head(&with_lines(line, ""), |head| {
            assert_eq!(head.path_query(), path_query.as_bytes(), "{line}");
            assert_eq!(head.authority(), *authority, "{line}");
        });
    }
    with_head(&with_lines("GET HTTP://b.example:8080/p", ""), |head| {
        let scheme = b"HTTP".as_slice();
        let target = Target::Absolute { scheme, authority: other, path_query: b"/p" };
        assert_eq!(head.target(), target);
        assert_eq!(head.fields().first(Known::Host), Some(b"a.example".as_slice()));
    });
}

#[test]
fn rfc_9112_3_2_targets_refused() {
    for line in [
        "GET *",
        "OPTIONS /*#f",
        "GET a.example:80",
        "GET path",
        "GET ?query",
        "GET http:",
        "GET http:/a/",
        "GET http://",
        "GET http:///path",
        "GET http://user@a/",
        "GET http://user:word@a/",
        "GET http://a:0/",
        "GET http://a:65536/",
        "GET http://a:8o/",
        "GET 1http://a/",
        "GET ://a/",
        "CONNECT a.example",
        "CONNECT a.example:",
        "CONNECT :443",
        "CONNECT /",
        "CONNECT *",
        "CONNECT http://a.example:443/",
        "CONNECT u@a.example:443",
        "GET /a#fragment",
        "GET /?a#fragment",
        "GET /<",
        "GET />",
        "GET /\"",
        "GET /\\",
        "GET /{}",
        "GET /^",
        "GET /`",
        "GET /?<",
        "GET /?\"",
        "GET /caf\u{e9}",
        "GET /?caf\u{e9}",
        "GET /\u{7f}",
        "GET /%",
        "GET /%4",
        "GET /%zz",
        "GET /%%41",
    ] {
        let refusal = refusal(&with_lines(line, ""));
        assert!(matches!(refusal, Some(BadTarget | ControlByte)), "{line}: {refusal:?}");
    }
}

#[test]
fn rfc_3986_targets_that_browsers_send_are_accepted() {
    for target in ["/[slug].js", "/a|b", "/?a[]=1&b={x|y}^`\\", "/?q=100%", "/a;b=c,d@e:f!$&'()*+~"]
    {
        with_head(&with_lines(&format!("GET {target}"), ""), |head| {
            assert_eq!(head.request_target(), target.as_bytes());
        });
    }
}

#[test]
fn rfc_9112_3_2_host() {
    assert_refused(&[
        (b"GET / HTTP/1.1\r\n\r\n", MissingHost),
        (b"GET http://a/ HTTP/1.1\r\n\r\n", MissingHost),
        (b"GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", SeveralHosts),
        (b"GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", SeveralHosts),
        (b"GET / HTTP/1.1\r\nHost:\r\n\r\n", BadHost),
        (b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", BadHost),
        (b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", BadHost),
        (b"GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", BadHost),
        (b"GET / HTTP/1.1\r\nHost: a:\t80\r\n\r\n", BadHost),
        (b"GET / HTTP/1.1\r\nHost: a:99999\r\n\r\n", BadHost),
        (b"GET / HTTP/1.1\r\nHost: a:80:80\r\n\r\n", BadHost),
        (b"GET / HTTP/1.1\r\nHost: ::1\r\n\r\n", BadHost),
        (b"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", BadHost),
        (b"GET / HTTP/1.1\r\nHost: [::1]x\r\n\r\n", BadHost),
        (b"GET / HTTP/1.1\r\nHost: [::g]\r\n\r\n", BadHost),
        (b"GET / HTTP/1.1\r\nHost: [v1.a]\r\n\r\n", BadHost),
        (b"GET http://a/ HTTP/1.1\r\nHost: b c\r\n\r\n", BadHost),
    ]);
    for (value, host, port) in [
        ("a.example", "a.example", None),
        ("a_b.example.", "a_b.example.", None),
        ("A:", "A", None),
        ("127.0.0.1:0080", "127.0.0.1", Some(80)),
        ("[2001:DB8::1]:65535", "[2001:DB8::1]", Some(65535)),
    ] {
        let bytes = format!("GET / HTTP/1.1\r\nHost: {value}\r\n\r\n");
        let expected = Authority { host: host.as_bytes(), port };
        with_head(bytes.as_bytes(), |head| assert_eq!(head.authority(), Some(expected)));
    }
    with_head(b"GET / HTTP/1.0\r\n\r\n", |head| assert_eq!(head.authority(), None));
}

#[test]
fn rfc_9112_5_field_lines() {
    let cases: &[(&str, Refusal)] = &[
        ("A : b\r\n", SpaceBeforeColon),
        ("A\t: b\r\n", SpaceBeforeColon),
        ("A: b\r\n c\r\n", ObsFold),
        ("A: b\r\n\tc\r\n", ObsFold),
        ("A: b\r\n \r\n", ObsFold),
        ("A\r\n", BadFieldName),
        (": b\r\n", BadFieldName),
        ("A b: c\r\n", BadFieldName),
        ("A(b): c\r\n", BadFieldName),
        ("\u{e9}: b\r\n", BadFieldName),
        ("A: b\0c\r\n", NulByte),
        ("A\0: b\r\n", NulByte),
        ("A: \u{1}\r\n", ControlByte),
        ("A: \u{7f}\r\n", ControlByte),
        ("A: \u{b}\r\n", ControlByte),
        ("Transfer-Encoding:\u{b}chunked\r\n", ControlByte),
    ];
    for (lines, expected) in cases {
        assert_eq!(refusal(&with_lines("GET /", lines)), Some(*expected), "{lines:?}");
    }
    with_head(&with_lines("GET /", "A:\t b\tc \u{e9} \t\r\nB:\r\nC:  \r\n"), |head| {
        let values: Vec<_> = head.fields().iter().map(|field| field.value).collect();
        let expected: [&[u8]; 4] = [b"a.example", "b\tc \u{e9}".as_bytes(), b"", b""];
        assert_eq!(values, expected);
    });
}

#[test]
fn rfc_9110_8_6_content_length() {
    for (lines, expected) in [
        ("", Ok(Framing::None)),
        ("Content-Length: 0\r\n", Ok(Framing::Length(0))),
        ("Content-Length: 5\r\ncontent-length: 05\r\n", Ok(Framing::Length(5))),
        ("Content-Length: 5 ,\t5\r\n", Ok(Framing::Length(5))),
        ("Content-Length: 9223372036854775807\r\n", Ok(Framing::Length(i64::MAX as u64))),
        ("Content-Length: 9223372036854775808\r\n", Err(BadContentLength)),
        ("Content-Length: 99999999999999999999999\r\n", Err(BadContentLength)),
        ("Content-Length:\r\n", Err(BadContentLength)),
        ("Content-Length: +5\r\n", Err(BadContentLength)),
        ("Content-Length: -5\r\n", Err(BadContentLength)),
        ("Content-Length: 5 5\r\n", Err(BadContentLength)),
        ("Content-Length: 0x5\r\n", Err(BadContentLength)),
        ("Content-Length: 5,\r\n", Err(BadContentLength)),
        ("Content-Length: \"5\"\r\n", Err(BadContentLength)),
        ("Content-Length: 5, 6\r\n", Err(ConflictingContentLengths)),
        ("Content-Length: 5\r\nContent-Length: 6\r\n", Err(ConflictingContentLengths)),
    ] {
        assert_framing("POST /", lines, expected);
    }
}

#[test]
fn rfc_9112_6_1_transfer_encoding() {
    for (lines, expected) in [
        ("Transfer-Encoding: chunked\r\n", Ok(Framing::Chunked)),
        ("transfer-encoding: CHUNKED\r\n", Ok(Framing::Chunked)),
        ("Transfer-Encoding: , chunked\r\n", Ok(Framing::Chunked)),
        ("Transfer-Encoding:\r\n", Err(BadTransferEncoding)),
        ("Transfer-Encoding: ,\r\n", Err(BadTransferEncoding)),
        ("Transfer-Encoding: chunked;q=1\r\n", Err(BadTransferEncoding)),
        ("Transfer-Encoding: gzip\r\n", Err(UnknownTransferEncoding)),
        ("Transfer-Encoding: gzip, chunked\r\n", Err(UnknownTransferEncoding)),
        ("Transfer-Encoding: xchunked\r\n", Err(UnknownTransferEncoding)),
        ("Transfer-Encoding: \"chunked\"\r\n", Err(UnknownTransferEncoding)),
        ("Transfer-Encoding: identity\r\n", Err(UnknownTransferEncoding)),
        ("Transfer-Encoding: chunked, gzip\r\n", Err(ChunkedNotLast)),
        ("Transfer-Encoding: chunked, chunked\r\n", Err(ChunkedNotLast)),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", Err(ChunkedNotLast)),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", Err(LengthWithTransferEncoding)),
    ] {
        assert_framing("POST /", lines, expected);
    }
    let old = b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(refusal(old), Some(TransferEncodingOn10));
}

#[test]
fn rfc_9110_9_3_6_connect_has_no_content() {
    for (lines, expected) in [
        ("", Ok(Framing::None)),
        ("Content-Length: 0\r\n", Ok(Framing::None)),
        ("Content-Length: 1\r\n", Err(ConnectWithContent)),
        ("Transfer-Encoding: chunked\r\n", Err(ConnectWithContent)),
    ] {
        assert_framing("CONNECT a.example:443", lines, expected);
    }
}

fn assert_framing(start: &str, lines: &str, expected: Result<Framing, Refusal>) {
    let bytes = with_lines(start, lines);
    let framing = match refusal(&bytes) {
        Some(refusal) => Err(refusal),
        None => Ok(with_head(&bytes, |head| head.framing())),
    };
    assert_eq!(framing, expected, "{lines:?}");
}

#[test]
fn rfc_9112_9_3_keep_alive() {
    for (version, connection, expected) in [
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "Connection: Upgrade\r\nConnection: x, CLOSE\r\n", false),
        ("1.1", "Connection: closed\r\n", true),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.0", "Connection: keep-alive, close\r\n", false),
    ] {
        let bytes = format!("GET / HTTP/{version}\r\nHost: a\r\n{connection}\r\n");
        assert_eq!(with_head(bytes.as_bytes(), |head| head.keep_alive()), expected, "{bytes:?}");
    }
}

#[test]
fn rfc_9110_10_1_1_expect() {
    for (version, expect, expected) in [
        ("1.1", "Expect: 100-Continue\r\n", true),
        ("1.1", "Expect: x\r\n", false),
        ("1.1", "", false),
        ("1.0", "Expect: 100-continue\r\n", false),
    ] {
        let bytes = format!("GET / HTTP/{version}\r\nHost: a\r\n{expect}\r\n");
        assert_eq!(with_head(bytes.as_bytes(), |head| head.expects_continue()), expected);
    }
}

#[test]
fn rfc_6585_5_limits() {
    let limits = HeadLimits { head_bytes: 120, line_bytes: 40, fields: 3 };
    let decode =
        |bytes: &str| decode_request(bytes.as_bytes(), &mut RequestSpans::default(), &limits).err();
    let line_fits = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(24));
    assert_eq!(decode(&line_fits), None);
    assert_eq!(decode(&line_fits.replace("/a", "/aa")), Some(RequestLineTooLong));
    let fields_fit = "GET / HTTP/1.1\r\nHost: a\r\nA: b\r\nA: b\r\n\r\n";
    assert_eq!(decode(fields_fit), None);
    assert_eq!(decode(&fields_fit.replacen("A", "C: d\r\nA", 1)), Some(TooManyFields));
    let long = format!("GET / HTTP/1.1\r\nHost: a\r\nA: {}", "b".repeat(40));
    assert_eq!(decode(&long), Some(LineTooLong));
    let line = format!("A: {}\r\n", "b".repeat(35));
    let large = format!("GET / HTTP/1.1\r\n{line}{line}{line}");
    assert_eq!(decode(&large), Some(HeadTooLarge));
    assert_eq!([RequestLineTooLong.status(), LineTooLong.status()], [414, 431]);
    assert_eq!([TooManyFields.status(), HeadTooLarge.status()], [431, 431]);
}

#[test]
fn limits_above_128_fields_are_128() {
    let limits = HeadLimits { fields: usize::MAX, ..HeadLimits::default() };
    let with_fields = |count: usize| {
        let lines = "A: b\r\n".repeat(count - 1);
        let bytes = with_lines("GET /", &lines);
        decode_request(&bytes, &mut RequestSpans::default(), &limits)
    };
    assert!(with_fields(128).is_ok());
    assert_eq!(with_fields(129), Err(TooManyFields));
    for count in [16, 17] {
        assert!(with_fields(count).is_ok(), "{count}");
    }
}

#[test]
fn a_head_cut_anywhere_is_partial() {
    let bytes = with_lines("GET /", "A: b\r\nConnection: close\r\n");
    for len in 0..bytes.len() {
        let mut spans = RequestSpans::default();
        let limits = HeadLimits::default();
        assert_eq!(decode_request(&bytes[..len], &mut spans, &limits), Ok(Decoded::Partial));
        let head_len = bytes.len();
        let resumed = decode_request(&bytes, &mut spans, &limits);
        assert_eq!(resumed, Ok(Decoded::Complete { head_len }), "cut at {len}");
    }
}

#[test]
fn pipelined_heads_are_read_with_the_same_spans() {
    let mut bytes = with_lines("GET /1", "A: b\r\n");
    bytes.extend_from_slice(&with_lines("GET /2", "C: d\r\n"));
    let mut spans = RequestSpans::default();
    let mut rest = bytes.as_slice();
    for target in ["/1", "/2"] {
        let decoded = decode_request(rest, &mut spans, &HeadLimits::default());
        let Ok(Decoded::Complete { head_len }) = decoded else { panic!("{decoded:?}") };
        let head = spans.head(rest);
        assert_eq!((head.request_target(), head.fields().len()), (target.as_bytes(), 2));
        rest = &rest[head_len..];
    }
    assert!(rest.is_empty());
}

#[test]
fn spans_stay_good_for_a_copy_of_the_bytes() {
    let bytes = with_lines("GET http://b.example/p", "Accept: text/html\r\n");
    let mut spans = RequestSpans::default();
    decode_request(&bytes, &mut spans, &HeadLimits::default()).unwrap();
    let moved = bytes.clone();
    drop(bytes);
    let head = spans.head(&moved);
    assert_eq!(head.path_query(), b"/p");
    assert_eq!(head.fields().first(Known::Accept), Some(b"text/html".as_slice()));
}
