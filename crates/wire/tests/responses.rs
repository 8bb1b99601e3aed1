//! Response heads: what is read, repaired and refused, by section of the RFCs.

use wire::Refusal::{
    BadContentLength, BadFieldName, BadStatusLine, BareCr, ChunkedNotLast,
    ConflictingContentLengths, ControlByte, HeadTooLarge, LeadingSpace, LineTooLong, NulByte,
    TooManyFields, UnknownTransferEncoding, UnsupportedVersion,
};
use wire::{
    Decoded, Framing, HeadLimits, Known, Method, Refusal, ResponseHead, ResponseSpans,
    decode_response,
};

fn with_head_to<T>(to: Method, bytes: &str, check: impl FnOnce(ResponseHead<'_>) -> T) -> T {
    let mut spans = ResponseSpans::default();
    let mut repaired = bytes.as_bytes().to_vec();
    match decode_response(&mut repaired, &mut spans, to, &HeadLimits::default()) {
        Ok(Decoded::Complete { .. }) => check(spans.head(&repaired)),
        other => panic!("{bytes:?} gave {other:?}"),
    }
}

fn with_head<T>(bytes: &str, check: impl FnOnce(ResponseHead<'_>) -> T) -> T {
    with_head_to(Method::Get, bytes, check)
}

fn refusal(bytes: &str) -> Option<Refusal> {
    let mut spans = ResponseSpans::default();
    let mut bytes = bytes.as_bytes().to_vec();
    decode_response(&mut bytes, &mut spans, Method::Get, &HeadLimits::default()).err()
}

#[test]
fn rfc_9112_4_status_line() {
    for (line, status, reason) in [
        ("HTTP/1.1 200 OK", 200, "OK"),
        ("HTTP/1.1 200 ", 200, ""),
        ("HTTP/1.1 200", 200, ""),
        ("HTTP/1.0 404 Not  Found ", 404, "Not  Found "),
        ("HTTP/1.1 404 trouv\u{e9}", 404, "trouv\u{e9}"),
        ("HTTP/1.1 999 Odd", 999, "Odd"),
        ("HTTP/1.5 200 OK", 200, "OK"),
    ] {
        with_head(&format!("{line}\r\n\r\n"), |head| {
            assert_eq!((head.status(), head.reason()), (status, reason.as_bytes()), "{line}");
        });
    }
    for (line, expected) in [
        ("HTTP/1.1 099 Low", BadStatusLine),
        ("HTTP/1.1 20 OK", BadStatusLine),
        ("HTTP/1.1 2000 OK", BadStatusLine),
        ("HTTP/1.1 20x OK", BadStatusLine),
        ("HTTP/1.1  200 OK", BadStatusLine),
        ("HTTP/1.1", BadStatusLine),
        ("HTTP/1.1\t200 OK", BadStatusLine),
        ("http/1.1 200 OK", BadStatusLine),
        ("ICY 200 OK", BadStatusLine),
        ("HTTP/0.9 200 OK", BadStatusLine),
        ("HTTP/2.0 200 OK", UnsupportedVersion),
        ("HTTP/1.1 200 O\0K", NulByte),
        ("HTTP/1.1 200 O\rK", BareCr),
        ("HTTP/1.1 200 O\u{1}K", ControlByte),
    ] {
        assert_eq!(refusal(&format!("{line}\r\n\r\n")), Some(expected), "{line:?}");
    }
}

#[test]
fn another_protocol_is_refused_before_its_line_ends() {
    assert_eq!(refusal("SSH-2.0"), Some(BadStatusLine));
    assert_eq!(refusal("H"), None);
    assert_eq!(refusal("\r\nHTTP/1.1 200 OK\r\n\r\n"), Some(BadStatusLine));
}

#[test]
fn rfc_6585_5_limits() {
    let limits = HeadLimits { head_bytes: 60, line_bytes: 30, fields: 2 };
    for (bytes, expected) in [
        ("HTTP/1.1 200 aaaaaaaaaaaaaaaaaaaaaaaaaa", LineTooLong),
        ("HTTP/1.1 200\r\nA: aaaaaaaaaaaaaaaaaaaaaaaaaaaaa", LineTooLong),
        ("HTTP/1.1 200\r\nA: b\r\nA: b\r\nA: b\r\n", TooManyFields),
        ("HTTP/1.1 200 aaaaaaaaaaaaaaa\r\nA: aaaaaaaaaaaaaaaaaaaa\r\nA: bbbb", HeadTooLarge),
    ] {
        let mut spans = ResponseSpans::default();
        let mut copy = bytes.as_bytes().to_vec();
        let decoded = decode_response(&mut copy, &mut spans, Method::Get, &limits);
        assert_eq!(decoded, Err(expected), "{bytes:?}");
    }
}

#[test]
fn rfc_9112_faults_that_are_repaired() {
    let value = |head: ResponseHead<'_>| {
        let value = head.fields().all_named(b"A").next().map(<[u8]>::to_vec);
        (value.map(|value| String::from_utf8(value).unwrap()), head.repairs())
    };
    for (section, head, expected, repairs) in [
        ("none", "HTTP/1.1 200 OK\r\nA: b\r\n\r\n", "b", 0),
        ("2.2 LF alone", "HTTP/1.1 200 OK\nA: b\n\n", "b", 3),
        ("2.2 mixed ends", "HTTP/1.1 200 OK\r\nA: b\n\r\n", "b", 1),
        ("5.1 space before the colon", "HTTP/1.1 200 OK\r\nA \t : b\r\n\r\n", "b", 1),
        ("5.2 a fold", "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", "b   c", 1),
        ("5.2 a fold without CR", "HTTP/1.1 200 OK\r\nA: b\n\tc\r\n\r\n", "b \tc", 2),
        ("5.2 two folds", "HTTP/1.1 200 OK\r\nA:\r\n b\r\n\tc: d\r\n\r\n", "b  \tc: d", 2),
        ("5.2 an empty fold", "HTTP/1.1 200 OK\r\nA: b\r\n \r\n\r\n", "b", 1),
        ("all", "HTTP/1.1 200 OK\nC : d\r\nA : b\r\n c\r\n\r\n", "b   c", 4),
    ] {
        assert_eq!(with_head(head, value), (Some(expected.to_owned()), repairs), "{section}");
    }
}

#[test]
fn rfc_9112_faults_that_are_refused() {
    for (lines, expected) in [
        (" A: b\r\n", LeadingSpace),
        ("A: b\rc\r\n", BareCr),
        ("A: b\r\r\n", BareCr),
        ("A: \0\r\n", NulByte),
        ("A: b\r\n \0\r\n", NulByte),
        ("A: \u{1b}[2J\r\n", ControlByte),
        ("A b: c\r\n", BadFieldName),
        ("A\r\n", BadFieldName),
        (": b\r\n", BadFieldName),
        ("Content-Length: x\r\n", BadContentLength),
        ("Content-Length: 4\r\nContent-Length : 5\r\n", ConflictingContentLengths),
        ("Transfer-Encoding: gzip, chunked\r\n", UnknownTransferEncoding),
        ("Transfer-Encoding: chunked, gzip\r\n", ChunkedNotLast),
    ] {
        let bytes = format!("HTTP/1.1 200 OK\r\n{lines}\r\n");
        assert_eq!(refusal(&bytes), Some(expected), "{lines:?}");
    }
}

#[test]
fn rfc_9112_6_3_framing() {
    use Framing::{Chunked, Length, None, UntilClose};
    use Method::{Connect, Get, Head, Post};
    let length = "Content-Length: 5\r\n";
    let copies = "Content-Length: 5, 5\r\nContent-Length: 5\r\n";
    let coded = "Transfer-Encoding: chunked\r\n";
    let both = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n";
    let unknown = "Transfer-Encoding: gzip\r\nContent-Length: x\r\n";
    // To, status, fields; framing, may the connection be used again, is the length ambiguous.
    for (to, status, lines, framing, keep_alive, ambiguous) in [
        (Get, 200, length, Length(5), true, false),
        (Get, 200, copies, Length(5), true, false),
        (Get, 200, coded, Chunked, true, false),
        (Get, 200, both, Chunked, false, true),
        (Get, 200, "", UntilClose, false, false),
        (Post, 404, "", UntilClose, false, false),
        (Head, 200, length, None, true, false),
        (Head, 200, coded, None, true, false),
        (Head, 200, "", None, true, false),
        (Head, 200, both, None, false, true),
        (Get, 304, length, None, true, false),
        (Get, 304, coded, None, true, false),
        (Get, 204, "", None, true, false),
        (Get, 204, "Content-Length: 0\r\n", None, true, false),
        (Get, 204, length, None, false, false),
        (Get, 204, coded, None, false, false),
        (Get, 100, "", None, true, false),
        (Get, 103, coded, None, false, false),
        (Get, 205, length, Length(5), true, false),
        (Connect, 200, "", None, true, false),
        (Connect, 299, unknown, None, true, false),
        (Connect, 407, length, Length(5), true, false),
    ] {
        let bytes = format!("HTTP/1.1 {status} x\r\n{lines}\r\n");
        with_head_to(to, &bytes, |head| {
            let got = (head.framing(), head.keep_alive(), head.ambiguous_length());
            assert_eq!(got, (framing, keep_alive, ambiguous), "{to:?} {status} {lines:?}");
        });
    }
}

#[test]
fn rfc_9110_8_6_declared_length() {
    for (to, status, lines, expected) in [
        (Method::Head, 200, "Content-Length: 5, 5\r\n", Some(5)),
        (Method::Get, 304, "Content-Length: 7\r\n", Some(7)),
        (Method::Get, 200, "", None),
        (Method::Connect, 200, "Content-Length: 5\r\n", None),
    ] {
        let bytes = format!("HTTP/1.1 {status} x\r\n{lines}\r\n");
        with_head_to(to, &bytes, |head| assert_eq!(head.declared_length(), expected, "{bytes:?}"));
    }
}

#[test]
fn rfc_9112_6_1_transfer_encoding_from_http_1_0() {
    let bytes = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n";
    with_head(bytes, |head| {
        assert_eq!(head.framing(), Framing::Chunked);
        assert!(head.ambiguous_length());
        assert!(!head.keep_alive());
    });
}

#[test]
fn rfc_9112_9_3_keep_alive() {
    for (version, connection, expected) in [
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.0", "", false),
        ("1.0", "Connection: keep-alive\r\n", true),
    ] {
        let bytes = format!("HTTP/{version} 200 OK\r\nContent-Length: 0\r\n{connection}\r\n");
        assert_eq!(with_head(&bytes, |head| head.keep_alive()), expected, "{bytes:?}");
    }
}

#[test]
fn rfc_9110_15_2_interim_responses() {
    for (status, expected) in [(100, true), (103, true), (199, true), (200, false), (304, false)] {
        let bytes = format!("HTTP/1.1 {status} x\r\n\r\n");
        assert_eq!(with_head(&bytes, |head| head.is_interim()), expected, "{status}");
    }
}

#[test]
fn a_head_cut_anywhere_is_partial_and_untouched() {
    let whole = b"HTTP/1.1 200 OK\r\nA : b\r\n c\nContent-Length: 3\r\n\r\n";
    for len in 0..whole.len() {
        let mut bytes = whole.to_vec();
        let mut spans = ResponseSpans::default();
        let limits = HeadLimits::default();
        let partial = decode_response(&mut bytes[..len], &mut spans, Method::Get, &limits);
        assert_eq!(partial, Ok(Decoded::Partial));
        assert_eq!(bytes, whole);
        let decoded = decode_response(&mut bytes, &mut spans, Method::Get, &limits);
        assert_eq!(decoded, Ok(Decoded::Complete { head_len: whole.len() }));
        let head = spans.head(&bytes);
        assert_eq!(head.fields().first(Known::ContentLength), Some(b"3".as_slice()));
        assert_eq!(head.repairs(), 3, "cut at {len}");
    }
}
