//! What a client asks of a stored response: conditions and ranges (RFC 9110 sections 13 and 14).

use sepia::base::Counter;
use testkit::script::ScriptedOrigin;
use testkit::site::content_at;

use super::answers::{HOST, answer, in_turn, in_turn_seeing, ok};
use super::bed::{Bed, START_DATE, each_path};

type Fields = &'static [(&'static str, &'static str)];

const CHANGED: &str = "Sun, 06 Nov 2033 08:00:00 GMT";
const LATER: &str = "Sun, 06 Nov 2033 08:00:01 GMT";
const EARLIER: &str = "Sun, 06 Nov 2033 07:59:59 GMT";

fn stored(validators: &str) -> String {
    ok(
        &format!(
            "Cache-Control: max-age=60\r\nContent-Type: text/plain\r\nVary: Accept\r\n\
             Content-Location: /here\r\n{validators}"
        ),
        "0123456789",
    )
}

fn both_validators() -> String {
    format!("ETag: \"1\"\r\nLast-Modified: {CHANGED}\r\n")
}

/// Stores one response and asks for it again with each of `asks`.
fn each_ask<T: Copy>(
    bed: Bed,
    validators: &str,
    asks: &[(Fields, T)],
    check: impl Fn(&testkit::message::Response, T, Fields),
) {
    let origin = ScriptedOrigin::start();
    in_turn(&origin, vec![stored(validators)]);
    let proxy = bed.gateway(&origin);
    let mut client = proxy.client();
    client.get("/", HOST, &[]);
    for (fields, expected) in asks {
        let response = client.get("/", HOST, fields);
        assert_eq!(response.field("cache-status"), Some("sepia; hit; ttl=60"), "{fields:?}");
        check(&response, *expected, fields);
    }
    assert_eq!(proxy.count(Counter::Hits), asks.len() as u64);
}

#[test]
fn rfc9110_13_2_2_conditions_are_judged_from_the_store() {
    const ASKS: &[(Fields, u16)] = &[
        (&[("If-None-Match", "\"1\"")], 304),
        (&[("If-None-Match", "W/\"1\"")], 304),
        (&[("If-None-Match", "\"0\", \"1\"")], 304),
        (&[("If-None-Match", "\"0\""), ("If-None-Match", "\"1\"")], 304),
        (&[("If-None-Match", "*")], 304),
        (&[("If-None-Match", "\"0\"")], 200),
        (&[("If-None-Match", "\"0,1\"")], 200),
        (&[("If-Modified-Since", CHANGED)], 304),
        (&[("If-Modified-Since", LATER)], 304),
        (&[("If-Modified-Since", EARLIER)], 200),
        (&[("If-Modified-Since", "yesterday")], 200),
        // The tag decides alone.
        (&[("If-None-Match", "\"0\""), ("If-Modified-Since", LATER)], 200),
        (&[("If-None-Match", "\"1\""), ("If-Modified-Since", EARLIER)], 304),
        // A condition that holds comes before the range.
        (&[("If-None-Match", "\"1\""), ("Range", "bytes=0-0")], 304),
        (&[("If-None-Match", "\"0\""), ("Range", "bytes=0-0")], 206),
    ];
    each_path(|bed| {
        each_ask(bed, &both_validators(), ASKS, |response, status, fields| {
            assert_eq!(response.status, status, "{fields:?}");
        });
    });
}

#[test]
fn rfc9110_15_4_5_a_304_names_the_representation_and_has_no_content() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        in_turn(&origin, vec![stored(&both_validators())]);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.get("/", HOST, &[]);
        proxy.pass(5);
        for method in ["GET", "HEAD"] {
            client.send(format!(
                "{method} / HTTP/1.1\r\nHost: {HOST}\r\nIf-None-Match: \"1\"\r\n\r\n"
            ));
            let response = client.expect_response(method);
            assert_eq!((response.status, response.field("age")), (304, Some("5")));
            assert_eq!(response.field("date"), Some(START_DATE));
            assert_eq!(response.field("etag"), Some("\"1\""));
            assert_eq!(response.field("cache-control"), Some("max-age=60"));
            assert_eq!(response.field("content-location"), Some("/here"));
            assert_eq!(response.field("vary"), Some("Accept"));
            for name in ["content-length", "content-type", "transfer-encoding"] {
                assert_eq!(response.field(name), None, "{name}");
            }
        }
    });
}

#[test]
fn rfc9110_14_single_ranges_are_cut_from_the_store() {
    type Outcome = (u16, Option<&'static str>, &'static str);
    const WHOLE: Outcome = (200, None, "0123456789");
    const NONE: Outcome = (416, Some("bytes */10"), "");
    const ASKS: &[(Fields, Outcome)] = &[
        (&[("Range", "bytes=0-0")], (206, Some("bytes 0-0/10"), "0")),
        (&[("Range", "bytes=2-4")], (206, Some("bytes 2-4/10"), "234")),
        (&[("Range", "BYTES=2-4")], (206, Some("bytes 2-4/10"), "234")),
        (&[("Range", "bytes=7-")], (206, Some("bytes 7-9/10"), "789")),
        (&[("Range", "bytes=7-99999999999999999999999")], (206, Some("bytes 7-9/10"), "789")),
        (&[("Range", "bytes=-3")], (206, Some("bytes 7-9/10"), "789")),
        (&[("Range", "bytes=-99")], (206, Some("bytes 0-9/10"), "0123456789")),
        (&[("Range", "bytes=10-")], NONE),
        (&[("Range", "bytes=-0")], NONE),
        (&[("Range", "bytes=0-1,4-5")], WHOLE),
        (&[("Range", "bytes=4-2")], WHOLE),
        (&[("Range", "bytes=")], WHOLE),
        (&[("Range", "bytes=a-b")], WHOLE),
        (&[("Range", "lines=0-1")], WHOLE),
        (&[("Range", "bytes=0-1"), ("If-Range", "\"1\"")], (206, Some("bytes 0-1/10"), "01")),
        (&[("Range", "bytes=0-1"), ("If-Range", CHANGED)], (206, Some("bytes 0-1/10"), "01")),
        (&[("Range", "bytes=0-1"), ("If-Range", "\"0\"")], WHOLE),
        (&[("Range", "bytes=0-1"), ("If-Range", "W/\"1\"")], WHOLE),
        (&[("Range", "bytes=0-1"), ("If-Range", LATER)], WHOLE),
        (&[("Range", "bytes=10-"), ("If-Range", "\"0\"")], WHOLE),
    ];
    each_path(|bed| {
        each_ask(bed, &both_validators(), ASKS, |response, expected, fields| {
            let text = response.text();
            let outcome = (response.status, response.field("content-range"), &*text);
            assert_eq!(outcome, expected, "{fields:?}");
            assert_eq!(response.field("content-length"), Some(&*text.len().to_string()));
            if expected.0 == 206 {
                for name in ["etag", "cache-control", "content-location", "date", "vary"] {
                    assert!(response.field(name).is_some(), "{name} for {fields:?}");
                }
            }
        });
    });
}

/// Content that fills several chunks, more than one write takes, of unknown length at first.
#[test]
fn rfc9110_14_2_ranges_of_large_content_begin_and_end_anywhere() {
    const LENGTH: usize = 300_000;
    const RANGES: &[(usize, usize)] =
        &[(0, 0), (65_535, 65_536), (1, 299_998), (131_071, 131_072), (299_999, 299_999)];
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            c.expect_head();
            c.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nConnection: close\r\n\r\n");
            c.send_generated(0, LENGTH as u64);
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        assert!(client.get("/", HOST, &[]).content == content_at(0, LENGTH));
        for (first, last) in RANGES {
            let range = format!("bytes={first}-{last}");
            let part = client.get("/", HOST, &[("Range", &range)]);
            assert_eq!(part.status, 206, "{range}");
            assert!(part.content == content_at(*first as u64, last - first + 1), "{range}");
        }
        let whole = client.get("/", HOST, &[]);
        assert_eq!(whole.field("content-length"), Some("300000"));
        assert!(whole.content == content_at(0, LENGTH));
    });
}

#[test]
fn rfc9110_13_1_5_a_weak_tag_never_joins_parts() {
    const ASKS: &[(Fields, u16)] = &[
        (&[("Range", "bytes=0-1"), ("If-Range", "W/\"1\"")], 200),
        (&[("Range", "bytes=0-1"), ("If-Range", "\"1\"")], 200),
        (&[("Range", "bytes=0-1")], 206),
        (&[("If-None-Match", "\"1\"")], 304),
    ];
    each_path(|bed| {
        each_ask(bed, "ETag: W/\"1\"\r\n", ASKS, |response, status, fields| {
            assert_eq!(response.status, status, "{fields:?}");
        });
    });
}

#[test]
fn rfc9110_14_2_a_range_is_for_get_alone() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        in_turn(&origin, vec![stored("")]);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.get("/", HOST, &[]);
        client.send("HEAD / HTTP/1.1\r\nHost: example.org\r\nRange: bytes=0-1\r\n\r\n");
        let response = client.expect_response("HEAD");
        assert_eq!((response.status, response.field("content-length")), (200, Some("10")));
    });
}

#[test]
fn rfc9111_3_3_a_range_of_what_is_not_stored_is_the_origins_and_stays_unstored() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let part = "Cache-Control: max-age=60\r\nContent-Range: bytes 0-1/10\r\n";
        let turns = vec![
            ("GET / range=bytes=0-1", answer(206, part, "01")),
            ("GET / range=bytes=0-1", answer(206, part, "01")),
            ("GET / range=bytes=5-6", stored("")),
        ];
        in_turn_seeing(&origin, &["range"], turns);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        for _ in 0..2 {
            let response = client.get("/", HOST, &[("Range", "bytes=0-1")]);
            assert_eq!((response.status, &*response.text()), (206, "01"));
            assert_eq!(response.field_all("content-range"), ["bytes 0-1/10"]);
            let how = "sepia; fwd=uri-miss; detail=partial-content";
            assert_eq!(response.field("cache-status"), Some(how));
        }
        // An origin that knows no ranges sends the whole, which is stored.
        let whole = client.get("/", HOST, &[("Range", "bytes=5-6")]);
        assert!(whole.text() == "0123456789" || (whole.status, &*whole.text()) == (206, "56"));
        assert_eq!(client.get("/", HOST, &[]).text(), "0123456789");
    });
}

#[test]
fn rfc9110_13_1_1_conditions_of_a_write_are_the_origins() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let turns = vec![
            ("GET /", stored(&both_validators())),
            ("GET / if-match=\"0\"", answer(412, "", "")),
            ("GET / if-unmodified-since=Sun, 06 Nov 2033 07:59:59 GMT", answer(412, "", "")),
        ];
        in_turn_seeing(&origin, &["if-match", "if-unmodified-since"], turns);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.get("/", HOST, &[]);
        for condition in [("If-Match", "\"0\""), ("If-Unmodified-Since", EARLIER)] {
            let response = client.get("/", HOST, &[condition]);
            assert_eq!(response.status, 412);
            let how = "sepia; fwd=bypass; detail=origin-precondition";
            assert_eq!(response.field("cache-status"), Some(how));
        }
        assert_eq!(client.get("/", HOST, &[]).field("cache-status"), Some("sepia; hit; ttl=60"));
    });
}
